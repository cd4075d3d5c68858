//! [`WorkQueue`]: a queue of tasks with their commands, for frameworks that need no chooser, launcher and observer of
//! their own.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::Engine;
use super::agent_pauses::AgentPauses;
use super::agent_survey::AgentSurvey;
use super::host_ledger::{HostLedger, HostTerms};
use super::notice::Notice;
use super::sync::{Mutex, MutexGuard, lock};
use super::task_chooser::TaskChooser;
use super::undecided_ends::KeptEnd;
use crate::config::{Config, Placement};
use crate::error::Error;
use crate::ids::ExecutorId;
use crate::kernel::choosers::{BatchCaps, Chooser, WaitingTasks};
use crate::kernel::{Change, Kernel, Picks, Room, Rooms, Task, Unplaced};
use crate::launch::{Command, LaunchContext, Launcher};
use crate::resources::Gpus;
use crate::status::{Fate, ProcessReport};
use crate::time::Timestamp;

/// A queue of tasks with their commands: tasks are pushed with a rank, are started as soon as an agent has room, and
/// their ends are received. Those of a lower rank start first; of equal ones, those with a lower tag. A task that has
/// no room doesn't hold up smaller ones behind it, nor those of other [queues](Task::in_queue).
///
/// Each attempt that its agent has started has one end, which is received once. So to try again what has failed or was
/// lost is to push it again. When the engine has been shut down or dropped, the receiver ends, too: attempts without an
/// end are those whose ends the cluster had not told by then. Executors that the engine adopts from a former one are
/// none of the queue's.
///
/// A task that its agent never starts, because it drops it or because its host never runs, waits again, up to 16 times;
/// after that it ends as its agent says. The agent gets no tasks for a [pause](AgentPauses). If no host has ever run
/// and on each agent three have failed in a row, all tasks that wait fail with the reason: their ends name no
/// [executor](TaskEnd::executor). So they do if the cluster [refuses](Notice::Refused) the framework. With an
/// [exclusion rule](crate::config::ExclusionRule) that excludes agents before that, as the default one does after two
/// failures, tasks wait for the end of the exclusion instead; what an agent has no room on its disk for counts, too.
///
/// A task that the cluster rejects (`TASK_ERROR`) in a host that it has joined waits again, too, but at most
/// [three times](super::REJECTIONS_MAX): the host may have ended before the framework was told. After that, or if it
/// brings its host, it fails.
///
/// Whether a task had begun that is gone with its host is known once the end of the host is told as well. Until then it
/// counts as in flight. If the agent is lost meanwhile, or if it takes a minute, the task is lost.
///
/// A task that the caps or its queue never admit waits for ever, and so does one that is larger than all agents, as
/// long as none comes that is large enough. [`unstartable`](WorkQueue::unstartable) lists them, each with the reason,
/// such as the nearest agent and what that lacks: look at it now and then, and [`remove`](WorkQueue::remove) what is
/// not to wait.
///
/// Call [`end_surplus`](WorkQueue::end_surplus) now and then: it ends attempts that came back after they had been given
/// up, beside which the next one runs, and hosts that are idle.
///
/// ```
/// # #[cfg(feature = "local")]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use offermill::cluster::local::{LocalCluster, LocalConfig};
/// use offermill::engine::{EngineOptions, Unobserved, WorkQueue};
/// use offermill::launch::Command;
/// use offermill::resources::{Mebibytes, MilliCpus};
/// use offermill::{Config, Fate, IdScheme, Kernel, Task};
///
/// let (cores, memory) = (MilliCpus::from_millis(500), Mebibytes::new(16));
/// let (queue, ends) = WorkQueue::new(None);
/// for tag in 0..3 {
///     let command = Command::new(vec!["true".to_owned()]);
///     queue.push(0, Task::new(tag, cores, memory), command)?;
/// }
/// // That a task fails is no agent's fault: by default the second failure would exclude its agent for an hour.
/// let config = Config::builder().smallest_task(cores, memory).exclusion(None).build()?;
/// let kernel = Kernel::new(config, IdScheme::unique("work", 1)?);
/// let cluster = LocalCluster::new(LocalConfig::new("local-cluster[1,2,1024]".parse()?))?;
/// let engine = queue.start(kernel, Arc::new(cluster), EngineOptions::default(), Box::new(Unobserved))?;
/// for end in ends.iter().take(3) {
///     assert_eq!(end.fate, Fate::Finished, "{}", end.message);
/// }
/// engine.shutdown(Duration::from_secs(10));
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "local"))]
/// # fn main() {}
/// ```
///
/// # Hosts
/// With [`HostTerms`] tasks run in [hosts](HostLedger), whose tags begin at [`WorkQueue::HOST_TAGS`]. A cluster that
/// chooses agents itself, as Kubernetes does, has none: the [start](WorkQueue::start) fails.
///
/// # Demand
/// As that of each [`TaskChooser`]. While nothing waits for long, an executor limit of 0
/// ([`Engine::set_executor_limit`]) has offers suppressed.
pub struct WorkQueue {
    state: Mutex<WorkState>,
}

/// The end of an attempt to run a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskEnd {
    /// The task.
    pub task: Task,
    /// Its rank.
    pub rank: u64,
    /// The executor that the attempt was; empty if there was none and none will start.
    pub executor: String,
    /// How it has ended. One that was given up is lost, though it may still run; see
    /// [`UnreachableRule`](crate::config::UnreachableRule).
    pub fate: Fate,
    /// The cluster's message; may be empty.
    pub message: String,
    /// What the cluster says of its process.
    pub process: Option<Box<ProcessReport>>,
}

/// The numbers of a [`WorkQueue`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkCounts {
    /// Tasks that wait.
    pub waiting: usize,
    /// Tasks that were picked and haven't ended.
    pub in_flight: usize,
    /// Attempts so far that were never started, so that their tasks waited again: they have no ends.
    pub put_back: u64,
}

pub(super) struct WorkState {
    /// By tag: those that wait, and those that were picked and haven't ended.
    pub(super) tasks: HashMap<u64, QueuedTask>,
    pub(super) waiting: WaitingTasks,
    /// The tasks that were launched, by executor.
    pub(super) launched: HashMap<String, LaunchedTask>,
    /// Ends that are not told yet, by tag.
    pub(super) kept: HashMap<u64, KeptEnd>,
    /// Executors that came back after they had been given up, until [`WorkQueue::end_surplus`] ends them.
    returned: Vec<String>,
    pub(super) gpus_picked: u32,
    chooser: Chooser,
    pub(super) hosts: Option<HostLedger>,
    pub(super) pauses: AgentPauses,
    pub(super) survey: AgentSurvey,
    /// The settings, without the executor limit, under which the survey began.
    pub(super) survey_config: Option<Config>,
    /// The latest time that the queue was told.
    pub(super) now: Timestamp,
    /// How often a task was put back because it was never started.
    pub(super) put_back: u64,
    /// Why the cluster refuses this framework, if it does.
    pub(super) refused: Option<String>,
    /// Set when it is started.
    pub(super) kernel: Option<Kernel>,
    pub(super) start: EngineStart,
    /// `None` once its engine has ended.
    pub(super) ends: Option<Sender<TaskEnd>>,
}

/// The last start of a queue's engine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EngineStart {
    /// Its number, so that the end of an engine whose start has failed isn't taken for that of the present one.
    pub(super) number: u64,
    pub(super) is_under_way: bool,
    /// The engine has ended before its start has returned.
    pub(super) has_ended: bool,
}

#[derive(Clone)]
pub(super) struct QueuedTask {
    pub(super) task: Task,
    pub(super) rank: u64,
    command: Command,
    /// The agent that it was picked for last.
    pub(super) agent_id: String,
    /// How often it was put back because it was never started.
    pub(super) put_back: u32,
    /// How often of these it was rejected in a host that it had joined.
    pub(super) rejections: u32,
}

pub(super) struct LaunchedTask {
    pub(super) tag: u64,
    /// It was seen running, or was to end: however it ends, it isn't put back.
    pub(super) has_own_end: bool,
}

impl WorkQueue {
    /// The first tag of a host. Those of tasks are below.
    pub const HOST_TAGS: u64 = 1 << 63;

    /// An empty queue, and the ends of its tasks. With `hosts`, tasks run in these.
    #[must_use]
    pub fn new(hosts: Option<HostTerms>) -> (Arc<WorkQueue>, Receiver<TaskEnd>) {
        let (ends, received) = channel();
        let pauses = hosts.as_ref().map(|_| AgentPauses::awaiting_hosts()).unwrap_or_default();
        let state = WorkState {
            tasks: HashMap::new(),
            waiting: WaitingTasks::new(),
            launched: HashMap::new(),
            kept: HashMap::new(),
            returned: Vec::new(),
            gpus_picked: 0,
            chooser: Chooser::new(),
            hosts: hosts.map(|terms| HostLedger::new(terms, WorkQueue::HOST_TAGS)),
            pauses,
            survey: AgentSurvey::default(),
            survey_config: None,
            now: Timestamp::ORIGIN,
            refused: None,
            put_back: 0,
            kernel: None,
            start: EngineStart::default(),
            ends: Some(ends),
        };
        (Arc::new(WorkQueue { state: Mutex::new(state) }), received)
    }

    /// Adds a task. May be called at any time, by any thread. If the cluster has refused the framework, the task ends
    /// at once.
    ///
    /// # Errors
    /// If a task of its tag waits or hasn't ended, or if the tag isn't below [`WorkQueue::HOST_TAGS`]; and if the
    /// engine has ended ([`ErrorKind::Ended`](crate::ErrorKind::Ended)).
    pub fn push(&self, rank: u64, task: Task, command: Command) -> Result<(), Error> {
        let mut state = self.state();
        if state.ends.is_none() {
            return Err(Error::ended("the engine of the work queue has ended"));
        }
        if task.tag >= WorkQueue::HOST_TAGS || state.tasks.contains_key(&task.tag) {
            let allowed = "one below 2^63 that no task in the queue has";
            return Err(Error::setting("task's tag", task.tag, allowed));
        }
        let (agent_id, put_back, rejections) = (String::new(), 0, 0);
        let queued = QueuedTask { task, rank, command, agent_id, put_back, rejections };
        state.tasks.insert(task.tag, queued);
        state.waiting.insert(rank, &task);
        state.fail_if_refused();
        Ok(())
    }

