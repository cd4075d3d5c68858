//! Tasks in the reference model: which picks are placed, by naive sums that are computed anew for each.

use offermill::limits::{EXECUTOR_CORES_MAX, EXECUTOR_MEMORY_MAX, EXECUTORS_PER_AGENT_MAX};
use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{Reason, Task, Timestamp};

use super::offers::{Accept, Batch};
use super::{Answer, Model};
use crate::placement::naive::{self, Caps as _, Placement};
use crate::world::OfferData;

/// Tasks on the rooms with these positions, all of which are placed, or none.
pub(crate) type GangPicks = Vec<(u32, Task)>;

/// What is left of a room.
#[derive(Clone, Debug)]
struct RoomLeft {
    /// The position of its group.
    group: usize,
    /// Cores in thousandths, MiB and GPUs; not revocable, and revocable.
    amounts: [[u64; 3]; 2],
    tasks: u64,
    /// What became of its first pick, if it has one: planned, or the reason.
    picked: Option<Result<(), Reason>>,
}

impl RoomLeft {
    fn take(&mut self, task: &Task) -> Result<(), Reason> {
        let wanted = amounts(task);
        let most = |kind: usize| self.amounts[0][kind].max(self.amounts[1][kind]);
        if wanted[0] == 0 {
            return Err(Reason::Malformed);
        }
        if self.tasks == 0 {
            return Err(Reason::AgentFull);
        }
        if wanted[0] > most(0) {
            return Err(Reason::Cpus {
                asked: task.cores,
                offered: MilliCpus::from_millis(most(0)),
            });
        }
        if wanted[1] > most(1) {
            return Err(Reason::Memory { asked: task.memory, offered: Mebibytes::new(most(1)) });
        }
        if wanted[2] > most(2) {
            return Err(Reason::Gpus { asked: task.gpus, offered: Gpus::new(most(2) as u32) });
        }
        for (kind, wanted) in wanted.into_iter().enumerate() {
            let supply = usize::from(wanted > self.amounts[0][kind]);
            self.amounts[supply][kind] -= wanted;
        }
        self.tasks -= 1;
        Ok(())
    }
}

fn amounts(task: &Task) -> [u64; 3] {
    [task.cores.millis(), task.memory.get(), task.gpus.get().into()]
}

/// The picks that are planned, and why nothing more is.
#[derive(Clone, Debug, Default)]
struct Plan {
    /// The positions of their rooms, and the tasks.
    tasks: Vec<(usize, Task)>,
    cut: Option<Reason>,
}

impl Model {
    /// Proposes the offers and commits the gangs; a gang of one is a single task.
    pub(crate) fn tasks(
        &mut self,
        batch: &[OfferData],
        gangs: &[GangPicks],
        now: Timestamp,
    ) -> Answer {
        let mut answer = Answer::default();
        let closed = self.reason_for_all();
        let refused = match closed {
            Some(reason) => {
                let offers = 0..batch.len() as u32;
                answer.declines =
                    offers.map(|offer| (offer, (reason, self.refusal(reason, now)))).collect();
                let picks = gangs.iter().flatten().zip(0..);
                answer.unplaced = picks.map(|((_, task), at)| (at, task.tag, reason)).collect();
                !batch.is_empty() && reason != Reason::Disconnected
            }
            None => self.place_tasks(batch, gangs, now, &mut answer),
        };
        self.count_answer(batch, &mut answer, refused);
        answer
    }

    /// Returns whether a cap is reached then, for which a room is refused or the rest of one.
    fn place_tasks(
        &mut self,
        batch: &[OfferData],
        gangs: &[GangPicks],
        now: Timestamp,
        answer: &mut Answer,
    ) -> bool {
        let mut groups = self.group(batch, now, answer);
        groups.find_shortages();
        self.note_offered(batch, now);
        let mut rooms: Vec<RoomLeft> = (0..)
            .zip(&groups.groups)
            .filter(|(_, group)| group.shortage.is_none())
            .map(|(at, group)| self.room_of(at, group))
            .collect();
        let mut plan = Plan::default();
        let mut position = 0;
        for gang in gangs {
            let rejected = self.plan_gang(gang, &mut rooms, &mut plan).err();
            for (room, task) in gang {
                if let Some(reason) = rejected {
                    answer.unplaced.push((position, task.tag, reason));
                    if let Some(room) = rooms.get_mut(*room as usize) {
                        room.picked.get_or_insert(Err(reason));
                    }
                }
                position += 1;
            }
        }
        self.place_plan(&plan, &rooms, &mut groups, now);
        self.answer_rooms(&groups, &rooms, now, answer);
        !rooms.is_empty() && self.cap_reached().is_some()
    }

