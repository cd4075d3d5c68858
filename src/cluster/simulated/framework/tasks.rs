//! The tasks of a simulated framework that places tasks: an endless supply of several sizes, some of them in gangs, or
//! in hosts, and in queues if there are some.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::hosts::{fate_of, host_terms, is_pause};
use super::task_kinds::{TaskKinds, gangs_of};
use super::work::SimulatedWork;
use super::work_fate::WorkFate;
use crate::cluster::simulated::scenario::Scenario;
use crate::cluster::simulated::settings::FrameworkSettings;
use crate::config::QueueId;
use crate::engine::views::work_view::WorkView;
use crate::engine::{HostLedger, Notice, TaskChooser, TaskEnd, WorkQueue};
use crate::kernel::choosers::BatchCaps;
use crate::kernel::{Kernel, Picks, QueuesLeft, ResourceSums, Room, Rooms, Task, Unplaced};
use crate::launch::{Command, LaunchContext, Launcher};
use crate::resources::Gpus;
use crate::time::Timestamp;

/// How many more tasks than the kernel wants a batch picks at most: the caps have to cut some off.
const BEYOND_WANTED: u32 = 3;
/// The members of a gang.
const GANG: usize = 2;
/// One of this number of tasks begins a gang.
const GANG_EVERY: u64 = 7;
/// How many of the tasks that came back are tried for a room.
const TRIED_MAX: usize = 8;
/// The most tasks that a batch puts into one host.
const IN_HOST_MAX: u64 = 3;
/// One of this number of tasks is picked though its queue has no room for it.
const BEYOND_QUEUE_EVERY: u64 = 16;
/// One of this number of batches in hosts is chosen as if the caps left all, and queues what they had left at the batch
/// before: the commit has to cut off what hosts and their tasks take beyond that.
const BEHIND_EVERY: u64 = 2;

/// Chooses tasks for rooms: first those that came back, then new ones. For each room there is a task small enough, if
/// there is one at all and its queue has room. After a cap has cut off picks, which may all be too large for what it
/// leaves, the next batch gets new tasks of the smallest size alone.
pub(in super::super) struct SimulatedTasks {
    kernel: Kernel,
    supply: Mutex<TaskSupply>,
}

struct TaskSupply {
    kinds: TaskKinds,
    /// Tasks that were picked and not placed.
    returned: VecDeque<Task>,
    /// The number of tasks so far.
    created: u64,
    /// The picks of the last batch; the members of a gang are together.
    picked: Vec<Vec<Task>>,
    /// Whether a cap has cut off the last batch's picks.
    is_cut: bool,
    /// Which queues have tasks, and what they have room for in this batch; by number.
    queues_left: Vec<(bool, ResourceSums)>,
    hosts: Option<HostLedger>,
    /// The number of batches in hosts so far.
    batches: u64,
    /// What queues had room for at the last of them.
    queues_before: Option<QueuesLeft>,
    /// The agents whose hosts the tasks of the last batch were to join.
    joined: BTreeSet<String>,
    /// Executors that came back after they had been given up. They are to end.
    surplus: Vec<String>,
}

impl SimulatedTasks {
    pub(super) fn new(kernel: Kernel, scenario: &Scenario) -> SimulatedTasks {
        let supply = TaskSupply {
            kinds: TaskKinds::of(scenario),
            returned: VecDeque::new(),
            created: 0,
            picked: Vec::new(),
            is_cut: false,
            queues_left: Vec::new(),
            hosts: scenario
                .has_hosts()
                .then(|| HostLedger::new(host_terms(), WorkQueue::HOST_TAGS)),
            batches: 0,
            queues_before: None,
            joined: BTreeSet::new(),
            surplus: Vec::new(),
        };
        let tasks = SimulatedTasks { kernel, supply: Mutex::new(supply) };
        tasks.tell_demand();
        tasks
    }

    fn tell_demand(&self) {
        let supply = self.supply();
        for (queue, number) in supply.kinds.queues.list(supply.kinds.settings).iter().zip(0..) {
            self.kernel.set_queue_demand(QueueId::new(number), queue.has_demand);
        }
    }

    /// What the caps leave.
    fn caps(&self) -> BatchCaps {
        let (config, totals) = (self.kernel.config(), self.kernel.totals());
        let mut caps = BatchCaps::default();
        if let Some(limit) = config.executor_limit() {
            caps.executors = limit.saturating_sub(totals.executors).into();
        }
        if let Some(cap) = config.core_cap() {
            caps.left.cores = cap.saturating_sub(totals.cores);
        }
        caps
    }