    /// Removes a task that waits. Returns whether it did.
    pub fn remove(&self, tag: u64) -> bool {
        let mut state = self.state();
        let Some(QueuedTask { task, rank, .. }) = state.tasks.get(&tag).cloned() else {
            return false;
        };
        let is_waiting = state.waiting.remove(rank, &task);
        if is_waiting {
            state.tasks.remove(&tag);
        }
        is_waiting
    }

    /// How many tasks there are at the moment, and how many attempts have come to nothing.
    #[must_use]
    pub fn counts(&self) -> WorkCounts {
        let state = self.state();
        let waiting = state.waiting.len();
        WorkCounts { waiting, in_flight: state.tasks.len() - waiting, put_back: state.put_back }
    }

    /// Ends hosts that have been idle for their timeout, and executors that came back after they had been given up; and
    /// tells the ends of tasks that have waited for those of their hosts for a minute. To be called now and then, such
    /// as every second.
    pub fn end_surplus(&self, engine: &Engine) {
        let surplus = self.take_surplus(engine.clock().now());
        let ids = surplus.iter().filter_map(|executor| engine.kernel().executor_id(executor));
        let ids: Vec<ExecutorId> = ids.collect();
        if !ids.is_empty() {
            engine.kill(ids);
        }
    }

    /// Tells the ends that are decided by now. Returns the executors that are to end.
    pub(crate) fn take_surplus(&self, now: Timestamp) -> Vec<String> {
        let mut state = self.state();
        let mut surplus = std::mem::take(&mut state.returned);
        state.follow_settings(now);
        state.tell_decided(now);
        surplus.extend(state.hosts.iter_mut().flat_map(|hosts| hosts.end_idle(now)));
        surplus
    }

    pub(super) fn state(&self) -> MutexGuard<'_, WorkState> {
        lock(&self.state)
    }

    /// Follows a notice of the engine.
    pub(crate) fn noticed(&self, at: Timestamp, notice: &Notice) {
        let mut state = self.state();
        state.now = at.max(state.now);
        let (end, decided) = state.noticed(at, notice);
        let refused = state.refuse_without_hosts(at, notice);
        state.send(end.into_iter().chain(decided).chain(refused));
        if let Notice::Refused { why } = notice {
            state.refused = Some(why.clone());
        }
        // What is put back would wait for ever.
        state.fail_if_refused();
    }
}

impl WorkState {
    pub(super) fn send(&self, ends: impl IntoIterator<Item = TaskEnd>) {
        for end in ends {
            // Nobody receives it if the receiver is gone.
            let _is_received = self.ends.as_ref().map(|ends| ends.send(end));
        }
    }

    /// Tells the ends that were kept and aren't any longer.
    fn tell_decided(&mut self, now: Timestamp) {
        let ends = self.decide(now);
        self.send(ends);
        self.fail_if_refused();
    }

    /// Ends the tasks that wait if the cluster refuses the framework.
    fn fail_if_refused(&mut self) {
        if let Some(why) = self.refused.clone() {
            let ends = self.fail_waiting(&why);
            self.send(ends);
        }
    }

    /// What the kernel's caps of these settings leave for a batch, as far as that is known before it is committed.
    pub(super) fn caps(&self, config: &Config) -> BatchCaps {
        let Some(kernel) = &self.kernel else { return BatchCaps::default() };
        let totals = kernel.totals();
        let mut caps = BatchCaps::default();
        if let Some(limit) = config.executor_limit() {
            caps.executors = limit.saturating_sub(totals.executors).into();
        }
        if let Some(cap) = config.core_cap() {
            caps.left.cores = cap.saturating_sub(totals.cores);
        }
        caps.left.gpus = Gpus::new(config.gpu_cap().get().saturating_sub(self.gpus_picked));
        caps
    }

    /// A task that waited was picked for an agent.
    fn picked(&mut self, task: &Task, agent_id: &str) {
        let Some(queued) = self.tasks.get_mut(&task.tag) else { return };
        agent_id.clone_into(&mut queued.agent_id);
        self.waiting.remove(queued.rank, task);
        self.survey.taken(agent_id, task.sums());
        self.gpus_picked = self.gpus_picked.saturating_add(task.gpus.get());
    }

    pub(super) fn take_back(&mut self, tag: u64) {
        let _is_task = self.hosts.as_mut().map(|hosts| hosts.take_back(tag));
        let Some(QueuedTask { task, rank, agent_id, .. }) = self.tasks.get(&tag) else { return };
        let (task, rank) = (*task, *rank);
        self.survey.freed(agent_id, task.sums());
        self.gpus_picked = self.gpus_picked.saturating_sub(task.gpus.get());
        self.waiting.insert(rank, &task);
    }

    /// What a notice of an attempt tells of it.
    pub(super) fn follow(&mut self, notice: &Notice) -> Option<TaskEnd> {
        match notice {
            Notice::Placed(placed) => {
                let tag = placed.tag.filter(|tag| self.tasks.contains_key(tag))?;
                let launched = LaunchedTask { tag, has_own_end: false };
                self.launched.insert(placed.executor.clone(), launched);
                None
            }
            Notice::Updated { executor, change: Change::Ended(fate), message, process, .. } => {
                let end = self.end(executor, *fate)?;
                Some(TaskEnd { message: message.clone(), process: process.clone(), ..end })
            }
            Notice::GivenUp { executor } => {
                let end = self.end(executor, Fate::Lost)?;
                Some(TaskEnd { message: "it was unreachable for too long".to_owned(), ..end })
            }
            // Without a tag it is none of the queue's: the engine has adopted it.
            Notice::Updated { executor, tag: Some(_), change: Change::Readmitted, .. } => {
                self.returned.push(executor.clone());
                None
            }
            _ => None,
        }
    }

    /// The end of what was launched as this executor, if that hasn't had one.
    fn end(&mut self, executor: &str, fate: Fate) -> Option<TaskEnd> {
        let tag = self.launched.remove(executor)?.tag;
        let QueuedTask { task, rank, agent_id, .. } = self.tasks.remove(&tag)?;
        self.survey.freed(&agent_id, task.sums());
        self.gpus_picked = self.gpus_picked.saturating_sub(task.gpus.get());
        let (executor, message) = (executor.to_owned(), String::new());
        Some(TaskEnd { task, rank, executor, fate, message, process: None })
    }
}

impl TaskChooser for WorkQueue {
    fn choose(&self, rooms: &Rooms<'_>, now: Timestamp, picks: &mut Picks) {
        let mut guard = self.state();
        let Some((config, caps)) = guard.follow_settings(now) else { return };
        let mut hosts = guard.hosts.take();
        let queues = rooms.queues_left();
        let state = &mut *guard;
        state.survey.offered(rooms, hosts.as_ref(), now);
        let mut choose = |list: &[Room], queues, caps, picks: &mut Picks| {
            let is_wanted = |room: &Room| state.waiting.have_one_for(room);
            let open = state.pauses.open_rooms(rooms, list, is_wanted, now);
            let list = open.as_deref().unwrap_or(list);
            let wanted = state.waiting.admitted(queues, caps);
            match config.placement() {
                Placement::Consolidate => state.chooser.consolidate_waiting(list, wanted, picks),
                _ => state.chooser.round_robin_waiting(list, wanted, picks),
            };
        };
        match &mut hosts {
            Some(hosts) => hosts.pick(rooms, &queues, caps, picks, choose),
            None => choose(rooms.list(), queues, caps, picks),
        }
        guard.hosts = hosts;
        for pick in picks.iter() {
            let offer = rooms.offer_of(pick.room);
            guard.picked(&pick.task, offer.map_or("", |offer| offer.agent_id));
        }
        guard.follow_caps(caps, picks);
    }

    fn without_rooms(&self, rooms: &Rooms<'_>, now: Timestamp) {
        let mut state = self.state();
        state.follow_settings(now);
        let WorkState { survey, hosts, .. } = &mut *state;
        survey.offered(rooms, hosts.as_ref(), now);
    }

    fn unplaced(&self, unplaced: &[Unplaced]) {
        let mut state = self.state();
        unplaced.iter().for_each(|it| state.take_back(it.tag));
        state.fail_if_refused();
    }

    fn killing(&self, tag: u64) {
        self.state().hosts.iter().for_each(|hosts| hosts.ending(tag));
    }
}

impl Launcher for WorkQueue {
    fn command(&self, context: &LaunchContext<'_>) -> Command {
        let mut state = self.state();
        if let Some(host) = state.hosts.as_mut().and_then(|hosts| hosts.command(context)) {
            return host;
        }
        // Each executor that is placed for the queue has a tag.
        let Some(tag) = context.tag else { return Command::default() };
        let command = state.tasks.get(&tag).map(|task| task.command.clone()).unwrap_or_default();
        match &state.hosts {
            Some(hosts) => command.with_hosting(hosts.hosting(tag)),
            None => command,
        }
    }
}

