//! Tasks in hosts and queues beside naive books: a list of hosts and a list of what lives, added up for each question.
//!
//! The property test of hosts and the fuzz target `task_hosts` share it.

use offermill::config::{Queue, QueueId};
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{
    Change, ConfigBuilder, Decisions, ExecutorId, Fate, Handler, Hosts, IdScheme, IdleHost, Joined,
    Kernel, Picks, StatusUpdate, Task, TaskHost, TaskHostStage, TaskState,
};

use crate::world::{OfferData, Setup, at, lend};

pub(crate) const AGENTS: usize = 3;
pub(crate) const QUEUES: usize = 3;
/// The thousandths of cores and the MiB of an agent, of the smallest task, and of a host.
const AGENT: [u64; 2] = [4_000, 1_000];
const LEAST: [u64; 2] = [100, 10];
const HOST: [u64; 2] = [200, 20];

/// The maximum and the guarantee of a queue, in thousandths of cores and MiB.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueTerms {
    pub(crate) most: [Option<u64>; 2],
    pub(crate) least: [u64; 2],
}

/// What happens.
#[derive(Clone, Debug)]
pub(crate) enum HostStep {
    /// What is free on an agent is offered, and tasks are picked for its host: queue, thousandths of cores, MiB.
    Place { agent: usize, tasks: Vec<(u8, u64, u64)> },
    /// The cluster reports the agent's host running.
    Up(usize),
    /// A live task ends, perhaps with a failure.
    End(usize, bool),
    /// The agent's host ends, and the cluster reports its tasks lost, all of it twice.
    Lose(usize),
    /// The framework looks whether the agent's host is idle.
    Look(usize),
    /// It ends the host if that is as it was when it was last looked at.
    EndIdle(usize),
    /// It ends the host, whatever is in it.
    EndHost(usize),
    /// The queues but the default one have other terms, and the caps change: thousandths of cores, 0 is none; MiB, 0 is
    /// none; executors.
    Reconfigure { terms: [QueueTerms; QUEUES - 1], caps: (u64, u64, u32) },
    /// A queue has demand, or none.
    Demand(u8, bool),
}

#[derive(Clone, Debug)]
struct Live {
    /// `None` before the kernel has answered.
    id: Option<ExecutorId>,
    agent: usize,
    is_host: bool,
    queue: usize,
    amounts: [u64; 2],
}

/// The host of an agent, and how often something has happened to it.
#[derive(Clone, Debug)]
struct NaiveHost {
    handle: TaskHost,
    stage: TaskHostStage,
    changes: u64,
    /// The last look that found it idle, and how often something had happened by then.
    idle: Option<(u64, usize)>,
}

/// The kernel with its hosts, and the books.
pub(crate) struct HostedPair {
    kernel: Kernel,
    handler: Handler,
    decisions: Decisions,
    hosts: Hosts,
    looks: Vec<Option<IdleHost>>,
    naive: [Option<NaiveHost>; AGENTS],
    /// Handles of hosts that were lost: nothing that is said of them may have an effect.
    former: Vec<TaskHost>,
    live: Vec<Live>,
    terms: [QueueTerms; QUEUES],
    caps: (u64, u64, u32),
    demand: [bool; QUEUES],
    now: u64,
    next_tag: u64,
}

/// Caps that are no less than what is guaranteed, nor than the smallest task.
fn possible(terms: &[QueueTerms; QUEUES], caps: (u64, u64, u32)) -> (u64, u64, u32) {
    let kept = |kind: usize| terms.iter().map(|terms| terms.least[kind]).sum::<u64>();
    let (cores, memory, limit) = caps;
    let cores = if cores == 0 { 0 } else { cores.max(kept(0)).max(LEAST[0]) };
    (cores, if memory == 0 { 0 } else { memory.max(kept(1)) }, limit)
}