    fn supply(&self) -> MutexGuard<'_, TaskSupply> {
        self.supply.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskSupply {
    /// A task for what is left of a room: one that came back, the next new one or, if both are too large, the smallest.
    fn next_for(&mut self, room: &mut Room) -> Option<Task> {
        let tried = self.returned.iter().take(if self.is_cut { 0 } else { TRIED_MAX });
        let fits = |task: &Task| room.fits(task) && self.has_queue_room(task);
        if let Some(at) = tried.enumerate().find_map(|(at, task)| fits(task).then_some(at)) {
            let task = self.returned.remove(at)?;
            self.take_in_queue(&task);
            return room.take(&task).ok().map(|()| task);
        }
        let kind = (self.created % TaskKinds::COUNT as u64) as usize;
        let kinds = [kind, 0].into_iter().skip(self.is_cut.into());
        let queues = self.queues_left.len().max(1) as u64;
        // In its queue's turn or, if that has no room, in the next one that has.
        let tags = self.created..self.created + queues;
        let mut tried = kinds.flat_map(|kind| tags.clone().map(move |tag| (kind, tag)));
        let task = tried.find_map(|(kind, tag)| {
            let task = self.kinds.task(kind, tag);
            (self.has_queue_room(&task) && room.take(&task).is_ok()).then_some(task)
        })?;
        self.take_in_queue(&task);
        self.created = task.tag + 1;
        Some(task)
    }

    /// Whether the queue of a task has tasks, and room for it; now and then it needn't have room.
    fn has_queue_room(&self, task: &Task) -> bool {
        let Some((has_demand, left)) = self.queues_left.get(task.queue.index()) else {
            return true;
        };
        let is_beyond = !self.is_cut && task.tag % BEYOND_QUEUE_EVERY == 5;
        *has_demand && (is_beyond || task.cores <= left.cores && task.memory <= left.memory)
    }

    fn take_in_queue(&mut self, task: &Task) {
        if let Some((_, left)) = self.queues_left.get_mut(task.queue.index()) {
            let own = ResourceSums { cores: task.cores, memory: task.memory, gpus: Gpus::ZERO };
            *left = left.saturating_sub(own);
        }
    }

    /// Picks these tasks together.
    fn push(&mut self, gang: &mut Vec<(u32, Task)>, picks: &mut Picks) {
        match gang[..] {
            [] => return,
            [(room, task)] => picks.push(room, task),
            _ => picks.push_gang(gang),
        }
        self.picked.push(gang.drain(..).map(|(_, task)| task).collect());
    }

    /// Picks up to `most` tasks for rooms, which take turns.
    fn choose_in_turns(&mut self, mut left: Vec<Room>, most: usize, picks: &mut Picks) {
        let mut gang: Vec<(u32, Task)> = Vec::new();
        let (mut chosen, mut before) = (0, None);
        while before != Some(chosen) {
            before = Some(chosen);
            for (room, position) in left.iter_mut().zip(0..) {
                if chosen == most {
                    break;
                }
                let Some(task) = self.next_for(room) else { continue };
                chosen += 1;
                let begins_gang = task.tag % GANG_EVERY == 3 && !self.is_cut;
                gang.push((position, task));
                if gang.len() == GANG || gang.len() == 1 && !begins_gang {
                    self.push(&mut gang, picks);
                }
            }
        }
        self.push(&mut gang, picks);
    }

    /// Picks up to `most` tasks for the hosts of rooms, and hosts where there are none.
    fn choose_in_hosts(
        &mut self,
        hosts: &mut HostLedger,
        rooms: &Rooms<'_>,
        caps: BatchCaps,
        most: usize,
        picks: &mut Picks,
    ) {
        self.batches += 1;
        let mut known = (rooms.queues_left(), caps);
        let before = self.queues_before.replace(known.0.clone());
        if self.batches.is_multiple_of(BEHIND_EVERY) && !self.is_cut {
            known = (before.unwrap_or(known.0), BatchCaps::default());
        }
        let (queues, caps) = known;
        let mut chosen: Vec<Task> = Vec::new();
        hosts.pick(rooms, &queues, caps, picks, |list, queues, caps, picks| {
            self.returned.extend(chosen.drain(..));
            self.follow_queues(&queues);
            chosen = self.choose_within(list, caps, most, picks);
            let agents = picks.iter().filter_map(|pick| rooms.offer_of(pick.room));
            self.joined.extend(agents.map(|offer| offer.agent_id.to_owned()));
        });
        self.picked = gangs_of(picks);
        let picked: BTreeSet<u64> = picks.iter().map(|pick| pick.task.tag).collect();
        chosen.retain(|task| !picked.contains(&task.tag));
        self.is_cut = !chosen.is_empty();
        self.returned.extend(chosen);
    }

    /// Picks up to `most` tasks for rooms, a few for each. Returns all that it has chosen, of which those that caps
    /// don't admit are not picked.
    fn choose_within(
        &mut self,
        list: &[Room],
        mut caps: BatchCaps,
        most: usize,
        picks: &mut Picks,
    ) -> Vec<Task> {
        let mut chosen = Vec::new();
        for (room, position) in list.iter().zip(0u32..) {
            let mut room = *room;
            let share = if self.is_cut { 1 } else { 1 + self.created % IN_HOST_MAX };
            for _ in 0..share.min((most - chosen.len()) as u64) {
                let Some(task) = self.next_for(&mut room) else { break };
                chosen.push(task);
                if caps.take(task.sums()) {
                    picks.push(position, task);
                }
            }
        }
        chosen
    }

    /// Notes what queues have room for.
    fn follow_queues(&mut self, left: &QueuesLeft) {
        let queues = self.kinds.queues.list(self.kinds.settings);
        let left = |number: u8| left.room(QueueId::new(number));
        self.queues_left =
            queues.iter().zip(0..).map(|(it, number)| (it.has_demand, left(number))).collect();
    }
}

impl SimulatedWork for SimulatedTasks {
    /// From now on, new tasks have multiples of the cores of an executor, and queues have tasks as these settings say.
    fn set(&self, settings: FrameworkSettings) {
        self.supply().kinds.set(settings);
        self.tell_demand();
    }