impl fmt::Debug for WorkQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use std::cell::Cell;
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::Duration;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::engine::work_engine::WorkObserver;
    use crate::engine::{PlacedExecutor, REJECTIONS_MAX};
    use crate::ids::IdScheme;
    use crate::kernel::{Decisions, Reason};
    use crate::offer::{Offer, Resource};
    use crate::resources::{Mebibytes, MilliCpus};
    use crate::status::{StatusUpdate, TaskState, UpdateReason};

    /// A queue with a kernel and a handler, in place of an engine.
    struct Queued {
        queue: Arc<WorkQueue>,
        ends: Receiver<TaskEnd>,
        kernel: Kernel,
        now: Cell<Timestamp>,
    }

    impl Queued {
        /// Tasks have 500 thousandths of a core and more, two cores together if they are capped.
        fn new(hosts: bool, capped: bool) -> Queued {
            let host_cores = hosts.then_some(MilliCpus::from_millis(100));
            Queued::with(host_cores, capped.then_some(MilliCpus::from_cores(2)), 500)
        }

        /// Tasks have this many thousandths of a core and more; hosts, if there are any, have these cores.
        fn with(host_cores: Option<MilliCpus>, cap: Option<MilliCpus>, smallest: u64) -> Queued {
            let terms = |cores| {
                // Less than an end of a task waits for that of its host.
                let idle_timeout = Duration::from_secs(20);
                HostTerms { idle_timeout, cores, ..HostTerms::new(vec!["host".to_owned()]) }
            };
            let (queue, ends) = WorkQueue::new(host_cores.map(terms));
            let config = Config::builder()
                .smallest_task(MilliCpus::from_millis(smallest), Mebibytes::new(8))
                .core_cap(cap)
                .exclusion(None);
            let kernel = Kernel::new(config.build().unwrap(), IdScheme::unique("w", 1).unwrap());
            queue.state().kernel = Some(kernel.clone());
            Queued { queue, ends, kernel, now: Cell::new(Timestamp::ORIGIN) }
        }

        fn push(&self, tag: u64, rank: u64, millis: u64) -> bool {
            let task = Task::new(tag, MilliCpus::from_millis(millis), Mebibytes::new(8));
            self.queue.push(rank, task, Command::new(vec![format!("task-{tag}")])).is_ok()
        }

        /// Answers an offer of so many cores of an agent. Returns what was placed: tags, with executors.
        fn offer(&self, agent: &str, cores: f64) -> Vec<(u64, String)> {
            self.offer_with(agent, cores, 256.0)
        }

        /// The same with this memory.
        fn offer_with(&self, agent: &str, cores: f64, memory: f64) -> Vec<(u64, String)> {
            self.offer_of(agent, "host", cores, memory)
        }

        /// The same of an agent with this host name.
        fn offer_of(&self, agent: &str, host: &str, cores: f64, memory: f64) -> Vec<(u64, String)> {
            let resources = [Resource::scalar("cpus", cores), Resource::scalar("mem", memory)];
            let offers = [Offer::new("O", agent, host, &resources, &[])];
            let (mut handler, mut decisions) = (self.kernel.handler(), Decisions::new());
            let mut picks = Picks::new();
            let now = self.now.get();
            let rooms = handler.propose(&offers, now);
            match rooms.list() {
                [] => self.queue.without_rooms(&rooms, now),
                _ => self.queue.choose(&rooms, now, &mut picks),
            }
            rooms.commit(&picks, now, &mut decisions);
            self.queue.unplaced(decisions.unplaced());
            let mut placed = Vec::new();
            for accepted in decisions.accepts() {
                for (tag, task) in accepted.tasks() {
                    let executor = self.kernel.executor_name(task.id).to_string();
                    self.launch(tag, task.id, &executor, agent);
                    placed.push((tag, executor));
                }
            }
            placed
        }

        fn launch(&self, tag: u64, id: ExecutorId, executor: &str, agent: &str) {
            let (cores, memory) = (MilliCpus::from_cores(1), Mebibytes::new(8));
            let mut context = LaunchContext::new(executor, agent, "host", cores, memory);
            context.tag = Some(tag);
            let command = self.queue.command(&context);
            let expected = match tag {
                WorkQueue::HOST_TAGS.. => "host".to_owned(),
                tag => format!("task-{tag}"),
            };
            assert_eq!(command.argv, [expected]);
            let resources = crate::resources::ExecutorResources::NONE;
            self.noticed(Notice::Placed(PlacedExecutor {
                id,
                executor: executor.to_owned(),
                agent_id: agent.to_owned(),
                hostname: "host".to_owned(),
                resources,
                tag: Some(tag),
            }));
        }

        fn update(&self, executor: &str, change: Change) {
            self.update_as(executor, TaskState::Finished, change);
        }

        /// How many tasks wait, and how many are in flight.
        fn tasks(&self) -> (usize, usize) {
            let WorkCounts { waiting, in_flight, .. } = self.queue.counts();
            (waiting, in_flight)
        }

        fn noticed(&self, notice: Notice) {
            self.queue.noticed(self.now.get(), &notice);
        }

        fn sleep(&self, seconds: u64) {
            self.now.set(self.now.get().plus(Duration::from_secs(seconds)));
        }

        fn tell_decided(&self) {
            self.queue.state().tell_decided(self.now.get());
        }

        /// The hosts that are ended because they are idle.
        fn end_idle(&self) -> Vec<String> {
            let now = self.now.get();
            self.queue.state().hosts.iter_mut().flat_map(|hosts| hosts.end_idle(now)).collect()
        }

        fn update_as(&self, executor: &str, state: TaskState, change: Change) {
            self.told(executor, state, change, UpdateReason::Other);
        }

        /// The cluster rejects what was launched as this executor.
        fn reject(&self, executor: &str) {
            self.update_as(executor, TaskState::Error, Change::Ended(Fate::Failed));
        }

        /// The end of an executor that is lost for a reason.
        fn update_for(&self, executor: &str, state: TaskState, reason: UpdateReason) {
            self.told(executor, state, Change::Ended(Fate::Lost), reason);
        }

        fn told(&self, executor: &str, state: TaskState, change: Change, reason: UpdateReason) {
            if let Change::Ended(_) = change {
                self.kernel.status_update(&StatusUpdate::new(executor, state), self.now.get());
            }
            self.noticed(Notice::Updated {
                executor: executor.to_owned(),
                tag: None,
                state,
                change,
                message: "why".to_owned(),
                reported_at: None,
                reason,
                process: None,
            });
        }
    }

    /// Goal: tasks start in the order of ranks, then of tags; one without room holds up no smaller one. Method: three
    /// tasks of half a core with ranks, and two of four cores before them, on an agent of one core and one of eight.
    #[test]
    fn ranks_say_the_order() {
        let queued = Queued::new(false, false);
        for (tag, rank, millis) in
            [(7, 0, 4000), (5, 9, 500), (4, 2, 500), (3, 9, 500), (6, 1, 4000)]
        {
            assert!(queued.push(tag, rank, millis));
        }
        let tags = |placed: Vec<(u64, String)>| placed.into_iter().map(|(tag, _)| tag).collect();
        let placed: Vec<u64> = tags(queued.offer("S1", 1.0));
        assert_eq!(placed, [4, 3]);
        assert_eq!(queued.tasks(), (3, 2));
        let placed: Vec<u64> = tags(queued.offer("S2", 8.0));
        assert_eq!(placed, [7, 6]);
    }

    /// Goal: a task larger than what a cap leaves holds up none behind it. Method: one of three cores before tasks of
    /// half a core, under a cap of two cores, with and without hosts, on an agent that has room for all and on one that
    /// it would fill.
    #[test]
    fn a_large_task_at_a_cap_holds_up_nobody() {
        for (hosts, cores) in [(false, 8.0), (false, 3.0), (true, 8.0), (true, 3.1)] {
            let queued = Queued::new(hosts, true);
            assert!(queued.push(0, 0, 3000));
            (1..9).for_each(|tag| assert!(queued.push(tag, 0, 500)));
            assert_eq!(queued.offer("S1", cores).len(), 4);
            assert_eq!(queued.tasks(), if hosts { (6, 3) } else { (5, 4) });
        }
    }

    /// Goal: ends are received until the engine is gone, and then no more are waited for. Method: the observer is
    /// dropped, as the engine does at its end.
    #[test]
    fn the_receiver_ends_with_the_engine() {
        let queued = Queued::new(false, false);
        let observer = Box::new(crate::engine::Unobserved);
        drop(WorkObserver::new(&queued.queue, 0, observer));
        assert!(queued.ends.recv().is_err());
    }

    /// Goal: an attempt that comes back after it was given up is ended, and an executor that the engine has adopted is
    /// not. Method: both come back, with a tag and without.
    #[test]
    fn only_its_own_attempts_are_surplus() {
        let queued = Queued::new(false, false);
        for (executor, tag) in [("own", Some(1)), ("adopted", None)] {
            queued.noticed(Notice::Updated {
                executor: executor.to_owned(),
                tag,
                state: TaskState::Running,
                change: Change::Readmitted,
                message: String::new(),
                reported_at: None,
                reason: UpdateReason::Other,
                process: None,
            });
        }
        assert_eq!(queued.queue.state().returned, ["own"]);
    }

    /// Goal: a cap that leaves room for a host and few tasks starves none. Method: tasks of half a core and two cores
    /// for all, with hosts of 0.1; an agent with more.
    #[test]
    fn caps_leave_room_for_a_host() {
        let queued = Queued::new(true, true);
        (0..9).for_each(|tag| assert!(queued.push(tag, 0, 500)));
        assert_eq!(queued.offer("S1", 8.0).len(), 4, "the host and three tasks");
        assert_eq!(queued.tasks(), (6, 3));
    }

    /// Goal: an agent that drops what it is given gets no tasks for a pause that grows until it runs something, and the
    /// tasks wait without an end. Method: an agent that drops a task again and again, and another one in its pause.
    #[test]
    fn agents_that_start_nothing_have_pauses() {
        let queued = Queued::new(false, false);
        assert!(queued.push(0, 0, 500));
        let lost = Change::Ended(Fate::Lost);
        for pause in [1, 2, 4, 8] {
            let placed = queued.offer("S1", 1.0);
            queued.update_as(&placed[0].1, TaskState::Dropped, lost);
            assert_eq!(queued.tasks(), (1, 0));
            queued.sleep(pause - 1);
            assert_eq!(queued.offer("S1", 1.0), []);
            queued.sleep(1);
        }
        let placed = queued.offer("S1", 1.0);
        queued.update_as(&placed[0].1, TaskState::Running, Change::Running);
        queued.update_as(&placed[0].1, TaskState::Dropped, lost);
        assert_eq!(queued.ends.try_iter().map(|end| end.fate).collect::<Vec<_>>(), [Fate::Lost]);
        assert!(queued.push(0, 0, 500));
        queued.update_as(&queued.offer("S1", 1.0)[0].1, TaskState::Dropped, lost);
        assert_eq!((queued.offer("S1", 1.0), queued.offer("S2", 1.0).len()), (vec![], 1));
    }

    /// Goal: if the cluster refuses the framework, what waits fails with the reason, and what is pushed, put back or
    /// not placed later at once; what is in flight keeps its own end. Method: a refusal with a task of each kind.
    #[test]
    fn nothing_waits_for_a_cluster_that_refuses() {
        let queued = Queued::new(false, false);
        assert!(queued.push(0, 0, 500));
        let executor = queued.offer("S1", 0.5)[0].1.clone();
        assert!(queued.push(1, 7, 500) && queued.push(2, 3, 500));
        queued.noticed(Notice::Refused { why: "no".to_owned() });
        assert!(queued.push(3, 0, 500));
        let told = || queued.ends.try_iter().map(|it| (it.task.tag, it.executor, it.message));
        let refused = |tag| (tag, String::new(), "no".to_owned());
        assert_eq!(told().collect::<Vec<_>>(), [refused(2), refused(1), refused(3)]);
        queued.update(&executor, Change::Ended(Fate::Finished));
        assert_eq!(told().map(|end| end.0).collect::<Vec<_>>(), [0]);

        let queued = Queued::new(false, false);
        assert!(queued.push(0, 0, 500) && queued.push(1, 0, 500));
        let placed = queued.offer("S1", 1.0);
        queued.noticed(Notice::Refused { why: "no".to_owned() });
        queued.update_as(&placed[0].1, TaskState::Dropped, Change::Ended(Fate::Lost));
        let unplaced = Unplaced { pick: 0, tag: placed[1].0, reason: Reason::Stopping };
        queued.queue.unplaced(&[unplaced]);
        let told = queued.ends.try_iter().map(|it| (it.task.tag, it.executor, it.message));
        assert_eq!(
            told.collect::<Vec<_>>(),
            [0, 1].map(|tag| (tag, String::new(), "no".to_owned()))
        );
    }

    /// Goal: a task that was to end isn't started again. Method: one that is dropped after it was told to be killed.
    #[test]
    fn what_was_to_end_is_not_put_back() {
        let queued = Queued::new(false, false);
        assert!(queued.push(0, 0, 500));
        let executor = queued.offer("S1", 1.0)[0].1.clone();
        queued.update_as(&executor, TaskState::Killing, Change::Nothing);
        queued.update_as(&executor, TaskState::Dropped, Change::Ended(Fate::Lost));
        assert_eq!((queued.ends.try_iter().count(), queued.tasks()), (1, (0, 0)));
    }

    /// Goal: tasks that fit on no agent are told, in their order and with the nearest, once all agents were seen for
    /// 30 s, and not while a cap has all offers declined, nor after settings have changed, an agent is lost or has
    /// grown; with hosts, what is left beside one counts. Method: a task of 1.5 cores and one of 0.5, on agents of one
    /// core, with and without hosts; each of these events, and the time after it.
    #[test]
    fn what_fits_nowhere_is_told() {
        let told = |queued: &Queued| {
            let list = queued.queue.unstartable();
            for (task, why) in &list {
                assert_eq!(queued.queue.never_starts(task).as_ref(), Some(why));
            }
            list.into_iter().map(|(task, why)| (task.tag, why)).collect::<Vec<_>>()
        };
        for (hosts, has, lack) in [(false, "1", "0.5"), (true, "0.9", "0.6")] {
            let queued = Queued::new(hosts, true);
            assert!(queued.push(7, 0, 1500) && queued.push(3, 1, 1500));
            let after = |seconds| {
                queued.sleep(seconds);
                assert_eq!(queued.offer("S1", 1.0), []);
            };
            let cores = if has == "1" { "core" } else { "cores" };
            let memory = if hosts { 224 } else { 256 };
            let why = format!(
                "it fits on no agent: it takes 1.5 cores and 8 MiB; the nearest agent, host, has {has} {cores} and \
                 {memory} MiB, and lacks {lack} cores"
            );
            let expected = [(7, why.clone()), (3, why)];
            after(0);
            after(29);
            assert_eq!(told(&queued), []);
            after(1);
            assert_eq!(told(&queued), expected);
            queued.noticed(Notice::AgentLost { agent_id: "S2".to_owned() });
            after(29);
            assert_eq!(told(&queued), []);
            after(1);
            assert_eq!(told(&queued), expected);
            // Another setting, and a limit that leaves nothing, as one that has offers suppressed.
            let config = queued.kernel.config().to_builder().core_cap(None);
            queued.kernel.reconfigure(config.build().unwrap());
            assert_eq!(told(&queued), []);
            after(0);
            after(30);
            assert_eq!(told(&queued), expected);
            queued.kernel.set_executor_limit(Some(0)).unwrap();
            assert_eq!(told(&queued), []);
            queued.kernel.set_executor_limit(Some(9)).unwrap();
            queued.sleep(100);
            assert_eq!(told(&queued), []);
            after(0);
            after(30);
            assert_eq!(told(&queued), expected);
            assert_eq!(queued.offer("S2", 4.0).len(), if hosts { 3 } else { 2 });
            assert_eq!(told(&queued), []);
            assert!(queued.push(9, 0, 1500));
            after(1000);
            assert_eq!(told(&queued), [], "its like runs");
        }
    }

    /// Goal: if no agent has room for a host, that is told of tasks that wait, with the nearest agent; and if one has,
    /// a task that is too large beside it. Method: hosts of three cores; offers of two cores, which are as much as the
    /// smallest task takes and less; then one of four, and of two again.
    #[test]
    fn a_host_that_fits_nowhere_is_told() {
        for smallest in [500, 2500] {
            let queued = Queued::with(Some(MilliCpus::from_cores(3)), None, smallest);
            let told = || {
                let list = queued.queue.unstartable();
                list.into_iter().map(|(task, why)| (task.tag, why)).collect::<Vec<_>>()
            };
            assert!(queued.push(0, 0, 2500));
            let after = |seconds, cores| {
                queued.sleep(seconds);
                assert_eq!(queued.offer("S1", cores), []);
            };
            after(0, 2.0);
            after(29, 2.0);
            assert_eq!(told(), []);
            after(1, 2.0);
            let why = "its host fits on no agent: it takes 3 cores and 32 MiB; the nearest agent, host, has 2 cores \
                       and 256 MiB, and lacks 1 core";
            assert_eq!(told(), [(0, why.to_owned())]);
            after(0, 4.0);
            after(29, 2.0);
            assert_eq!(told(), []);
            after(1, 2.0);
            let why = "it fits on no agent: it takes 2.5 cores and 8 MiB; the nearest agent, host, has 1 core and 224 \
                       MiB, and lacks 1.5 cores";
            assert_eq!(told(), [(0, why.to_owned())]);
        }
    }

    /// Goal: a cap that is reached, by tasks that are placed or only picked, stops the survey of agents. Method: a pick
    /// that takes the rest of the cap beside a task that fits nowhere, and the time after it has ended, without a look
    /// at the queue in between.
    #[test]
    fn no_agents_are_seen_at_a_cap() {
        let queued = Queued::new(false, true);
        assert!(queued.push(0, 0, 1000) && queued.push(1, 0, 1000) && queued.push(2, 0, 1800));
        let first = queued.offer("S1", 1.0)[0].1.clone();
        assert_eq!(queued.offer("S2", 1.0).len(), 1, "it reaches the cap");
        queued.sleep(1000);
        queued.update(&first, Change::Ended(Fate::Finished));
        assert_eq!(queued.offer("S1", 1.0), []);
        assert_eq!(queued.queue.unstartable(), []);
        queued.sleep(30);
        assert_eq!(queued.offer("S1", 1.0), []);
        assert_eq!(queued.queue.unstartable().len(), 1);
    }

    /// Goal: tasks that are all of one size, larger than what each agent has, are told, though the kernel declines all
    /// offers as too small for the smallest task. Method: such tasks and agents, of which one lacks cores and one
    /// memory.
    #[test]
    fn offers_below_the_smallest_task_are_seen() {
        let queued = Queued::with(None, None, 3000);
        assert!(queued.push(0, 0, 3000));
        for seconds in [0, 30] {
            queued.sleep(seconds);
            assert_eq!((queued.offer("S1", 1.0), queued.offer("S2", 2.5)), (vec![], vec![]));
        }
        let why = "it fits on no agent: it takes 3 cores and 8 MiB; the nearest agent, host, has 2.5 cores and 256 \
                   MiB, and lacks 0.5 cores";
        let told = queued.queue.unstartable();
        assert_eq!(
            told.iter().map(|(task, why)| (task.tag, &**why)).collect::<Vec<_>>(),
            [(0, why)]
        );
        assert_eq!(queued.offer("S3", 3.0).len(), 1);
    }

    /// Goal: an agent that takes one executor, as while the kernel waits for hosts, is told as such if tasks run in
    /// hosts, and is no obstacle otherwise; then an agent that is left out meanwhile isn't taken for gone. Method: a
    /// wait for one of two hosts, and tasks of which one fits on the other host's agent alone; the end of the wait.
    #[test]
    fn agents_of_one_executor_have_no_room_for_hosts() {
        for hosts in [true, false] {
            let queued = Queued::new(hosts, false);
            let hour = Duration::from_secs(3600);
            let config = queued.kernel.config().to_builder().locality_wait(Some(hour));
            queued.kernel.reconfigure(config.build().unwrap());
            queued.kernel.set_locality(["host"]);
            assert!(queued.push(0, 0, 1500) && queued.push(1, 0, 3000) && queued.push(2, 0, 6000));
            let mut first = queued.offer("S1", 2.0);
            for seconds in [0, 30] {
                queued.sleep(seconds);
                assert_eq!(queued.offer_of("S1", "host", 1.0, 256.0), []);
                assert_eq!(queued.offer_of("S2", "other", 4.0, 256.0), []);
            }
            let told = queued.queue.unstartable();
            let told: Vec<(u64, &str)> =
                told.iter().map(|(task, why)| (task.tag, &**why)).collect();
            if hosts {
                assert_eq!(first, []);
                let why = |nearest| {
                    let why = "it and its host are two executors, and agents take one each";
                    format!("{why}, as the nearest, {nearest}, does")
                };
                let [enough, both] = [why("host"), why("other")];
                assert_eq!(told, [(0, &*enough), (1, &*both), (2, &*both)]);
            } else {
                assert_eq!(first.remove(0).0, 0);
                let why = "it fits on no agent: it takes 6 cores and 8 MiB; the nearest agent, other, has 4 cores and \
                           256 MiB, and lacks 2 cores";
                assert_eq!(told, [(2, why)]);
            }
            queued.sleep(3600);
            assert!(!queued.offer_of("S2", "other", 4.0, 256.0).is_empty());
            for seconds in [0, 30] {
                queued.sleep(seconds);
                assert_eq!(queued.offer("S1", 0.1), []);
            }
            assert_eq!(queued.queue.unstartable().len(), 1, "it is too large all the same");
        }
    }

    /// Goal: an agent that never offers all that it has counts with the most of each kind, for a host as well. Method:
    /// an agent that offers too few cores for a host, then too little memory.
    #[test]
    fn parts_of_an_agent_have_room_for_a_host() {
        let queued = Queued::with(Some(MilliCpus::from_cores(3)), None, 500);
        assert!(queued.push(0, 0, 500) && queued.push(1, 0, 1500));
        for (seconds, cores, memory) in [(0, 2.0, 256.0), (30, 4.0, 16.0), (30, 2.0, 256.0)] {
            queued.sleep(seconds);
            assert_eq!(queued.offer_with("S1", cores, memory), []);
        }
        let told = queued.queue.unstartable();
        let why = "it fits on no agent: it takes 1.5 cores and 8 MiB; the nearest agent, host, has 1 core and 224 \
                   MiB, and lacks 0.5 cores";
        assert_eq!(
            told.iter().map(|(task, why)| (task.tag, &**why)).collect::<Vec<_>>(),
            [(1, why)]
        );
    }

    /// Goal: an agent that makes no more offers, and isn't told as lost, as one that is drained, counts no longer once
    /// others have made offers for 10 min, and again with its next offer; it counts as long as a task runs there, its
    /// last offer may be refused, no offers come, or its offers are declined for what they are. Method: a task fits
    /// on such an agent alone, beside another one that goes on, in each of these cases.
    #[test]
    fn a_silent_agent_is_forgotten() {
        let begun = |refused: u64| {
            let queued = Queued::new(false, false);
            let mut refuse = queued.kernel.config().refuse_durations();
            refuse.other = Duration::from_secs(refused);
            let config = queued.kernel.config().to_builder().refuse_durations(refuse);
            queued.kernel.reconfigure(config.build().unwrap());
            assert!(queued.push(0, 0, 1500));
            let (_, executor) = queued.offer("S2", 2.0).remove(0);
            assert!(queued.push(1, 0, 1500));
            (queued, executor)
        };
        let told_after = |queued: &Queued, minutes: u64, also: &dyn Fn()| {
            for _ in 0..minutes * 6 {
                queued.sleep(10);
                assert_eq!(queued.offer("S1", 1.0), []);
                also();
            }
            !queued.queue.unstartable().is_empty()
        };
        let nothing = || {};
        let ended = |executor: &str, queued: &Queued| {
            queued.update(executor, Change::Ended(Fate::Finished));
        };
        let (queued, executor) = begun(120);
        assert!(!told_after(&queued, 60, &nothing), "its task runs");
        ended(&executor, &queued);
        assert!(told_after(&queued, 2, &nothing), "it was silent for long enough");
        assert!(queued.queue.unstartable()[0].1.contains("1 core and 256 MiB, and lacks 0.5"));
        assert_eq!(queued.offer("S2", 2.0).len(), 1, "it is back");
        assert_eq!(queued.queue.unstartable(), []);

        let (queued, executor) = begun(120);
        ended(&executor, &queued);
        assert!(!told_after(&queued, 11, &nothing));
        queued.sleep(24 * 3600);
        assert!(!told_after(&queued, 0, &nothing), "others were silent as well");
        assert!(told_after(&queued, 3, &nothing));

        let (queued, executor) = begun(3600);
        ended(&executor, &queued);
        assert!(!told_after(&queued, 69, &nothing), "its offer may be refused");
        assert!(told_after(&queued, 3, &nothing));

        let (queued, executor) = begun(120);
        ended(&executor, &queued);
        // It lacks memory for anything.
        let too_small = || assert_eq!(queued.offer_with("S2", 2.0, 1.0), []);
        assert!(!told_after(&queued, 60, &too_small), "it is there");
        assert!(told_after(&queued, 14, &nothing));
    }

    /// Goal: without a subscription no agents are seen, and what a task gives back counts before the agent's next
    /// offer. Method: the time after a disconnection, and after the first batch of the next subscription; an agent of
    /// which another framework had a part when the task came.
    #[test]
    fn agents_are_not_misjudged_in_between() {
        let queued = Queued::new(false, false);
        assert!(queued.push(0, 0, 1000) && queued.push(1, 0, 4000));
        let first = queued.offer("S1", 2.0)[0].1.clone();
        queued.noticed(Notice::Disconnected);
        queued.sleep(1000);
        queued.tell_decided();
        assert_eq!(queued.offer("S1", 3.0), []);
        assert_eq!(queued.queue.unstartable(), [], "one task more leaves room for the other");
        queued.sleep(1000);
        queued.update(&first, Change::Ended(Fate::Finished));
        assert_eq!(queued.queue.unstartable(), [], "so it does without an offer since");
        assert_eq!(queued.offer("S1", 2.0), []);
        assert_eq!(queued.queue.unstartable().len(), 1, "others have the rest");
    }

    /// Goal: a task that no agent starts ends at last, with the reason. Method: agents that drop it, each once.
    #[test]
    fn a_task_that_nobody_starts_ends() {
        let queued = Queued::new(false, false);
        assert!(queued.push(0, 0, 500));
        for agent in 0..=16 {
            assert_eq!(queued.ends.try_iter().count(), 0, "dropped {agent} times");
            let placed = queued.offer(&format!("S{agent}"), 1.0);
            queued.update_as(&placed[0].1, TaskState::Dropped, Change::Ended(Fate::Lost));
        }
        let told: Vec<_> = queued.ends.try_iter().map(|end| (end.fate, end.message)).collect();
        assert_eq!((told, queued.tasks()), (vec![(Fate::Lost, "why".to_owned())], (0, 0)));
    }

    /// Goal: a task that may have run in a host which was not heard to run is lost. Method: host and task are gone with
    /// their agent, in either order.
    #[test]
    fn what_is_gone_with_its_agent_is_lost() {
        for host_first in [false, true] {
            let queued = Queued::new(true, false);
            assert!(queued.push(0, 0, 500));
            let mut placed = queued.offer("S1", 4.0);
            placed.sort_by_key(|(tag, _)| (*tag < WorkQueue::HOST_TAGS) == host_first);
            for (_, executor) in &placed {
                queued.update_for(executor, TaskState::Gone, UpdateReason::AgentRemoved);
            }
            let fates: Vec<Fate> = queued.ends.try_iter().map(|end| end.fate).collect();
            assert_eq!((fates, queued.tasks()), (vec![Fate::Lost], (0, 0)));
        }
    }

    /// Goal: tasks fail once the host of each agent has failed three times before it ran, with the reason, and not
    /// before; whichever end is told first. Method: two agents, one after the other; then hosts that fail after one
    /// has run.
    #[test]
    fn tasks_fail_if_no_host_runs() {
        let queued = Queued::new(true, false);
        (0..2).for_each(|tag| assert!(queued.push(tag, 0, 3000)));
        let lost = Change::Ended(Fate::Lost);
        let fail = |mut placed: Vec<(u64, String)>, host_first: bool| {
            placed.sort_by_key(|(tag, _)| (*tag < WorkQueue::HOST_TAGS) == host_first);
            for (tag, executor) in &placed {
                match *tag {
                    WorkQueue::HOST_TAGS.. => {
                        queued.update_as(executor, TaskState::Failed, Change::Ended(Fate::Failed));
                    }
                    _ => queued.update_as(executor, TaskState::Gone, lost),
                }
            }
        };
        for round in 0..3 {
            for agent in ["S1", "S2"] {
                assert_eq!(queued.ends.try_iter().count(), 0, "round {round}");
                let placed = queued.offer(agent, 4.0);
                assert_eq!(placed.len(), 2, "a host and its task");
                fail(placed, round % 2 == 0);
            }
            queued.sleep(60);
        }
        let told = |end: TaskEnd| (end.task.tag, end.executor, end.fate, end.message);
        let ends: Vec<_> = queued.ends.try_iter().map(told).collect();
        let why = "no host of tasks has started on any agent: why".to_owned();
        let end = |tag| (tag, String::new(), Fate::Failed, why.clone());
        assert_eq!(ends, [end(0), end(1)]);
        assert_eq!(queued.tasks(), (0, 0));

        assert!(queued.push(0, 0, 3000));
        let placed = queued.offer("S1", 4.0);
        placed.iter().for_each(|it| queued.update_as(&it.1, TaskState::Running, Change::Running));
        fail(placed, true);
        assert_eq!(queued.ends.try_iter().map(|end| end.fate).collect::<Vec<_>>(), [Fate::Lost]);
        assert!(queued.push(0, 0, 3000));
        for _ in 0..4 {
            fail(queued.offer("S1", 4.0), true);
            queued.sleep(60);
        }
        assert_eq!((queued.ends.try_iter().count(), queued.tasks()), (0, (1, 0)));
    }

    /// A queue of which a host runs on `S1`, and a task in it, which has the tag 0.
    fn with_host() -> Queued {
        let queued = Queued::new(true, false);
        assert!(queued.push(0, 0, 500));
        for (_, executor) in queued.offer("S1", 4.0) {
            queued.update_as(&executor, TaskState::Running, Change::Running);
        }
        queued
    }

    /// Goal: a task that is rejected in a host that it has joined, which may have ended before the framework was told,
    /// waits again three times, while its agent has a pause; once more and it fails, on whatever agent. Method: a task
    /// that joins a host and is rejected, dropped when it joins it again, and then rejected there or in the host of
    /// another agent until it fails.
    #[test]
    fn what_is_rejected_in_a_host_is_put_back_three_times() {
        for last in ["S1", "S2"] {
            let queued = with_host();
            assert!(queued.push(2, 0, 500));
            for (_, executor) in queued.offer("S2", 1.0) {
                queued.update_as(&executor, TaskState::Running, Change::Running);
            }
            assert!(queued.push(1, 0, 500));
            let placed = queued.offer("S1", 1.0);
            assert_eq!(placed.iter().map(|(tag, _)| *tag).collect::<Vec<_>>(), [1]);
            queued.reject(&placed[0].1);
            queued.reject(&placed[0].1);
            assert_eq!((queued.ends.try_iter().count(), queued.tasks()), (0, (1, 2)));
            assert_eq!(queued.queue.counts().put_back, 1);
            assert_eq!(queued.offer("S1", 1.0), [], "the agent has a pause");
            queued.sleep(1);
            let dropped = queued.offer("S1", 1.0)[0].1.clone();
            queued.update_as(&dropped, TaskState::Dropped, Change::Ended(Fate::Lost));
            for put_back in 3..=4 {
                queued.sleep(60);
                queued.reject(&queued.offer(last, 1.0)[0].1);
                assert_eq!((queued.ends.try_iter().count(), queued.tasks()), (0, (1, 2)));
                assert_eq!(queued.queue.counts().put_back, put_back);
            }
            queued.sleep(60);
            queued.reject(&queued.offer(last, 1.0)[0].1);
            let told = queued.ends.try_iter().map(|end| (end.task.tag, end.fate, end.message));
            assert_eq!(told.collect::<Vec<_>>(), [(1, Fate::Failed, "why".to_owned())]);
            assert_eq!((queued.queue.counts().put_back, queued.tasks()), (4, (0, 2)));
            assert!(queued.push(1, 0, 500));
            queued.sleep(60);
            queued.reject(&queued.offer(last, 1.0)[0].1);
            assert_eq!(queued.tasks(), (1, 2), "it is another task");
        }
    }

    /// Goal: a rejection says that a task never began only if the task has joined a host of another, has neither been
    /// told as running nor was to end, and the cluster tells the rejection itself; otherwise the task fails.
    /// Method: a task without hosts, one that brings its host, one that runs, one that is to end, and one of which it
    /// is the last that the cluster knows.
    #[test]
    fn other_rejections_are_failures() {
        let fates = |queued: &Queued| {
            assert_eq!((queued.queue.counts().put_back, queued.tasks().0), (0, 0));
            queued.ends.try_iter().map(|end| end.fate).collect::<Vec<_>>()
        };
        for hosts in [false, true] {
            let queued = Queued::new(hosts, false);
            assert!(queued.push(0, 0, 500));
            let mut placed = queued.offer("S1", 4.0);
            placed.sort_unstable();
            queued.reject(&placed[0].1);
            assert_eq!(fates(&queued), [Fate::Failed], "hosts: {hosts}");
        }
        for (before, reason) in [
            (Some((TaskState::Running, Change::Running)), UpdateReason::Other),
            (Some((TaskState::Killing, Change::Nothing)), UpdateReason::Other),
            (None, UpdateReason::Reconciliation),
        ] {
            let queued = with_host();
            assert!(queued.push(1, 0, 500));
            let executor = queued.offer("S1", 1.0)[0].1.clone();
            before.iter().for_each(|(state, change)| queued.update_as(&executor, *state, *change));
            queued.told(&executor, TaskState::Error, Change::Ended(Fate::Failed), reason);
            assert_eq!(fates(&queued), [Fate::Failed], "{before:?} {reason:?}");
        }
    }

    /// A report about a host, the tasks in it or their agent.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum HostNews {
        Tasks,
        Runs,
        Ends,
        AgentLost,
    }

    /// How a host ends, and whether that says that it never ran.
    const HOST_ENDS: [(TaskState, Fate, UpdateReason, bool); 8] = [
        (TaskState::Failed, Fate::Failed, UpdateReason::Other, true),
        (TaskState::Dropped, Fate::Lost, UpdateReason::Other, true),
        (TaskState::Failed, Fate::Failed, UpdateReason::Reconciliation, false),
        (TaskState::Failed, Fate::Failed, UpdateReason::AgentRemoved, false),
        (TaskState::Gone, Fate::Lost, UpdateReason::Other, false),
        (TaskState::Gone, Fate::Lost, UpdateReason::Reconciliation, false),
        (TaskState::Killed, Fate::Killed, UpdateReason::Other, false),
        (TaskState::Finished, Fate::Finished, UpdateReason::Other, false),
    ];

    /// All orders of some of these in which a host doesn't run after its end.
    fn orders(of: &[HostNews]) -> Vec<Vec<HostNews>> {
        let mut all = vec![Vec::new()];
        for news in of {
            let places = |order: &Vec<HostNews>| {
                let place = |at| {
                    let mut order = order.clone();
                    order.insert(at, *news);
                    order
                };
                (0..=order.len()).map(place).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(places).collect();
        }
        let at = |order: &[HostNews], news| order.iter().position(|it| *it == news);
        all.retain(|order| match (at(order, HostNews::Runs), at(order, HostNews::Ends)) {
            (Some(runs), Some(ends)) => runs < ends,
            _ => true,
        });
        all
    }

    /// Whether what was told decides about tasks that are gone, and if so, whether they are put back.
    fn decision(told: &[HostNews], never_ran: bool) -> Option<bool> {
        let at = |news| told.iter().position(|it| *it == news);
        let gone = at(HostNews::Tasks)?;
        let lost = at(HostNews::AgentLost).filter(|lost| gone < *lost);
        match (at(HostNews::Runs), at(HostNews::Ends), lost) {
            (Some(_), ..) | (None, None, Some(_)) => Some(false),
            (None, Some(ends), Some(lost)) if lost < ends => Some(false),
            (None, Some(_), _) => Some(never_ran),
            (None, None, None) => None,
        }
    }

    /// Goal: a task that is gone with its host is put back only if the host was never told as running and its end says
    /// that it never ran, whichever is told first; otherwise it is lost. While that isn't known it is in flight, but
    /// not longer than its agent is there. Method: each order of the ends of two tasks and of their host, with and
    /// without a host that runs and an agent that is lost, for each end of a host.
    #[test]
    fn what_is_gone_with_its_host_is_decided_by_the_hosts_end() {
        use HostNews::{AgentLost, Ends, Runs, Tasks};
        let sets = [
            &[Tasks, Ends][..],
            &[Tasks, Ends, Runs],
            &[Tasks, Ends, AgentLost],
            &[Tasks, Ends, Runs, AgentLost],
        ];
        let orders: Vec<_> = sets.into_iter().flat_map(orders).collect();
        assert_eq!(orders.len(), 2 + 3 + 6 + 12);
        for (end, order) in HOST_ENDS.iter().flat_map(|end| orders.iter().map(move |it| (end, it)))
        {
            let queued = Queued::new(true, false);
            (0..2).for_each(|tag| assert!(queued.push(tag, 0, 500)));
            let placed = queued.offer("S1", 4.0);
            let (hosts, tasks): (Vec<_>, Vec<_>) =
                placed.into_iter().partition(|(tag, _)| *tag >= WorkQueue::HOST_TAGS);
            let (state, fate, reason, never_ran) = *end;
            for (at, news) in order.iter().enumerate() {
                match news {
                    Tasks => tasks.iter().for_each(|(_, task)| {
                        queued.update_for(task, TaskState::Gone, UpdateReason::Other);
                    }),
                    Runs => queued.update_as(&hosts[0].1, TaskState::Running, Change::Running),
                    Ends => queued.told(&hosts[0].1, state, Change::Ended(fate), reason),
                    AgentLost => queued.noticed(Notice::AgentLost { agent_id: "S1".to_owned() }),
                }
                let before = decision(&order[..at], never_ran);
                let after = decision(&order[..=at], never_ran);
                let (told, counts) = match after {
                    None => (0, (0, 2)),
                    Some(true) => (0, (2, 0)),
                    Some(false) if before.is_none() => (2, (0, 0)),
                    Some(false) => (0, (0, 0)),
                };
                let fates: Vec<Fate> = queued.ends.try_iter().map(|end| end.fate).collect();
                let context = format!("{news:?} of {order:?}, {state:?} for {reason:?}");
                assert_eq!(fates, vec![Fate::Lost; told], "{context}");
                assert_eq!(queued.tasks(), counts, "{context}");
            }
        }
    }

    /// Goal: no end of a task waits for ever for that of its host. Method: a host that is given up, one of which no
    /// more is told for a minute, and an engine that ends.
    #[test]
    fn an_end_that_waits_is_told_at_last() {
        let gone = || {
            let queued = Queued::new(true, false);
            assert!(queued.push(0, 0, 500));
            let mut placed = queued.offer("S1", 4.0);
            placed.sort_unstable();
            for _ in 0..2 {
                queued.update_for(&placed[0].1, TaskState::Gone, UpdateReason::Other);
            }
            assert_eq!((queued.ends.try_iter().count(), queued.tasks()), (0, (0, 1)));
            (queued, placed[1].1.clone())
        };
        let assert_lost = |queued: &Queued| {
            let told = queued.ends.try_iter().map(|end| (end.task.tag, end.fate, end.message));
            assert_eq!(told.collect::<Vec<_>>(), [(0, Fate::Lost, "why".to_owned())]);
            assert_eq!(queued.tasks(), (0, 0));
        };
        let (queued, executor) = gone();
        queued.noticed(Notice::GivenUp { executor: executor.clone() });
        assert_lost(&queued);
        queued.update_as(&executor, TaskState::Failed, Change::Ended(Fate::Failed));
        assert_eq!(queued.ends.try_iter().count(), 0);

        let (queued, executor) = gone();
        queued.sleep(59);
        queued.tell_decided();
        assert_eq!(queued.ends.try_iter().count(), 0);
        queued.sleep(1);
        queued.tell_decided();
        assert_lost(&queued);
        assert!(queued.push(0, 0, 500));
        queued.update_as(&executor, TaskState::Failed, Change::Ended(Fate::Failed));
        assert_eq!((queued.ends.try_iter().count(), queued.tasks()), (0, (1, 0)));

        let (queued, _) = gone();
        let observer = Box::new(crate::engine::Unobserved);
        drop(WorkObserver::new(&queued.queue, 0, observer));
        assert_lost(&queued);
        assert!(queued.ends.recv().is_err());
    }

    /// Goal: a host that starts isn't ended as idle while the end of a task waits for its own, however short its
    /// time-out is, so that what never began is put back; it is idle from when nothing waits for it. Method: the end of
    /// the only task of a host; looks for idle hosts until the host fails, runs, or a minute is over.
    #[test]
    fn a_host_that_decides_is_not_idle() {
        for (news, expected) in
            [(Some(TaskState::Failed), (1, 0)), (Some(TaskState::Running), (0, 0)), (None, (0, 0))]
        {
            let queued = Queued::new(true, false);
            assert!(queued.push(0, 0, 500));
            let mut placed = queued.offer("S1", 4.0);
            placed.sort_unstable();
            let host = placed.pop().unwrap().1;
            queued.update_for(&placed[0].1, TaskState::Gone, UpdateReason::Other);
            for _ in 0..59 {
                assert_eq!(queued.end_idle(), [] as [&str; 0], "{news:?}");
                queued.sleep(1);
            }
            assert_eq!(queued.tasks(), (0, 1));
            match news {
                Some(TaskState::Running) => {
                    queued.update_as(&host, TaskState::Running, Change::Running);
                }
                Some(state) => queued.update_as(&host, state, Change::Ended(Fate::Failed)),
                None => queued.sleep(1),
            }
            queued.tell_decided();
            assert_eq!(queued.tasks(), expected, "{news:?}");
            assert_eq!(queued.end_idle(), [] as [&str; 0], "{news:?}");
            queued.sleep(20);
            let ended = usize::from(news != Some(TaskState::Failed));
            assert_eq!(queued.end_idle(), vec![host; ended], "{news:?}");
        }
    }

    /// Goal: what is told of executors of a former run decides nothing for those of this one, even if they have their
    /// tags. Method: a host and a task that are adopted, with the tags of a host and a task that are in flight, and
    /// their ends; then the own ones.
    #[test]
    fn adopted_hosts_decide_nothing() {
        let queued = Queued::new(true, false);
        let resources = crate::resources::ExecutorResources::NONE;
        let former = ["former-task", "former-host"]
            .map(|executor| crate::kernel::Recovered::new(executor, "S1", "host", resources));
        let ids = queued.kernel.adopt(&former, Timestamp::ORIGIN).unwrap();
        assert!(queued.push(0, 0, 500));
        let mut placed = queued.offer("S1", 4.0);
        placed.sort_unstable();
        for ((id, former), (tag, _)) in ids.iter().zip(&former).zip(&placed) {
            queued.noticed(Notice::Adopted(PlacedExecutor {
                id: id.unwrap(),
                executor: former.executor.to_owned(),
                agent_id: "S1".to_owned(),
                hostname: "host".to_owned(),
                resources,
                tag: Some(*tag),
            }));
        }
        queued.update_for(&placed[0].1, TaskState::Gone, UpdateReason::Other);
        queued.update_as("former-host", TaskState::Running, Change::Running);
        queued.update_for("former-task", TaskState::Gone, UpdateReason::Other);
        queued.update_as("former-host", TaskState::Failed, Change::Ended(Fate::Failed));
        assert_eq!((queued.ends.try_iter().count(), queued.tasks()), (0, (0, 1)));
        queued.update_as(&placed[1].1, TaskState::Failed, Change::Ended(Fate::Failed));
        assert_eq!((queued.ends.try_iter().count(), queued.tasks()), (0, (1, 0)));
    }

    #[derive(Clone, Debug)]
    enum WorkStep {
        Push {
            tag: u64,
            rank: u64,
            millis: u64,
        },
        Remove(u64),
        Offer {
            agent: u8,
            cores: u8,
        },
        /// The first, second, … of the hosts runs.
        Run(u8),
        /// The same of the tasks ends.
        End(u8, bool),
        GiveUp(u8),
        /// The agent says that it has never started it.
        Drop(u8),
        /// The cluster rejects it.
        Reject(u8),
        /// It is gone with its host.
        Gone(u8),
        /// A host ends, as one of [`HOST_ENDS`], or is given up.
        EndHost(u8, Option<u8>),
        /// The user has a host killed, which goes on until its end.
        KillHost(u8),
        LoseAgent(u8),
        Sleep(u8),
        /// The end of one that was given up.
        LateEnd(u8),
    }

    fn steps() -> impl Strategy<Value = Vec<WorkStep>> {
        let push = (0u64..12, 0u64..3, 1u64..4).prop_map(|(tag, rank, size)| WorkStep::Push {
            tag,
            rank,
            millis: size * 500,
        });
        let how = proptest::option::weighted(0.9, 0..HOST_ENDS.len() as u8);
        vec(
            prop_oneof![
                4 => push,
                1 => (0u64..12).prop_map(WorkStep::Remove),
                4 => (0u8..3, 0u8..5).prop_map(|(agent, cores)| WorkStep::Offer { agent, cores }),
                1 => any::<u8>().prop_map(WorkStep::Run),
                2 => any::<(u8, bool)>().prop_map(|(at, well)| WorkStep::End(at, well)),
                1 => any::<u8>().prop_map(WorkStep::GiveUp),
                1 => any::<u8>().prop_map(WorkStep::Drop),
                1 => any::<u8>().prop_map(WorkStep::Reject),
                3 => any::<u8>().prop_map(WorkStep::Gone),
                2 => (any::<u8>(), how).prop_map(|(at, how)| WorkStep::EndHost(at, how)),
                1 => any::<u8>().prop_map(WorkStep::KillHost),
                1 => (0u8..3).prop_map(WorkStep::LoseAgent),
                1 => (0u8..50).prop_map(WorkStep::Sleep),
                1 => any::<u8>().prop_map(WorkStep::LateEnd),
            ],
            0..60,
        )
    }

    /// What is known of a host.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum ModelHost {
        Starting,
        Runs,
        NeverRan,
        Ended,
    }

    #[derive(Clone, Debug)]
    struct ModelTask {
        tag: u64,
        executor: String,
        /// Its host's place in the list of hosts.
        host: Option<usize>,
        /// It has joined its host, rather than brought it.
        has_joined: bool,
    }

    /// A queue beside plain lists of what must be in it.
    struct WorkModel {
        queued: Queued,
        waiting: BTreeSet<u64>,
        in_flight: Vec<ModelTask>,
        /// Tasks that are gone with hosts of which nothing is known yet, and until when that is waited for.
        undecided: Vec<(ModelTask, Timestamp)>,
        /// Executors and agents.
        hosts: Vec<(String, u8, ModelHost)>,
        /// Hosts that are killed, by their executors.
        killed: BTreeSet<String>,
        given_up: Vec<String>,
        /// How often tasks were put back because they were rejected.
        rejections: BTreeMap<u64, u32>,
        /// The ends to be received.
        due: Vec<(u64, String, Fate)>,
        put_back: u64,
    }

    impl WorkModel {
        fn new(hosts: bool, capped: bool) -> WorkModel {
            let queued = Queued::new(hosts, capped);
            // A host has run somewhere: what it means if none does is tested above.
            queued.queue.state().pauses.started("S9", true);
            WorkModel {
                queued,
                waiting: BTreeSet::new(),
                in_flight: Vec::new(),
                undecided: Vec::new(),
                hosts: Vec::new(),
                killed: BTreeSet::new(),
                given_up: Vec::new(),
                rejections: BTreeMap::new(),
                due: Vec::new(),
                put_back: 0,
            }
        }

        fn end(&mut self, ModelTask { tag, executor, .. }: ModelTask, fate: Fate) {
            self.rejections.remove(&tag);
            self.due.push((tag, executor, fate));
        }

        fn put_back(&mut self, task: &ModelTask) {
            self.waiting.insert(task.tag);
            self.put_back += 1;
        }

        /// One of the tasks in flight, which isn't any more.
        fn land(&mut self, at: u8) -> Option<ModelTask> {
            let at = usize::from(at).checked_rem(self.in_flight.len())?;
            Some(self.in_flight.remove(at))
        }

        /// One of the hosts that have not ended.
        fn live_host(&mut self, at: u8) -> Option<&mut (String, u8, ModelHost)> {
            let is_live = |host: &&mut (String, u8, ModelHost)| {
                matches!(host.2, ModelHost::Starting | ModelHost::Runs)
            };
            let mut live: Vec<_> = self.hosts.iter_mut().filter(is_live).collect();
            let at = usize::from(at).checked_rem(live.len())?;
            Some(live.swap_remove(at))
        }

        fn offer(&mut self, agent: u8, cores: u8) {
            let mut placed = self.queued.offer(&format!("S{agent}"), f64::from(cores));
            placed.sort_unstable();
            let hosts = placed.split_off(placed.partition_point(|it| it.0 < WorkQueue::HOST_TAGS));
            let is_new = !hosts.is_empty();
            let new = hosts.into_iter().map(|(_, host)| (host, agent, ModelHost::Starting));
            self.hosts.extend(new);
            let host = self.hosts.iter().rposition(|(_, its_agent, _)| *its_agent == agent);
            let has_joined = host.is_some() && !is_new;
            if let Some(host) = host.filter(|_| !placed.is_empty()) {
                let executor = &self.hosts[host].0;
                assert!(!self.killed.contains(executor), "tasks join {executor}, which is killed");
            }
            for (tag, executor) in placed {
                assert!(self.waiting.remove(&tag), "{tag} didn't wait");
                self.in_flight.push(ModelTask { tag, executor, host, has_joined });
            }
        }

        fn gone(&mut self, task: ModelTask) {
            for _ in 0..2 {
                self.queued.update_for(&task.executor, TaskState::Gone, UpdateReason::Other);
            }
            match task.host.map(|host| self.hosts[host].2) {
                Some(ModelHost::Starting) => {
                    let of_host = self.undecided.iter().find(|(it, _)| it.host == task.host);
                    let own = self.queued.now.get().plus(Duration::from_secs(60));
                    let until = of_host.map_or(own, |(_, until)| *until);
                    self.undecided.push((task, until));
                }
                Some(ModelHost::NeverRan) => self.put_back(&task),
                _ => self.end(task, Fate::Lost),
            }
        }

        fn end_host(&mut self, at: u8, how: Option<u8>) {
            let Some(host) = self.live_host(at) else { return };
            let (executor, before) = (host.0.clone(), host.2);
            let Some((state, fate, reason, never_ran)) = how.map(|it| HOST_ENDS[usize::from(it)])
            else {
                host.2 = ModelHost::Ended;
                self.queued.noticed(Notice::GivenUp { executor: executor.clone() });
                return self.given_up.push(executor);
            };
            let is_unstarted = never_ran && before == ModelHost::Starting;
            host.2 = if is_unstarted { ModelHost::NeverRan } else { ModelHost::Ended };
            self.queued.told(&executor, state, Change::Ended(fate), reason);
        }

        fn kill_host(&mut self, at: u8) {
            let Some((executor, ..)) = self.live_host(at).cloned() else { return };
            let queue = &self.queued.queue;
            let (tag, _) = queue.state().hosts.as_ref().unwrap().host(&executor).unwrap();
            queue.killing(tag);
            self.killed.insert(executor);
        }

        /// All hosts that are killed end.
        fn end_killed(&mut self) {
            for executor in std::mem::take(&mut self.killed) {
                let host = self.hosts.iter_mut().find(|(name, ..)| *name == executor).unwrap();
                if let ModelHost::Starting | ModelHost::Runs = host.2 {
                    host.2 = ModelHost::Ended;
                    let killed = Change::Ended(Fate::Killed);
                    self.queued.update_as(&executor, TaskState::Killed, killed);
                }
            }
            self.decide(None);
        }

        /// Has idle hosts end, in which no task may be, and none be waited for.
        fn end_idle(&mut self) {
            for executor in self.queued.end_idle() {
                let at = self.hosts.iter().position(|host| host.0 == executor).unwrap();
                let undecided = self.undecided.iter().map(|(task, _)| task);
                let mut tasks = self.in_flight.iter().chain(undecided);
                assert!(tasks.all(|task| task.host != Some(at)), "{executor} isn't idle");
                self.hosts[at].2 = ModelHost::Ended;
                self.queued.update_as(&executor, TaskState::Killed, Change::Ended(Fate::Killed));
            }
        }

        fn decide(&mut self, lost_agent: Option<u8>) {
            for (task, until) in std::mem::take(&mut self.undecided) {
                let Some((_, agent, host)) = task.host.map(|host| self.hosts[host].clone()) else {
                    continue;
                };
                let is_open = self.queued.now.get() < until && Some(agent) != lost_agent;
                match host {
                    ModelHost::Starting if is_open => self.undecided.push((task, until)),
                    ModelHost::NeverRan => self.put_back(&task),
                    _ => self.end(task, Fate::Lost),
                }
            }
        }

        fn step(&mut self, step: WorkStep) {
            match step {
                WorkStep::Push { tag, rank, millis } => {
                    let undecided = self.undecided.iter().map(|(task, _)| task);
                    let mut there = self.in_flight.iter().chain(undecided);
                    let is_there = self.waiting.contains(&tag) || there.any(|it| it.tag == tag);
                    assert_eq!(self.queued.push(tag, rank, millis), !is_there);
                    self.waiting.extend((!is_there).then_some(tag));
                }
                WorkStep::Remove(tag) => {
                    let was_waiting = self.waiting.remove(&tag);
                    assert_eq!(self.queued.queue.remove(tag), was_waiting);
                    let _rejections = was_waiting.then(|| self.rejections.remove(&tag));
                }
                WorkStep::Offer { agent, cores } => self.offer(agent, cores),
                WorkStep::Run(at) => {
                    let Some(host) = self.live_host(at) else { return };
                    host.2 = ModelHost::Runs;
                    let executor = host.0.clone();
                    self.queued.update_as(&executor, TaskState::Running, Change::Running);
                    self.decide(None);
                }
                WorkStep::EndHost(at, how) => {
                    self.end_host(at, how);
                    self.decide(None);
                }
                WorkStep::KillHost(at) => self.kill_host(at),
                WorkStep::LoseAgent(agent) => {
                    self.queued.noticed(Notice::AgentLost { agent_id: format!("S{agent}") });
                    self.decide(Some(agent));
                }
                WorkStep::Sleep(seconds) => {
                    self.queued.sleep(seconds.into());
                    self.queued.tell_decided();
                    self.decide(None);
                    self.end_idle();
                }
                WorkStep::LateEnd(at) => {
                    let at = usize::from(at).checked_rem(self.given_up.len());
                    let Some(late) = at.map(|at| self.given_up.remove(at)) else { return };
                    self.queued.update(&late, Change::Ended(Fate::Finished));
                }
                WorkStep::End(at, _)
                | WorkStep::GiveUp(at)
                | WorkStep::Drop(at)
                | WorkStep::Reject(at)
                | WorkStep::Gone(at) => {
                    let Some(task) = self.land(at) else { return };
                    self.end_task(task, &step);
                }
            }
        }

        fn end_task(&mut self, task: ModelTask, how: &WorkStep) {
            let executor = task.executor.clone();
            match how {
                WorkStep::Gone(_) => self.gone(task),
                WorkStep::GiveUp(_) => {
                    self.queued.noticed(Notice::GivenUp { executor: executor.clone() });
                    self.given_up.push(executor);
                    self.end(task, Fate::Lost);
                }
                WorkStep::Drop(_) => {
                    for _ in 0..2 {
                        let lost = Change::Ended(Fate::Lost);
                        self.queued.update_as(&executor, TaskState::Dropped, lost);
                    }
                    self.put_back(&task);
                }
                WorkStep::Reject(_) => {
                    (0..2).for_each(|_| self.queued.reject(&executor));
                    let rejections = self.rejections.entry(task.tag).or_default();
                    *rejections += 1;
                    match task.has_joined && *rejections <= REJECTIONS_MAX {
                        true => self.put_back(&task),
                        false => self.end(task, Fate::Failed),
                    }
                }
                WorkStep::End(_, well) => {
                    let fate = if *well { Fate::Finished } else { Fate::Failed };
                    self.queued.update(&executor, Change::Ended(fate));
                    self.queued.update(&executor, Change::Ended(Fate::Lost));
                    self.end(task, fate);
                }
                _ => unreachable!("{how:?} ends no task"),
            }
        }

        /// What is received and counted is what the lists say.
        fn check(&mut self) {
            let (waiting, put_back) = (self.waiting.len(), self.put_back);
            let in_flight = self.in_flight.len() + self.undecided.len();
            assert_eq!(self.queued.queue.counts(), WorkCounts { waiting, in_flight, put_back });
            let received = self.queued.ends.try_iter();
            let mut received: Vec<_> =
                received.map(|end| (end.task.tag, end.executor, end.fate)).collect();
            // Ends that are decided together come by their hosts.
            received.sort_by(|a, b| a.1.cmp(&b.1));
            self.due.sort_by(|a, b| a.1.cmp(&b.1));
            assert_eq!(received, std::mem::take(&mut self.due));
            let state = self.queued.queue.state();
            assert!(state.launched.len() <= in_flight && state.kept.len() == self.undecided.len());
            assert_eq!(state.tasks.len(), waiting + in_flight);
        }
    }

    proptest! {
        /// Goal: each attempt has one end, which is received once, or was put back and counted; a task waits, is in
        /// flight or isn't in the queue, as a plain list of tasks says; one that was never started waits again, one
        /// that is rejected in a host that it has joined does so three times, and of one that is gone with its host,
        /// the host says whether it was started, and isn't ended as idle before; what is said of an attempt that was
        /// given up says nothing of later ones; no task joins a host that is killed.
        /// Method: random pushes, offers, ends and losses of tasks and hosts in any order, and kills of hosts, with
        /// hosts and without, with a cap and without; in the end all that waits starts.
        #[test]
        fn each_attempt_has_one_end(steps in steps(), hosts: bool, capped: bool) {
            let mut model = WorkModel::new(hosts, capped);
            for step in steps {
                model.step(step);
                model.check();
            }
            model.end_killed();
            model.check();
            for round in 0..60 {
                let offer = WorkStep::Offer { agent: round % 3, cores: 4 };
                let steps = [WorkStep::Sleep(60), offer, WorkStep::Run(round), WorkStep::End(0, true)];
                for step in steps {
                    model.step(step);
                    model.check();
                }
            }
            if model.given_up.is_empty() || !capped {
                prop_assert_eq!(model.waiting.len() + model.in_flight.len(), 0);
            }
        }
    }
}