fn config(terms: &[QueueTerms; QUEUES], caps: (u64, u64, u32)) -> ConfigBuilder {
    let nonzero = |amount: u64| Some(amount).filter(|amount| *amount > 0);
    let setup = Setup {
        executor_cores: Some(LEAST[0]),
        memory: LEAST[1],
        core_cap: nonzero(caps.0),
        limit: Some(caps.2),
        exclusion: None,
        ..Setup::default()
    };
    let builder = setup.config().to_builder().queued_memory(nonzero(caps.1).map(Mebibytes::new));
    terms.iter().zip(["default", "q1", "q2"]).fold(builder, |builder, (terms, name)| {
        builder.queue(
            Queue::new(name)
                .max_cores(terms.most[0].map(MilliCpus::from_millis))
                .max_memory(terms.most[1].map(Mebibytes::new))
                .guaranteed_cores(MilliCpus::from_millis(terms.least[0]))
                .guaranteed_memory(Mebibytes::new(terms.least[1])),
        )
    })
}

impl HostedPair {
    pub(crate) fn new(plain: bool) -> HostedPair {
        let (terms, caps) = ([QueueTerms::default(); QUEUES], (0, 0, 100));
        let ids = if plain { IdScheme::plain() } else { IdScheme::unique("h", 1).unwrap() };
        let kernel = Kernel::new(config(&terms, caps).build().unwrap(), ids);
        HostedPair {
            handler: kernel.handler(),
            kernel,
            decisions: Decisions::new(),
            hosts: Hosts::new(),
            looks: Vec::new(),
            naive: [const { None }; AGENTS],
            former: Vec::new(),
            live: Vec::new(),
            terms,
            caps,
            demand: [true; QUEUES],
            now: 1_000,
            next_tag: 0,
        }
    }

    pub(crate) fn play(&mut self, step: &HostStep) {
        self.now += 10;
        match step {
            HostStep::Place { agent, tasks } => self.place(agent % AGENTS, tasks),
            HostStep::Up(agent) => self.up(agent % AGENTS),
            HostStep::End(which, failed) => self.end(*which, *failed),
            HostStep::Lose(agent) => self.lose(agent % AGENTS),
            HostStep::Look(agent) => self.look(agent % AGENTS),
            HostStep::EndIdle(agent) => self.end_idle(agent % AGENTS),
            HostStep::EndHost(agent) => self.end_host(agent % AGENTS),
            HostStep::Reconfigure { terms, caps } => {
                self.terms[1..].clone_from_slice(terms);
                self.caps = possible(&self.terms, *caps);
                self.kernel.reconfigure(config(&self.terms, self.caps).build().unwrap());
            }
            HostStep::Demand(queue, has_demand) => {
                let queue = usize::from(*queue) % QUEUES;
                self.demand[queue] = *has_demand;
                self.kernel.set_queue_demand(QueueId::new(queue as u8), *has_demand);
            }
        }
        self.say_of_former();
        self.compare();
    }

    fn sums(&self, kind: usize, of: impl Fn(&Live) -> bool) -> u64 {
        self.live.iter().filter(|it| of(it)).map(|it| it.amounts[kind]).sum()
    }

    fn kept(&self, queue: usize, kind: usize) -> u64 {
        if self.demand[queue] { self.terms[queue].least[kind] } else { 0 }
    }

    /// What queues hold or what is kept for them, together, if one holds this much more.
    fn footprints(&self, kind: usize, more: (usize, u64)) -> u64 {
        let held = |queue: usize| self.sums(kind, |it| it.queue == queue);
        let more = |queue: usize| if queue == more.0 { more.1 } else { 0 };
        (0..QUEUES).map(|queue| (held(queue) + more(queue)).max(self.kept(queue, kind))).sum()
    }