    fn take_picked(&self) -> Vec<Vec<Task>> {
        std::mem::take(&mut self.supply().picked)
    }

    fn take_joined(&self) -> BTreeSet<String> {
        std::mem::take(&mut self.supply().joined)
    }

    fn noticed(&self, _at: Timestamp, notice: &Notice) -> Vec<WorkFate> {
        let mut supply = self.supply();
        let TaskSupply { hosts, surplus, .. } = &mut *supply;
        let Some(hosts) = hosts.as_mut() else { return Vec::new() };
        let fate = fate_of(notice, hosts);
        hosts.noticed(notice);
        if let (Some(WorkFate::HostedBack), Notice::Updated { executor, .. }) = (fate, notice) {
            surplus.push(executor.clone());
        }
        fate.into_iter().collect()
    }

    fn take_to_end(&self, now: Timestamp) -> (Vec<String>, Vec<String>) {
        let mut supply = self.supply();
        let surplus = std::mem::take(&mut supply.surplus);
        let idle = supply.hosts.iter_mut().flat_map(|hosts| hosts.end_idle(now)).collect();
        (surplus, idle)
    }

    fn with_hosts(&self, look: &mut dyn FnMut(&HostLedger)) {
        self.supply().hosts.iter().for_each(look);
    }

    fn take_told(&self) -> Option<(WorkView, Vec<TaskEnd>)> {
        None
    }
}

impl TaskChooser for SimulatedTasks {
    fn choose(&self, rooms: &Rooms<'_>, now: Timestamp, picks: &mut Picks) {
        let mut supply = self.supply();
        supply.picked.clear();
        supply.joined.clear();
        let most = self.kernel.wanted().saturating_add(BEYOND_WANTED) as usize;
        let Some(mut hosts) = supply.hosts.take() else {
            supply.follow_queues(&rooms.queues_left());
            supply.choose_in_turns(rooms.list().to_vec(), most, picks);
            supply.is_cut = false;
            return;
        };
        if is_pause(now) {
            supply.is_cut = false;
        } else {
            supply.choose_in_hosts(&mut hosts, rooms, self.caps(), most, picks);
        }
        supply.hosts = Some(hosts);
    }

    fn unplaced(&self, unplaced: &[Unplaced]) {
        let mut supply = self.supply();
        let supply = &mut *supply;
        let is_too_much = |it: &Unplaced| it.reason.is_cap() || it.reason.queue().is_some();
        supply.is_cut |= unplaced.iter().any(is_too_much);
        let is_back = |task: &&Task| unplaced.iter().any(|it| it.tag == task.tag);
        let back: Vec<Task> = supply.picked.iter().flatten().filter(is_back).copied().collect();
        for task in back {
            let is_task = supply.hosts.as_mut().is_none_or(|hosts| hosts.take_back(task.tag));
            if is_task {
                supply.returned.push_back(task);
            }
        }
    }

    fn killing(&self, tag: u64) {
        self.supply().hosts.iter().for_each(|hosts| hosts.ending(tag));
    }
}

impl Launcher for SimulatedTasks {
    fn command(&self, context: &LaunchContext<'_>) -> Command {
        let mut supply = self.supply();
        let (Some(hosts), Some(tag)) = (&mut supply.hosts, context.tag) else {
            return Command::default();
        };
        let host = hosts.command(context);
        host.unwrap_or_else(|| Command::default().with_hosting(hosts.hosting(tag)))
    }
}