    fn room_of(&self, at: usize, group: &naive::Group<'_>) -> RoomLeft {
        let most = [EXECUTOR_CORES_MAX.millis(), EXECUTOR_MEMORY_MAX.get(), u32::MAX.into()];
        let amounts = [false, true].map(|is_revocable| {
            let sums = group.sums(is_revocable);
            std::array::from_fn(|kind| sums[kind].min(most[kind].into()) as u64)
        });
        let others = u64::from(EXECUTORS_PER_AGENT_MAX - self.on_agent(group.agent));
        let tasks = if group.is_permit { 1 } else { others };
        RoomLeft { group: at, amounts, tasks, picked: None }
    }

    /// Plans all members of a gang, or changes nothing but the reason for which nothing more is planned.
    fn plan_gang(
        &self,
        gang: &GangPicks,
        rooms: &mut Vec<RoomLeft>,
        plan: &mut Plan,
    ) -> Result<(), Reason> {
        let (mut left, mut planned) = (rooms.clone(), plan.clone());
        for (at, task) in gang {
            if let Some(reason) = plan.cut {
                return Err(reason);
            }
            let room = left.get_mut(*at as usize).ok_or(Reason::Malformed)?;
            room.take(task)?;
            room.picked.get_or_insert(Ok(()));
            plan.cut = self.cap_for(task, &planned);
            planned.tasks.push((*at as usize, *task));
        }
        if let Some(reason) = plan.cut {
            return Err(reason);
        }
        (*rooms, *plan) = (left, planned);
        Ok(())
    }

    /// The cap that doesn't admit a task after those of the plan.
    fn cap_for(&self, task: &Task, plan: &Plan) -> Option<Reason> {
        let planned = |kind: usize| plan.tasks.iter().map(move |(_, task)| amounts(task)[kind]);
        let (executors, cores) = self.totals();
        let cores = cores + planned(0).sum::<u64>();
        let gpus = self.gpus() + planned(2).sum::<u64>();
        if executors + plan.tasks.len() as u64 >= self.limit_in_force() {
            return Some(Reason::ExecutorLimit { limit: self.limit_in_force() as u32 });
        }
        if cores + task.cores.millis() > self.core_cap() {
            return Some(Reason::CoreCap {
                cap: MilliCpus::from_millis(self.core_cap()),
                acquired: MilliCpus::from_millis(cores),
                asked: task.cores,
            });
        }
        let cap = Gpus::new(self.setup.gpu_cap);
        // A task without GPUs is admitted even if a lowered cap is exceeded.
        let left = u64::from(cap.get()).saturating_sub(gpus);
        let is_over = u64::from(task.gpus.get()) > left;
        is_over.then(|| Reason::GpuCap {
            cap,
            acquired: Gpus::new(cap.get() - left as u32),
            asked: task.gpus,
        })
    }

    fn place_plan(
        &mut self,
        plan: &Plan,
        rooms: &[RoomLeft],
        groups: &mut Placement<'_>,
        now: Timestamp,
    ) {
        for (room, task) in &plan.tasks {
            let group = &mut groups.groups[rooms[*room].group];
            let [cores, memory, gpus] = amounts(task);
            let pieces = group.take_all([cores, memory * 1000, gpus * 1000]);
            let number = Batch { model: self, now }.add(group.agent, cores, gpus);
            let executor = &mut self.executors[number as usize];
            (executor.memory, executor.port, executor.tag) = (memory, None, Some(task.tag));
            group.executors.push(naive::Executor { number, cores, gpus, pieces, port: None });
        }
    }

    fn answer_rooms(
        &self,
        groups: &Placement<'_>,
        rooms: &[RoomLeft],
        now: Timestamp,
        answer: &mut Answer,
    ) {
        let reached = self.cap_reached();
        let rest =
            if reached.is_some() { self.setup.refuse.reached_cap } else { self.setup.refuse.other };
        for (group, at) in groups.groups.iter().zip(0..) {
            let offers: Vec<u32> = group.offers.iter().map(|offer| *offer as u32).collect();
            if !group.executors.is_empty() {
                let executors = group.executors.iter().map(|it| self.started(it)).collect();
                let agent = group.agent.to_owned();
                answer.accepts.push(Accept { agent, offers, executors, refuse: rest });
                continue;
            }
            let by_picks = || {
                let room = rooms.iter().find(|room| room.group == at);
                match room.and_then(|room| room.picked) {
                    Some(Err(reason)) => reason,
                    _ => Reason::NotPicked,
                }
            };
            let reason = group.shortage.or(reached).unwrap_or_else(by_picks);
            // A cap that only a task is too large for leaves room for others.
            let refuse = match reason {
                reason if reason.is_cap() && reached.is_none() => self.setup.refuse.other,
                reason => self.refusal(reason, now),
            };
            answer.declines.extend(offers.into_iter().map(|offer| (offer, (reason, refuse))));
        }
    }
}