    fn queue_admits(&self, queue: usize, amounts: [u64; 2]) -> bool {
        let guarantees_cores = self.terms.iter().any(|terms| terms.least[0] > 0);
        let totals = [if guarantees_cores { self.caps.0 } else { 0 }, self.caps.1];
        (0..2).all(|kind| {
            let held = self.sums(kind, |it| it.queue == queue);
            let (asked, most) = (amounts[kind], self.terms[queue].most[kind]);
            // Nothing is less than what a lowered maximum leaves.
            let is_within = asked == 0 || most.is_none_or(|most| held + asked <= most);
            let before = self.footprints(kind, (queue, 0));
            let after = self.footprints(kind, (queue, asked));
            is_within && (after == before || totals[kind] == 0 || after <= totals[kind])
        })
    }

    fn caps_admit(&self, cores: u64) -> bool {
        let taken = self.sums(0, |_| true);
        (self.live.len() as u64) < u64::from(self.caps.2)
            && (self.caps.0 == 0 || taken + cores <= self.caps.0)
    }

    fn free(&self, agent: usize, kind: usize) -> u64 {
        AGENT[kind] - self.sums(kind, |it| it.agent == agent)
    }

    /// Which of these are placed on an agent, all or none if they are a gang: first those that there is room for, until
    /// a cap is reached. Without ids.
    fn expect(&mut self, agent: usize, wanted: &[Live], is_gang: bool) -> Vec<bool> {
        let before = self.live.clone();
        let mut is_cut = false;
        let mut answers = Vec::new();
        for it in wanted {
            let has_room = !is_cut
                && it.amounts[0] > 0
                && self.queue_admits(it.queue, it.amounts)
                && (0..2).all(|kind| it.amounts[kind] <= self.free(agent, kind));
            is_cut |= has_room && !self.caps_admit(it.amounts[0]);
            answers.push(has_room && !is_cut);
            if has_room && !is_cut {
                self.live.push(it.clone());
            } else if is_gang {
                answers = vec![false; wanted.len()];
                self.live.clone_from(&before);
                break;
            }
        }
        self.live = before;
        answers
    }

    /// Has tasks join the agent's host, or begins to add it. Returns the host, and whether it is to be placed with
    /// them.
    fn join(&self, agent: usize, tasks: usize) -> (Option<TaskHost>, bool) {
        let joined = self.hosts.join(&format!("S{agent}"));
        let (host, is_new) = match (self.naive[agent].as_ref().map(|host| host.stage), joined) {
            (None, Joined::First(host)) => (host, true),
            (Some(TaskHostStage::Up), Joined::Member(host)) => (host, false),
            (Some(TaskHostStage::Starting | TaskHostStage::Ending), Joined::Elsewhere) => {
                return (None, false);
            }
            (stage, joined) => panic!("{joined:?} of a host that is {stage:?}"),
        };
        (1..tasks).for_each(|_| assert!(host.join()));
        (Some(host), is_new)
    }

    /// Commits these on what is free of an agent. Returns the ids of those that were placed.
    fn commit(&mut self, agent: usize, wanted: &[Live], is_gang: bool) -> Vec<Option<ExecutorId>> {
        let [cores, memory] = [0, 1].map(|kind| self.free(agent, kind));
        let batch = [OfferData::new(&format!("S{agent}"), cores as f64 / 1000.0, memory as f64)];
        let is_room = self.has_room(agent);
        let (mut picks, first_tag) = (Picks::new(), self.next_tag);
        let task = |it: &Live| {
            self.next_tag += 1;
            let [cores, memory] = it.amounts;
            let (cores, memory) = (MilliCpus::from_millis(cores), Mebibytes::new(memory));
            let queue = QueueId::new(it.queue as u8);
            (0, Task::new(self.next_tag, cores, memory).in_queue(queue))
        };
        let all: Vec<(u32, Task)> = wanted.iter().map(task).collect();
        if is_gang {
            picks.push_gang(&all);
        } else {
            all.iter().for_each(|(room, task)| picks.push(*room, *task));
        }
        let (handler, decisions, now) = (&mut self.handler, &mut self.decisions, at(self.now));
        lend(&batch, |offers| {
            let rooms = handler.propose(offers, now);
            assert_eq!(rooms.list().len(), usize::from(is_room));
            rooms.commit(&picks, now, decisions);
        });
        let mut placed = vec![None; wanted.len()];
        for (tag, task) in self.decisions.accepts().flat_map(|accepted| accepted.tasks()) {
            placed[(tag - first_tag - 1) as usize] = Some(task.id);
        }
        placed
    }

    /// Whether an agent is a room for tasks.
    fn has_room(&self, agent: usize) -> bool {
        (0..2).all(|kind| self.free(agent, kind) >= LEAST[kind]) && self.caps_admit(LEAST[0])
    }

    fn place(&mut self, agent: usize, tasks: &[(u8, u64, u64)]) {
        let is_joined = self.has_room(agent) && !tasks.is_empty();
        let (host, is_gang) = if is_joined { self.join(agent, tasks.len()) } else { (None, false) };
        let mut wanted: Vec<Live> = Vec::new();
        if is_gang {
            wanted.push(Live { id: None, agent, is_host: true, queue: 0, amounts: HOST });
        }
        for (queue, cores, memory) in tasks.iter().filter(|_| host.is_some()) {
            let (queue, amounts) = (usize::from(*queue) % QUEUES, [*cores, *memory]);
            wanted.push(Live { id: None, agent, is_host: false, queue, amounts });
        }
        let expected = self.expect(agent, &wanted, is_gang);
        let placed = self.commit(agent, &wanted, is_gang);
        let found: Vec<bool> = placed.iter().map(Option::is_some).collect();
        assert_eq!(found, expected, "of {wanted:?}");
        let is_placed = placed.iter().flatten().next().is_some();
        for (it, id) in wanted.iter().zip(placed) {
            match (id, &host) {
                (Some(_), _) => self.live.push(Live { id, ..it.clone() }),
                (None, Some(host)) if !it.is_host => drop(host.leave()),
                _ => {}
            }
        }
        match host {
            Some(host) if is_gang && is_placed => {
                let stage = TaskHostStage::Starting;
                self.naive[agent] = Some(NaiveHost { handle: host, stage, changes: 0, idle: None });
            }
            Some(host) if is_gang => assert_eq!(host.lost(), Some(0), "its tasks have left"),
            Some(_) => self.changed(agent),
            None => {}
        }
    }

    fn changed(&mut self, agent: usize) {
        if let Some(host) = &mut self.naive[agent] {
            host.changes += 1;
        }
    }

    fn report(&self, id: Option<ExecutorId>, state: TaskState) -> Change {
        let name = self.kernel.executor_name(id.unwrap()).to_string();
        self.kernel.status_update(&StatusUpdate::new(&name, state), at(self.now)).change
    }

    fn up(&mut self, agent: usize) {
        let Some(host) = &mut self.naive[agent] else { return };
        let is_first = host.stage == TaskHostStage::Starting;
        assert_eq!(host.handle.up(), is_first);
        if is_first {
            host.stage = TaskHostStage::Up;
        }
        host.changes += u64::from(is_first);
        let host = self.live.iter().find(|it| it.is_host && it.agent == agent).unwrap();
        self.report(host.id, TaskState::Running);
    }

    fn tasks(&self, agent: usize) -> u32 {
        self.live.iter().filter(|it| it.agent == agent && !it.is_host).count() as u32
    }

    fn end(&mut self, which: usize, failed: bool) {
        let tasks: Vec<usize> = (0..self.live.len()).filter(|at| !self.live[*at].is_host).collect();
        if tasks.is_empty() {
            return;
        }
        let ended = self.live.remove(tasks[which % tasks.len()]);
        let state = if failed { TaskState::Failed } else { TaskState::Finished };
        assert!(matches!(self.report(ended.id, state), Change::Ended(_)));
        let host = self.naive[ended.agent].as_ref().expect("its host lives");
        assert_eq!(host.handle.leave(), Some(self.tasks(ended.agent)));
        self.changed(ended.agent);
    }

    fn lose(&mut self, agent: usize) {
        let Some(host) = self.naive[agent].take() else { return };
        let gone: Vec<Live> = self.live.iter().filter(|it| it.agent == agent).cloned().collect();
        self.live.retain(|it| it.agent != agent);
        let tasks = gone.len() as u32 - 1;
        for again in [false, true] {
            for it in
                gone.iter().filter(|it| it.is_host).chain(gone.iter().filter(|it| !it.is_host))
            {
                let state = if it.is_host { TaskState::Failed } else { TaskState::Gone };
                let fate = if it.is_host { Fate::Failed } else { Fate::Lost };
                let expected = if again { Change::Nothing } else { Change::Ended(fate) };
                assert_eq!(self.report(it.id, state), expected);
                if it.is_host {
                    assert_eq!(host.handle.lost(), (!again).then_some(tasks));
                } else {
                    assert_eq!(host.handle.leave(), None, "its host is lost");
                }
            }
        }
        self.former.push(host.handle);
        self.looks.push(None);
    }

    fn look(&mut self, agent: usize) {
        let tasks = self.tasks(agent);
        let Some(host) = &mut self.naive[agent] else { return };
        let may = tasks == 0 && host.stage != TaskHostStage::Ending;
        let idle = host.handle.idle();
        assert_eq!(idle.is_some(), may);
        host.idle = idle.map(|idle| {
            self.looks.push(Some(idle));
            (host.changes, self.looks.len() - 1)
        });
    }

    fn end_idle(&mut self, agent: usize) {
        let tasks = self.tasks(agent);
        let Some(host) = &mut self.naive[agent] else { return };
        let Some((changes, look)) = host.idle.take() else { return };
        let Some(idle) = self.looks[look].take() else { return };
        let may = changes == host.changes && tasks == 0;
        assert_eq!(idle.end(), may);
        if may {
            host.stage = TaskHostStage::Ending;
            host.changes += 1;
        }
    }

    fn end_host(&mut self, agent: usize) {
        let Some(host) = &mut self.naive[agent] else { return };
        let is_first = host.stage != TaskHostStage::Ending;
        assert_eq!(host.handle.end(), is_first);
        host.stage = TaskHostStage::Ending;
        host.changes += u64::from(is_first);
    }

    /// What is said of hosts that were lost has no effect.
    fn say_of_former(&self) {
        for host in &self.former {
            let said = (host.up(), host.leave(), host.end(), host.lost(), host.join());
            assert_eq!(said, (false, None, false, None, false));
            assert_eq!((host.stage(), host.tasks()), (TaskHostStage::None, 0));
        }
    }

    fn compare(&self) {
        self.kernel.check().unwrap();
        let totals = self.kernel.totals();
        let expected = (self.live.len() as u32, self.sums(0, |_| true));
        assert_eq!((totals.executors, totals.cores.millis()), expected);
        for (queue, number) in self.kernel.queues().iter().zip(0..) {
            let held = [0, 1].map(|kind| self.sums(kind, |it| it.queue == number));
            assert_eq!([queue.cores.millis(), queue.memory.get()], held, "{}", queue.name);
        }
        for agent in 0..AGENTS {
            let stage = self.naive[agent].as_ref().map_or(TaskHostStage::None, |host| host.stage);
            assert_eq!(self.hosts.stage(&format!("S{agent}")), stage, "S{agent}");
            let hosts = self.live.iter().filter(|it| it.agent == agent && it.is_host).count();
            assert_eq!(hosts, usize::from(stage != TaskHostStage::None));
            if let Some(host) = &self.naive[agent] {
                assert_eq!(host.handle.tasks(), self.tasks(agent), "S{agent}");
            }
        }
    }
}
