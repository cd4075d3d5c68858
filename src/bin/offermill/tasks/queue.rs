//! The queue of tasks. Handler threads choose from it and build commands; the session reports what became of attempts.
//!
//! One lock guards it, which is held while a line of results is written: nothing may be launched that isn't on record.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use offermill::choosers::Chooser;
use offermill::config::Placement;
use offermill::engine::{AgentPauses, AgentSurvey, HostLedger, HostTerms};
use offermill::launch::{CommandForm, Setup};
use offermill::{ResourceSums, Task, Timestamp};

use crate::model::end_cause::EndCause;
use crate::model::executor::{ExecutorRecord, ExecutorState};
use crate::model::task::{TaskChange, TaskCounts, TaskEvent};
use crate::tasks::demand::QueueDemand;
use crate::tasks::order::TaskList;
use crate::tasks::ready::ReadyTasks;
use crate::tasks::results::{ResultState, ResultsFile, TaskResult, exit_code};
use crate::tasks::run_queues::RunQueues;
use crate::tasks::task::TaskSpec;
use crate::tasks::too_large::TooLargeSizes;
use crate::text::clock::rfc3339;

/// How often an attempt may be lost without counting as a failure.
const LOSSES_MAX: u32 = 3;
/// How long an idle host is kept while tasks are ready and none runs.
const IN_THE_WAY: Duration = Duration::from_secs(2);

/// What all tasks of a run have in common.
#[derive(Clone, Debug)]
pub(crate) struct TaskTerms {
    pub(crate) form: CommandForm,
    pub(crate) setup: Option<Arc<Setup>>,
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) placement: Placement,
    pub(crate) queues: RunQueues,
    /// The most tasks in flight, and the most that they may take together: the caps of the run.
    pub(crate) tasks_max: u32,
    pub(crate) most: ResourceSums,
    /// How long a task that fits on no agent waits before it fails. `None`: as long as the run lasts.
    pub(crate) placement_timeout: Option<Duration>,
    /// `None` if each task is an executor of its own.
    pub(crate) hosts: Option<HostTerms>,
}

/// The queue of tasks.
#[derive(Debug)]
pub(crate) struct TaskQueue {
    pub(super) list: TaskList,
    pub(super) terms: TaskTerms,
    /// The name of the results file.
    pub(super) results_name: String,
    state: Mutex<TaskQueueState>,
}

#[derive(Debug)]
pub(super) struct TaskQueueState {
    pub(super) progress: Vec<TaskProgress>,
    pub(super) ready: ReadyTasks,
    pub(super) pauses: AgentPauses,
    pub(super) survey: AgentSurvey,
    pub(super) too_large: TooLargeSizes,
    pub(super) counts: TaskCounts,
    /// Attempts that are told as failed and were never started.
    pub(super) failed_unstarted: u64,
    /// What the tasks in flight take.
    pub(super) taken: ResourceSums,
    pub(super) demand: QueueDemand,
    /// What handlers have picked and the kernel may not have booked in its queues yet; by tag. It is there until the
    /// launch is prepared, the pick is returned, or the attempt has ended or was given up.
    pub(super) picked: BTreeMap<u64, Task>,
    pub(super) chooser: Chooser,
    pub(super) hosts: Option<HostLedger>,
    /// The ends of tasks in flight that are not told yet, by number, with the files that have their output.
    pub(super) kept: BTreeMap<u32, (ExecutorRecord, Option<String>)>,
    /// `None` before it is opened.
    pub(super) results: Option<ResultsFile>,
    /// Why results can't be written, if they can't.
    pub(super) failure: Option<String>,
    pub(super) is_stopping: bool,
}

/// How far a task is.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskProgress {
    pub(super) stage: TaskStage,
    /// How many tasks it still waits for.
    waits: u32,
    /// How many attempts were started, in former runs as well.
    pub(super) attempts: u32,
    /// How many attempts failed in this run.
    failures: u32,
    losses: u32,
    /// How often it was put back because it was rejected in a host that it had joined.
    pub(super) rejections: u32,
    pub(super) agent_id: String,
    pub(super) host: String,
    pub(super) executor: String,
    pub(super) started: Option<SystemTime>,
    /// Its attempt was asked to end by a command.
    pub(super) is_killed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TaskStage {
    /// Others must end before.
    #[default]
    Waiting,
    Ready,
    InFlight,
    Over,
}

impl TaskQueue {
    /// A queue of all tasks, which are not run before the [results](TaskQueue::open_results) are open.
    pub(crate) fn new(list: TaskList, terms: TaskTerms, results_name: String) -> TaskQueue {
        let waits = |waits: &u32| TaskProgress { waits: *waits, ..TaskProgress::default() };
        let progress = list.waits.iter().map(waits).collect();
        let counts = TaskCounts { all: list.tasks.len() as u64, ..TaskCounts::default() };
        let pauses = terms.hosts.as_ref().map(|_| AgentPauses::awaiting_hosts());
        let state = TaskQueueState {
            progress,
            ready: ReadyTasks::default(),
            pauses: pauses.unwrap_or_default(),
            survey: AgentSurvey::default(),
            too_large: TooLargeSizes::default(),
            counts,
            failed_unstarted: 0,
            taken: ResourceSums::NONE,
            demand: QueueDemand::new(
                &terms.queues,
                terms.hosts.as_ref().map(|hosts| hosts.queue),
                list.tasks.iter().map(|it| it.queue),
            ),
            picked: BTreeMap::new(),
            chooser: Chooser::new(),
            hosts: terms.hosts.clone().map(|hosts| HostLedger::new(hosts, list.tasks.len() as u64)),
            kept: BTreeMap::new(),
            results: None,
            failure: None,
            is_stopping: false,
        };
        let queue = TaskQueue { list, terms, results_name, state: Mutex::new(state) };
        queue.make_ready(&mut queue.lock());
        queue
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, TaskQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tasks.
    pub(crate) fn list(&self) -> &TaskList {
        &self.list
    }

    /// The name of the results file.
    pub(crate) fn results_name(&self) -> &str {
        &self.results_name
    }

    /// How many tasks are in which state.
    pub(crate) fn counts(&self) -> TaskCounts {
        self.lock().counts
    }

    /// Why results can't be written, if they can't.
    pub(crate) fn failure(&self) -> Option<String> {
        let state = self.lock();
        state.failure.clone().or_else(|| state.results.as_ref()?.sync_error())
    }

    /// Whether tasks run in hosts.
    pub(crate) const fn has_hosts(&self) -> bool {
        self.terms.hosts.is_some()
    }

    /// Whether any task is ready to start.
    pub(crate) fn has_ready(&self) -> bool {
        !self.lock().ready.is_empty()
    }

    /// Whether any agent has made an offer.
    pub(crate) fn has_seen_agents(&self) -> bool {
        !self.lock().survey.is_empty()
    }

    /// Makes the tasks ready that wait for nothing.
    fn make_ready(&self, state: &mut TaskQueueState) {
        for (task, number) in self.list.tasks.iter().zip(0u32..) {
            let progress = &mut state.progress[number as usize];
            if progress.waits == 0 && progress.stage == TaskStage::Waiting {
                progress.stage = TaskStage::Ready;
                state.ready.insert(&task.at(number));
            }
        }
    }

    /// Puts a task back to those that are ready.
    pub(super) fn put_back(&self, state: &mut TaskQueueState, number: u32) {
        let task = &self.list.tasks[number as usize];
        let stage = &mut state.progress[number as usize].stage;
        if std::mem::replace(stage, TaskStage::Ready) == TaskStage::InFlight {
            state.demand.await_task(task.queue);
        }
        state.ready.insert(&task.at(number));
    }

    /// A task has come to its end, or is not to be run.
    pub(super) fn take_out(&self, state: &mut TaskQueueState, number: u32) {
        let task = &self.list.tasks[number as usize];
        state.ready.remove(&task.at(number));
        let stage = &mut state.progress[number as usize].stage;
        let before = std::mem::replace(stage, TaskStage::Over);
        if matches!(before, TaskStage::Waiting | TaskStage::Ready) {
            state.demand.settle_task(task.queue);
        }
    }

    /// A task has succeeded: those that waited for it alone are ready.
    pub(super) fn free_dependents(&self, state: &mut TaskQueueState, number: u32) {
        for dependent in &self.list.dependents[number as usize] {
            let progress = &mut state.progress[*dependent as usize];
            progress.waits -= 1;
            if progress.waits == 0 && progress.stage == TaskStage::Waiting {
                self.put_back(state, *dependent);
            }
        }
    }

    /// A line of results about a task as it is now.
    pub(super) fn line(&self, state: &TaskQueueState, number: u32, is: ResultState) -> TaskResult {
        let task = &self.list.tasks[number as usize];
        let progress = &state.progress[number as usize];
        let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        TaskResult {
            agent: text(&progress.host),
            executor: text(&progress.executor),
            started: progress.started.map(rfc3339),
            ..TaskResult::new(&task.id, is, progress.attempts, task.fingerprint())
        }
    }

    pub(super) fn event(
        &self,
        state: &TaskQueueState,
        number: u32,
        what: TaskChange,
        why: &str,
    ) -> TaskEvent {
        let progress = &state.progress[number as usize];
        TaskEvent {
            id: self.list.tasks[number as usize].id.clone(),
            what,
            attempts: progress.attempts,
            host: progress.host.clone(),
            why: why.to_owned(),
            output: None,
        }
    }

    /// Records which executor an attempt is.
    pub(crate) fn placed(&self, record: &ExecutorRecord) {
        let Some(number) = self.number(record) else { return };
        record.name.clone_into(&mut self.lock().progress[number as usize].executor);
    }

    fn number(&self, record: &ExecutorRecord) -> Option<u32> {
        let tag = record.tag.filter(|tag| *tag < self.list.tasks.len() as u64)?;
        u32::try_from(tag).ok()
    }

    /// What a report of an executor means, if it is a host. Returns whether nothing of it is to be shown: it does what
    /// it was asked to do. `None` if it is a task.
    pub(crate) fn host_changed(&self, record: &ExecutorRecord) -> Option<bool> {
        let tag = record.tag.filter(|tag| self.is_host(*tag))?;
        let mut guard = self.lock();
        if record.state.is_end() || record.state == ExecutorState::GivenUp {
            return Some(guard.host_ended(tag, record));
        }
        let hosts = guard.hosts.as_mut()?;
        Some(match record.state {
            ExecutorState::Running => {
                hosts.up(tag);
                true
            }
            ExecutorState::Ending => {
                hosts.ending(tag);
                true
            }
            _ => true,
        })
    }

    /// An executor is reachable again. Returns whether it is to be ended, because it was given up and others do what it
    /// did.
    pub(crate) fn returned(&self, record: &ExecutorRecord) -> bool {
        let mut state = self.lock();
        if let Some(tag) = record.tag.filter(|tag| self.is_host(*tag)) {
            // It may not have run before.
            return state.hosts.as_mut().is_some_and(|hosts| !hosts.up(tag));
        }
        let Some(number) = self.number(record) else { return false };
        let progress = &state.progress[number as usize];
        progress.stage != TaskStage::InFlight || progress.executor != record.name
    }

    /// Ends the hosts that have been idle for long enough; sooner if tasks are ready and none runs, since what idle
    /// hosts take may be what they lack. Returns their executors, which are to be ended.
    pub(crate) fn end_idle_hosts(&self, now: Timestamp) -> Vec<String> {
        let mut state = self.lock();
        let is_in_the_way = state.counts.running == 0 && !state.ready.is_empty();
        let timeout = if is_in_the_way { IN_THE_WAY } else { Duration::MAX };
        state.hosts.as_mut().map(|hosts| hosts.end_idle_after(now, timeout)).unwrap_or_default()
    }

    /// Records the end of an attempt, or that it was given up. `output` is the file with its output. Returns what has
    /// become of tasks: nothing yet if what becomes of its host [decides](TaskQueue::take_decided) it.
    pub(crate) fn ended(&self, record: &ExecutorRecord, output: Option<String>) -> Vec<TaskEvent> {
        let Some(number) = self.number(record) else { return Vec::new() };
        let mut guard = self.lock();
        let state = &mut *guard;
        let progress = &mut state.progress[number as usize];
        // One that was given up may end much later.
        if progress.stage != TaskStage::InFlight || progress.executor != record.name {
            return Vec::new();
        }
        if let Some(events) = self.follow_unstarted(state, number, record, output.as_ref()) {
            return events;
        }
        self.finish(state, number, record, output)
    }

    /// An attempt has come to its end, which is told.
    pub(super) fn finish(
        &self,
        state: &mut TaskQueueState,
        number: u32,
        record: &ExecutorRecord,
        output: Option<String>,
    ) -> Vec<TaskEvent> {
        let task = &self.list.tasks[number as usize];
        state.land(number, task);
        let progress = &mut state.progress[number as usize];
        // Whatever has become of one that was asked to end, it has failed.
        let is_lost = is_lost(record) && !progress.is_killed;
        progress.losses += u32::from(is_lost);
        let (change, is) = match record.state {
            ExecutorState::Finished => (TaskChange::Succeeded, ResultState::Succeeded),
            _ if state.is_stopping => (TaskChange::Stopped, ResultState::Stopped),
            _ if is_lost && progress.losses <= LOSSES_MAX => (TaskChange::Lost, ResultState::Lost),
            _ if progress.failures < task.retries => (TaskChange::Retried, ResultState::Retried),
            _ => (TaskChange::Failed, ResultState::Failed),
        };
        let why = if change == TaskChange::Succeeded { "" } else { &*record.message };
        let mut line = self.line(state, number, is);
        line.ended = Some(rfc3339(SystemTime::now()));
        line.exit_code = record.process.exit.and_then(exit_code);
        line.reason = Some(why.to_owned()).filter(|why| !why.is_empty());
        line.output.clone_from(&output);
        let mut lines = vec![line];
        let mut events = vec![TaskEvent { output, ..self.event(state, number, change, why) }];
        match change {
            TaskChange::Succeeded => {
                self.take_out(state, number);
                state.counts.succeeded += 1;
                self.free_dependents(state, number);
            }
            TaskChange::Retried | TaskChange::Lost => {
                state.progress[number as usize].failures +=
                    u32::from(change == TaskChange::Retried);
                state.counts.retried += 1;
                self.put_back(state, number);
            }
            TaskChange::Failed => self.fail(state, number, &mut lines, &mut events),
            TaskChange::Stopped
            | TaskChange::Skipped
            | TaskChange::NotStarted
            | TaskChange::Waiting => self.put_back(state, number),
        }
        state.write(&lines);
        events
    }

    /// A task has failed: those that wait for it, and those that wait for them, are skipped.
    pub(super) fn fail(
        &self,
        state: &mut TaskQueueState,
        number: u32,
        lines: &mut Vec<TaskResult>,
        events: &mut Vec<TaskEvent>,
    ) {
        self.take_out(state, number);
        state.counts.failed += 1;
        let mut causes = vec![number];
        while let Some(cause) = causes.pop() {
            for dependent in &self.list.dependents[cause as usize] {
                if state.progress[*dependent as usize].stage != TaskStage::Waiting {
                    continue;
                }
                self.take_out(state, *dependent);
                state.counts.skipped += 1;
                let id = &self.list.tasks[cause as usize].id;
                let verb = if cause == number { "failed" } else { "was skipped" };
                let why = format!("it is after {id}, which {verb}");
                events.push(self.event(state, *dependent, TaskChange::Skipped, &why));
                let mut line = self.line(state, *dependent, ResultState::Skipped);
                line.reason = Some(why);
                lines.push(line);
                causes.push(*dependent);
            }
        }
    }
}

impl TaskQueueState {
    /// A task is in flight no more.
    pub(super) fn land(&mut self, number: u32, task: &TaskSpec) {
        let own = task.sums();
        // Its launch may never have been prepared.
        self.picked.remove(&u64::from(number));
        self.counts.running -= 1;
        self.demand.land(task.queue);
        self.taken = self.taken.saturating_sub(own);
        let progress = &mut self.progress[number as usize];
        self.hosts.iter_mut().for_each(|hosts| hosts.leave(number.into()));
        self.survey.freed(&progress.agent_id, own);
    }

    /// Writes lines. Returns whether they were written; otherwise the run can't go on.
    pub(super) fn write(&mut self, lines: &[TaskResult]) -> bool {
        if lines.is_empty() {
            return true;
        }
        let Some(results) = &mut self.results else { return false };
        let written = results.write(lines);
        if let Err(error) = &written {
            self.failure.get_or_insert_with(|| error.to_string());
        }
        written.is_ok()
    }
}

/// Whether the cluster has ended an attempt, or doesn't know what became of it: no fault of its task.
fn is_lost(record: &ExecutorRecord) -> bool {
    let by_cluster = [EndCause::Dropped, EndCause::AgentLost, EndCause::Preempted];
    matches!(record.state, ExecutorState::Lost | ExecutorState::GivenUp)
        || record.cause.is_some_and(|cause| by_cluster.contains(&cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::find::FoundTask;
    use crate::tasks::parse::parse_line;
    use crate::tasks::task::TaskDefaults;
    use offermill::config::Queue;
    use offermill::engine::{TaskChooser as _, UnstartedEnd};
    use offermill::launch::{Hosting, LaunchContext, Launcher as _};
    use offermill::resources::{Gpus, Mebibytes, MilliCpus};
    use offermill::{Config, IdScheme, Kernel, Offer, Picks, Resource};

    /// A queue of one task with one retry, whose results are in `folder`.
    fn queue(folder: &std::path::Path) -> TaskQueue {
        queue_in(folder, None)
    }

    /// The same, whose task runs in a host if one is given.
    fn queue_in(folder: &std::path::Path, hosts: Option<HostTerms>) -> TaskQueue {
        queue_of(folder, hosts, &["true"])
    }

    /// The same of tasks with these lines. All tasks together take two cores at most.
    fn queue_of(folder: &std::path::Path, hosts: Option<HostTerms>, lines: &[&str]) -> TaskQueue {
        let queue = unopened(folder, hosts, lines);
        queue.open_results(false).unwrap();
        queue
    }

    /// The same before its results are open.
    fn unopened(folder: &std::path::Path, hosts: Option<HostTerms>, lines: &[&str]) -> TaskQueue {
        let (cores, memory) = (MilliCpus::from_cores(1), Mebibytes::new(1));
        let defaults = TaskDefaults { cores, memory, retries: 1 };
        let task = |(line, number): (&&str, u64)| {
            parse_line(line.as_bytes(), number, &defaults).unwrap().unwrap()
        };
        let tasks = lines.iter().zip(1..).map(task).collect();
        let terms = TaskTerms {
            form: CommandForm::Argv,
            setup: None,
            variables: Vec::new(),
            placement: Placement::RoundRobin,
            queues: RunQueues::default(),
            tasks_max: 2,
            placement_timeout: None,
            hosts,
            most: ResourceSums { cores: MilliCpus::from_cores(2), memory, gpus: Gpus::ZERO },
        };
        let results = folder.join("results").to_str().unwrap().to_owned();
        TaskQueue::new(TaskList::new("f".to_owned(), tasks).unwrap(), terms, results)
    }

    fn record(name: &str, state: ExecutorState, cause: Option<EndCause>) -> ExecutorRecord {
        let [name, agent, host] = [name, "S1", "agent-1"].map(str::to_owned);
        ExecutorRecord {
            state,
            tag: Some(0),
            message: "why".to_owned(),
            cause,
            ..ExecutorRecord::starting(name, agent, host, Timestamp::ORIGIN)
        }
    }

    fn host_terms() -> HostTerms {
        let mut terms = HostTerms::new(vec!["host".to_owned()]);
        (terms.cores, terms.memory) = (MilliCpus::from_millis(500), Mebibytes::new(1));
        terms
    }

    /// The record of an executor with this tag.
    fn tagged(name: &str, tag: u64, state: ExecutorState) -> ExecutorRecord {
        ExecutorRecord { tag: Some(tag), ..record(name, state, None) }
    }

    /// Offers an agent of two cores, in whose one queue tasks and hosts have 1.5. Returns the tags that were picked,
    /// which the kernel doesn't book.
    fn pick(queue: &TaskQueue) -> Vec<u64> {
        pick_at(queue, Timestamp::ORIGIN)
    }

    /// The same at another time.
    fn pick_at(queue: &TaskQueue, now: Timestamp) -> Vec<u64> {
        pick_on(queue, "S1", 2.0, now)
    }

    /// The same on another agent, of this many cores.
    fn pick_on(queue: &TaskQueue, agent: &str, cores: f64, now: Timestamp) -> Vec<u64> {
        let most = Some(MilliCpus::from_millis(1500));
        let config = Config::builder()
            .executor_memory(Mebibytes::new(1))
            .memory_overhead(Some(Mebibytes::ZERO))
            .queue(Queue::new("default").max_cores(most));
        let kernel = Kernel::new(config.build().unwrap(), IdScheme::plain());
        let resources = [Resource::scalar("cpus", cores), Resource::scalar("mem", 100.0)];
        let offers = [Offer::new("O", agent, "agent-1", &resources, &[])];
        let (mut handler, mut picks) = (kernel.handler(), Picks::new());
        let rooms = handler.propose(&offers, now);
        queue.choose(&rooms, now, &mut picks);
        picks.iter().map(|pick| pick.task.tag).collect()
    }

    /// Goal: a number of attempts that no run has made, in a results file that someone has written, ends no handler,
    /// and that the rest of a choice that broke off isn't placed says nothing of its tasks. Method: the largest
    /// number; a task that was picked and never started, which is told as not placed, before another is picked.
    #[test]
    fn any_number_of_attempts_is_counted_on() {
        let folder = tempfile::tempdir().unwrap();
        let result = r#"{"id":"1","state":"retried","attempts":4294967295,"fingerprint":"0"}"#;
        std::fs::write(folder.path().join("results"), format!("{result}\n")).unwrap();
        let queue = unopened(folder.path(), None, &["true", "true"]);
        queue.open_results(true).unwrap();
        assert!(!queue.return_pick(&mut queue.lock(), 1));
        assert_eq!((queue.counts().running, queue.lock().progress[1].attempts), (0, 0));
        assert_eq!(pick(&queue), [0]);
        assert_eq!((queue.counts().running, queue.lock().progress[0].attempts), (1, u32::MAX));
    }

    /// Goal: a task larger than what the caps leave holds up none behind it, not even of its own queue. Method: tasks
    /// of three quarters, a half and a quarter of a core, which take one together at most.
    #[test]
    fn a_large_task_at_a_cap_holds_up_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let lines = ["0.75", "0.5", "0.25"]
            .map(|cores| format!(r#"{{"command": "true", "cores": {cores}}}"#));
        let mut queue = queue_of(folder.path(), None, &lines.each_ref().map(|line| &**line));
        queue.terms.most.cores = MilliCpus::from_cores(1);
        assert_eq!(pick(&queue), [0, 2]);
    }

    /// Starts the task as the executor with this name, and ends it so.
    fn attempt(
        queue: &TaskQueue,
        name: &str,
        state: ExecutorState,
        cause: Option<EndCause>,
    ) -> TaskChange {
        queue.start(&mut queue.lock(), 0, ("S1", "agent-1"), SystemTime::UNIX_EPOCH);
        queue.placed(&record(name, ExecutorState::Starting, None));
        let events = queue.ended(&record(name, state, cause), None);
        assert_eq!(events.len(), 1, "{events:?}");
        // One that was given up may end later. That says nothing of the next attempt.
        assert_eq!(queue.ended(&record(name, ExecutorState::Failed, None), None), []);
        events[0].what
    }

    /// Goal: three attempts that the cluster ends are no failures, later ones are, whatever the cause; the end of an
    /// attempt that was given up isn't that of the next. Method: a task with one retry, whose attempts are lost, given
    /// up, killed because the agent is drained, and lost until it has failed; each also ends a second time.
    #[test]
    fn three_losses_are_no_failures() {
        let folder = tempfile::tempdir().unwrap();
        let queue = queue(folder.path());
        let changes = [
            attempt(&queue, "t-1", ExecutorState::Lost, Some(EndCause::AgentLost)),
            attempt(&queue, "t-2", ExecutorState::GivenUp, None),
            attempt(&queue, "t-3", ExecutorState::Killed, Some(EndCause::Preempted)),
            attempt(&queue, "t-4", ExecutorState::Lost, Some(EndCause::Unknown)),
            attempt(&queue, "t-5", ExecutorState::Lost, Some(EndCause::AgentLost)),
        ];
        let lost = TaskChange::Lost;
        assert_eq!(changes, [lost, lost, lost, TaskChange::Retried, TaskChange::Failed]);
        let counts = queue.counts();
        assert_eq!((counts.failed, counts.retried, counts.running), (1, 4, 0));
    }

    /// Goal: what was never started is no loss, however often, and is told once a pause of its agent; what was started
    /// before is one. Method: attempts that are dropped every half minute, then four that are lost.
    #[test]
    fn what_was_never_started_is_no_loss() {
        let folder = tempfile::tempdir().unwrap();
        let queue = queue(folder.path());
        let dropped = |round: u64| {
            let record = ExecutorRecord {
                unstarted: Some(UnstartedEnd::Dropped),
                ..record(&format!("t-{round}"), ExecutorState::Lost, Some(EndCause::Dropped))
            };
            let at = Timestamp::ORIGIN.plus(Duration::from_secs(round * 30));
            queue.start(&mut queue.lock(), 0, ("S1", "agent-1"), SystemTime::UNIX_EPOCH);
            queue.placed(&record);
            let events = queue.ended(&ExecutorRecord { changed_at: at, ..record }, None);
            assert!(events.iter().all(|event| event.what == TaskChange::NotStarted));
            events.len()
        };
        // Pauses of 1, 2, 4, 8, 16, 32 s, which goes over the next, 60 s, which goes over the next, and 60 s.
        let told: Vec<usize> = (1..=11).map(dropped).collect();
        assert_eq!(told, [1, 1, 1, 1, 1, 1, 0, 1, 0, 1, 0]);
        let counts = queue.counts();
        assert_eq!((counts.failed, counts.retried, counts.running), (0, 0, 0));
        let lost = |name| attempt(&queue, name, ExecutorState::Lost, Some(EndCause::AgentLost));
        let changes = ["l-1", "l-2", "l-3", "l-4"].map(lost);
        let lost = TaskChange::Lost;
        assert_eq!(changes, [lost, lost, lost, TaskChange::Retried]);
    }

    /// Goal: that the agent has nothing left for a task is no failure of it, and that it can't be started is. Method: a
    /// task whose attempts end so.
    #[test]
    fn exhausted_agents_fail_no_task() {
        let folder = tempfile::tempdir().unwrap();
        let queue = queue_of(folder.path(), None, &["true"]);
        for (end, expected) in [
            (UnstartedEnd::Dropped, TaskChange::NotStarted),
            (UnstartedEnd::Failed, TaskChange::Retried),
        ] {
            let mut record = record("t", ExecutorState::Failed, Some(EndCause::NotStarted));
            record.unstarted = Some(end);
            queue.start(&mut queue.lock(), 0, ("S1", "agent-1"), SystemTime::UNIX_EPOCH);
            queue.placed(&record);
            let events = queue.ended(&record, None);
            assert_eq!(events.iter().map(|event| event.what).collect::<Vec<_>>(), [expected]);
        }
    }

    /// Goal: an agent whose host never runs gets no tasks for a while, and its tasks aren't lost; if that is so on all
    /// agents, the tasks are refused. Method: a host that fails before it runs, with its task, whichever end is told
    /// first, until its tasks are refused.
    #[test]
    fn agents_whose_hosts_never_run_have_pauses() {
        let folder = tempfile::tempdir().unwrap();
        let queue = queue_in(folder.path(), Some(host_terms()));
        let mut now = Timestamp::ORIGIN;
        for round in 1..=3 {
            assert_eq!(pick_at(&queue, now), [round, 0]);
            assert_eq!(queue.refuse_without_hosts(now), []);
            queue.placed(&tagged("t", 0, ExecutorState::Starting));
            let ended = |tag, state, unstarted| {
                let record = tagged(if tag == 0 { "t" } else { "h" }, tag, state);
                ExecutorRecord { changed_at: now, unstarted: Some(unstarted), ..record }
            };
            let mut host = ended(round, ExecutorState::Failed, UnstartedEnd::Failed);
            host.message = "no such file".to_owned();
            let mut task = ended(0, ExecutorState::Lost, UnstartedEnd::Gone);
            task.message = "its host h is gone: why".to_owned();
            let events = if round % 2 == 0 {
                let events = queue.ended(&task, None);
                queue.host_changed(&host);
                assert_eq!(events, [], "it isn't known yet whether it had begun");
                queue.take_decided(now)
            } else {
                queue.host_changed(&host);
                queue.ended(&task, None)
            };
            assert_eq!(events[0].what, TaskChange::NotStarted);
            assert_eq!(pick_at(&queue, now.plus(Duration::from_millis(900))), [] as [u64; 0]);
            now = now.plus(Duration::from_secs(4));
        }
        let [refused] = &queue.refuse_without_hosts(now)[..] else { panic!("it isn't refused") };
        assert_eq!(
            refused.why, "no host of tasks has started on any agent: no such file",
            "what tasks are told of their hosts says less"
        );
        assert_eq!((queue.counts().failed, queue.counts().retried), (1, 0));
    }

    /// Goal: a task that is rejected in a host that it has joined, which may have ended before the run was told, is put
    /// back three times, and these are no failures; further times, and if it brings its host, it is one. Method: a task
    /// with one retry that is rejected whenever it joins the host of another task; one that is rejected with its host.
    #[test]
    fn what_is_rejected_in_a_host_is_put_back_three_times() {
        let folder = tempfile::tempdir().unwrap();
        let queue = queue_of(folder.path(), Some(host_terms()), &["true", "true"]);
        let rejected = |queue: &TaskQueue, tag, at| {
            queue.placed(&tagged("t", tag, ExecutorState::Starting));
            let record = tagged("t", tag, ExecutorState::Failed);
            let unstarted = Some(UnstartedEnd::Rejected);
            let events = queue.ended(&ExecutorRecord { unstarted, changed_at: at, ..record }, None);
            events.iter().map(|event| event.what).collect::<Vec<_>>()
        };
        assert_eq!(pick(&queue), [2, 0], "the host and the first task");
        host_runs(&queue, "h", 2);
        ended_in(&queue, 0);
        let mut now = Timestamp::ORIGIN;
        for (expected, failed, retried) in [
            (TaskChange::NotStarted, 0, 0),
            (TaskChange::NotStarted, 0, 0),
            (TaskChange::NotStarted, 0, 0),
            (TaskChange::Retried, 0, 1),
            (TaskChange::Failed, 1, 1),
        ] {
            assert_eq!(pick_at(&queue, now), [1]);
            assert_eq!(rejected(&queue, 1, now), [expected]);
            let counts = queue.counts();
            assert_eq!((counts.failed, counts.retried, counts.running), (failed, retried, 0));
            let results = std::fs::read_to_string(folder.path().join("results")).unwrap();
            let state = format!(r#""state":"{}""#, expected.as_str());
            assert!(results.lines().next_back().unwrap().contains(&state), "{results}");
            if expected == TaskChange::NotStarted {
                assert_eq!(pick_at(&queue, now), [] as [u64; 0], "the agent has a pause");
            }
            now = now.plus(Duration::from_secs(60));
        }
        assert_eq!(queue.failed_unstarted(), 3);

        let folder = tempfile::tempdir().unwrap();
        let queue = queue_in(folder.path(), Some(host_terms()));
        assert_eq!(pick(&queue), [1, 0], "the host and the task");
        assert_eq!(rejected(&queue, 0, Timestamp::ORIGIN), [TaskChange::Retried]);
        assert_eq!(queue.failed_unstarted(), 0);
    }

    /// A report about a host, a task in it or their agent.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum HostStep {
        Task,
        /// A command asks the task to end.
        TaskKilled,
        Runs,
        Ends(UnstartedEnd),
        IsKilled,
        IsGivenUp,
        AgentLost,
        Minute,
        Stop,
    }

    /// Tells a queue of one task what happens to its host, to it and to their agent. Returns what became of the task.
    fn tell(queue: &TaskQueue, order: &[HostStep]) -> Vec<TaskChange> {
        assert_eq!(pick(queue), [1, 0], "the host and the task");
        queue.placed(&tagged("t", 0, ExecutorState::Starting));
        let mut now = Timestamp::ORIGIN;
        let mut changes = Vec::new();
        for news in order {
            let unstarted = |tag, state, unstarted| ExecutorRecord {
                changed_at: now,
                unstarted,
                ..tagged(if tag == 0 { "t" } else { "h" }, tag, state)
            };
            let mut events = Vec::new();
            let host = match news {
                HostStep::Task => {
                    for _ in 0..2 {
                        let gone = unstarted(0, ExecutorState::Lost, Some(UnstartedEnd::Gone));
                        events.extend(queue.ended(&gone, None));
                    }
                    None
                }
                HostStep::TaskKilled => {
                    queue.kill_asked(&tagged("t", 0, ExecutorState::Starting));
                    None
                }
                HostStep::Runs => Some(unstarted(1, ExecutorState::Running, None)),
                HostStep::Ends(end) => Some(unstarted(1, ExecutorState::Failed, Some(*end))),
                HostStep::IsKilled => Some(unstarted(1, ExecutorState::Killed, None)),
                HostStep::IsGivenUp => Some(unstarted(1, ExecutorState::GivenUp, None)),
                HostStep::AgentLost => {
                    queue.agent_lost("S1", now);
                    None
                }
                HostStep::Minute => {
                    now = now.plus(Duration::from_secs(60));
                    None
                }
                HostStep::Stop => {
                    events.extend(queue.stop());
                    None
                }
            };
            let _is_told = host.map(|host| queue.host_changed(&host));
            events.extend(queue.take_decided(now));
            changes.extend(events.iter().map(|event| event.what));
        }
        changes
    }

    /// Goal: a task that is gone with its host is put back only if the host was never told as running and its end says
    /// that it never ran, whichever is told first; otherwise it is lost, also if its agent is lost meanwhile or nothing
    /// is told for a minute; and stopped if the run is. One that a command has asked to end has failed. It is told
    /// once. Method: such orders; what is in the results, and what a command is answered meanwhile.
    #[test]
    fn what_is_gone_with_its_host_is_decided_by_the_hosts_end() {
        use HostStep::{
            AgentLost, Ends, IsGivenUp, IsKilled, Minute, Runs, Stop, Task, TaskKilled,
        };
        let (failed, dropped) = (Ends(UnstartedEnd::Failed), Ends(UnstartedEnd::Dropped));
        let gone = Ends(UnstartedEnd::Gone);
        let (lost, again) = (TaskChange::Lost, TaskChange::NotStarted);
        let has_failed = TaskChange::Retried;
        for (order, expected) in [
            (&[Task, failed][..], Some(again)),
            (&[failed, Task], Some(again)),
            (&[Task, dropped], Some(again)),
            (&[dropped, Task], Some(again)),
            (&[failed, AgentLost, Task], Some(again)),
            (&[AgentLost, Task, failed], Some(again)),
            (&[AgentLost, failed, Task], Some(again)),
            (&[Task], None),
            (&[AgentLost, Task], None),
            (&[Runs, Task, failed], Some(lost)),
            (&[Task, Runs, failed], Some(lost)),
            (&[Runs, failed, Task], Some(lost)),
            (&[Task, AgentLost, failed], Some(lost)),
            (&[Task, Minute, failed], Some(lost)),
            (&[Task, gone], Some(lost)),
            (&[gone, Task], Some(lost)),
            (&[Task, IsKilled], Some(lost)),
            (&[IsKilled, Task], Some(lost)),
            (&[Task, IsGivenUp, failed], Some(lost)),
            (&[IsGivenUp, failed, Task], Some(lost)),
            (&[TaskKilled, Task], Some(has_failed)),
            (&[TaskKilled, Task, failed], Some(has_failed)),
            (&[TaskKilled, failed, Task], Some(has_failed)),
            (&[Task, Stop, failed], Some(TaskChange::Stopped)),
            (&[failed, Stop, Task], Some(TaskChange::Stopped)),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let queue = queue_in(folder.path(), Some(host_terms()));
            let changes = tell(&queue, order);
            assert_eq!(changes, expected.into_iter().collect::<Vec<_>>(), "{order:?}");
            let is_open = u64::from(expected.is_none());
            assert_eq!(queue.counts().running, is_open, "{order:?}");
            assert_eq!(queue.lock().kept.len() as u64, is_open, "{order:?}");
            if is_open == 1 {
                let found = queue.find(&["1".to_owned()]).remove("1");
                let why = "is gone with its host, and may start again";
                assert_eq!(found, Some(FoundTask::No(why)), "{order:?}");
            }
            let results = std::fs::read_to_string(folder.path().join("results")).unwrap();
            let last = results.lines().next_back().unwrap();
            let state = expected.map_or("started", TaskChange::as_str);
            assert!(last.contains(&format!(r#""state":"{state}""#)), "{order:?}: {last}");
            drop(queue);

            // A run that resumes it says so of what may have run.
            let queue = unopened(folder.path(), Some(host_terms()), &["true"]);
            let resumed = queue.open_results(true).unwrap();
            let expected: &[&str] = if is_open == 1 { &["1"] } else { &[] };
            assert_eq!(resumed.in_flight, expected, "{order:?}");
        }
    }

    /// Goal: a task that isn't to wait for an agent on which it fits is refused once all agents had the time to show
    /// what they have, and not before: not while a cap has all offers declined, nor soon after the only agent that it
    /// fits on is lost. Method: a task that fills the cap before one that fits on no agent; one that fits on an agent
    /// that is lost.
    #[test]
    fn what_fits_nowhere_is_refused_once_all_were_seen() {
        let at = |seconds| Timestamp::ORIGIN.plus(Duration::from_secs(seconds));
        let refused = |queue: &TaskQueue, seconds| queue.follow_too_large(at(seconds)).len();
        let folder = tempfile::tempdir().unwrap();
        let tasks = ["true", r#"{"command": "true", "cores": 8}"#];
        let mut queue = queue_of(folder.path(), None, &tasks);
        (queue.terms.tasks_max, queue.terms.placement_timeout) = (1, Some(Duration::ZERO));
        assert_eq!(pick_at(&queue, at(0)), [0]);
        assert_eq!(refused(&queue, 60), 0, "no offer is looked at");
        ended_in(&queue, 0);
        assert_eq!(refused(&queue, 90), 0, "nor is one since");
        assert_eq!(pick_at(&queue, at(100)), [] as [u64; 0]);
        queue.no_offers_come();
        assert_eq!(refused(&queue, 130), 0, "offers were suppressed");
        assert_eq!(pick_at(&queue, at(140)), [] as [u64; 0]);
        assert_eq!((refused(&queue, 169), refused(&queue, 170)), (0, 1));

        let folder = tempfile::tempdir().unwrap();
        let mut queue = queue_of(folder.path(), None, &[r#"{"command": "true", "cores": 1.5}"#]);
        queue.terms.placement_timeout = Some(Duration::ZERO);
        assert_eq!(pick_on(&queue, "S1", 1.0, at(0)), [] as [u64; 0]);
        assert_eq!(pick_on(&queue, "S2", 2.0, at(0)), [0]);
        queue.placed(&tagged("t", 0, ExecutorState::Starting));
        assert_eq!(queue.ended(&tagged("t", 0, ExecutorState::Failed), None).len(), 1);
        assert_eq!(pick_on(&queue, "S1", 1.0, at(1)), [] as [u64; 0]);
        assert_eq!(refused(&queue, 100), 0, "it fits on the other");
        queue.agent_lost("S2", at(100));
        assert_eq!((refused(&queue, 129), refused(&queue, 130)), (0, 1));

        // A lost agent is not forgotten while tasks may run there.
        let folder = tempfile::tempdir().unwrap();
        let mut queue = queue_of(folder.path(), None, &[r#"{"command": "true", "cores": 1.5}"#; 2]);
        queue.terms.placement_timeout = Some(Duration::ZERO);
        queue.terms.most.cores = MilliCpus::from_cores(8);
        assert_eq!(pick_at(&queue, at(0)), [0]);
        queue.agent_lost("S1", at(0));
        assert_eq!(pick_on(&queue, "S2", 1.0, at(1)), [] as [u64; 0]);
        assert_eq!(refused(&queue, 100), 0, "it fits where its like runs");
        ended_in(&queue, 0);
        assert_eq!(refused(&queue, 101), 1);
    }

    /// Goal: a task that fits on no agent waits, which is told once with the number of its like, and those after it
    /// wait as well; it starts once an agent has room, and is told again if none has after that. With a time-out it
    /// fails once that has been so for that time. Method: two tasks of 1.5 cores and one after them, on an agent of
    /// which another framework has one core, until it hasn't.
    #[test]
    fn what_fits_nowhere_waits() {
        let at = |seconds| Timestamp::ORIGIN.plus(Duration::from_secs(seconds));
        let changes = |queue: &TaskQueue, seconds| {
            let events = queue.follow_too_large(at(seconds)).into_iter();
            events.map(|event| (event.id, event.what, event.why)).collect::<Vec<_>>()
        };
        let wide = |id| format!(r#"{{"id": "{id}", "command": "true", "cores": 1.5}}"#);
        let lines = [&*wide("a"), &*wide("b"), r#"{"command": "true", "after": "a"}"#];
        let folder = tempfile::tempdir().unwrap();
        let queue = queue_of(folder.path(), None, &lines);
        assert_eq!(pick_on(&queue, "S1", 1.0, at(0)), [] as [u64; 0]);
        assert_eq!((changes(&queue, 29), queue.too_large(9)), (vec![], vec![]));
        let why = "it fits on no agent that makes offers: it takes 1.5 cores and 1 MiB; the nearest agent, \
                   agent-1, has 1 core and 100 MiB, and lacks 0.5 cores";
        let told = format!("{why}; 1 more task of its size waits as well");
        assert_eq!(changes(&queue, 30), [("a".to_owned(), TaskChange::Waiting, told.clone())]);
        assert_eq!(queue.too_large(9)[0].sentence(), format!("task a: {told}"));
        assert_eq!(changes(&queue, 3000), []);
        let counts = queue.counts();
        assert_eq!((counts.failed, counts.skipped, counts.waiting()), (0, 0, 3));
        assert_eq!(pick_on(&queue, "S1", 2.0, at(3000)), [0]);
        assert_eq!((changes(&queue, 3100), queue.too_large(9)), (vec![], vec![]));
        ended_in(&queue, 0);
        queue.agent_lost("S1", at(3100));
        assert_eq!(pick_on(&queue, "S2", 1.0, at(3100)), [2]);
        assert_eq!(changes(&queue, 3130), [("b".to_owned(), TaskChange::Waiting, why.to_owned())]);

        let folder = tempfile::tempdir().unwrap();
        let mut queue = queue_of(folder.path(), None, &lines);
        queue.terms.placement_timeout = Some(Duration::from_secs(10));
        assert_eq!(pick_on(&queue, "S1", 1.0, at(0)), [] as [u64; 0]);
        assert_eq!((changes(&queue, 30).len(), changes(&queue, 39).len()), (1, 0));
        let failed = changes(&queue, 40);
        assert_eq!(failed.len(), 3, "{failed:?}");
        assert_eq!(failed[0], ("a".to_owned(), TaskChange::Failed, why.to_owned()));
        assert_eq!((queue.counts().failed, queue.counts().skipped), (2, 1));

        // What isn't known of all agents stops the clock, and starts it at no other time.
        let folder = tempfile::tempdir().unwrap();
        let mut queue = queue_of(folder.path(), None, &lines);
        queue.terms.placement_timeout = Some(Duration::from_secs(10));
        assert_eq!(pick_on(&queue, "S1", 1.0, at(0)), [] as [u64; 0]);
        assert_eq!((changes(&queue, 30).len(), changes(&queue, 36).len()), (1, 0));
        assert_eq!(pick_on(&queue, "S2", 1.0, at(37)), [] as [u64; 0]);
        assert_eq!((changes(&queue, 50), queue.too_large(9).len()), (vec![], 1));
        queue.no_offers_come();
        assert_eq!(changes(&queue, 90), []);
        assert_eq!(pick_on(&queue, "S1", 1.0, at(100)), [] as [u64; 0]);
        assert_eq!((changes(&queue, 130).len(), changes(&queue, 133).len()), (0, 0));
        assert_eq!(changes(&queue, 134).len(), 3);
    }

    /// Goal: sizes that fit nowhere are told once each, in the order of the file, so many a check that none takes long;
    /// with a time-out they fail so, and what is about to fail isn't told as waiting. A host that fits nowhere is told
    /// as such. Method: more sizes than a check tells, with and without a time-out; a task beside a host larger than
    /// all.
    #[test]
    fn many_sizes_that_fit_nowhere_are_told_in_turn() {
        let at = |seconds| Timestamp::ORIGIN.plus(Duration::from_secs(seconds));
        let lines: Vec<String> = (0..120)
            .map(|number| format!(r#"{{"command": "true", "cores": {}}}"#, 300 - number))
            .collect();
        let lines: Vec<&str> = lines.iter().map(|line| &**line).collect();
        for (timeout, change) in
            [(None, TaskChange::Waiting), (Some(Duration::ZERO), TaskChange::Failed)]
        {
            let folder = tempfile::tempdir().unwrap();
            let mut queue = queue_of(folder.path(), None, &lines);
            queue.terms.placement_timeout = timeout;
            queue.terms.most.cores = MilliCpus::from_cores(1000);
            assert_eq!(pick_on(&queue, "S1", 1.0, at(0)), [] as [u64; 0]);
            let mut ids = Vec::new();
            for (second, told) in [(30, 50), (31, 50), (32, 20), (33, 0)] {
                let events = queue.follow_too_large(at(second));
                assert_eq!(events.len(), told, "{events:?}");
                assert!(events.iter().all(|event| event.what == change));
                let mut told: Vec<u64> =
                    events.iter().map(|event| event.id.parse().unwrap()).collect();
                told.sort_unstable();
                ids.extend(told);
            }
            assert!(ids.iter().copied().eq(1..=120), "{ids:?}");
            let waiting = if timeout.is_none() { 120 } else { 0 };
            assert_eq!(
                (queue.too_large(7).len(), queue.too_large(200).len()),
                (waiting.min(7), waiting)
            );
        }
        let folder = tempfile::tempdir().unwrap();
        let mut hosts = host_terms();
        hosts.cores = MilliCpus::from_cores(9);
        let queue = queue_of(folder.path(), Some(hosts), &["true"]);
        assert_eq!(pick_on(&queue, "S1", 8.0, at(0)), [] as [u64; 0]);
        let [told] = &queue.follow_too_large(at(30))[..] else { panic!("it isn't told") };
        let expected = "its host fits on no agent that makes offers: it takes 9 cores and 1 MiB; the nearest \
                        agent, agent-1, has 8 cores and 100 MiB, and lacks 1 core";
        assert_eq!(told.why, expected);
    }

    /// Goal: that an agent is lost begins no survey at a cap, where no offers come. Method: a task that fills the cap.
    #[test]
    fn a_lost_agent_begins_no_survey() {
        let folder = tempfile::tempdir().unwrap();
        let mut queue = queue_of(folder.path(), None, &["true", "true"]);
        queue.terms.tasks_max = 1;
        assert_eq!(pick(&queue), [0]);
        queue.agent_lost("S2", Timestamp::ORIGIN);
        let later = Timestamp::ORIGIN.plus(Duration::from_secs(1000));
        let size = ResourceSums { cores: MilliCpus::from_cores(9), ..ResourceSums::NONE };
        assert_eq!(queue.lock().survey.fits_nowhere(size, later), None);
    }

    /// Goal: idle hosts don't keep tasks from running, and are kept otherwise. Method: a host whose task has ended,
    /// while another task is ready, and after that one has ended, too.
    #[test]
    fn idle_hosts_make_way() {
        let folder = tempfile::tempdir().unwrap();
        let queue = queue_of(folder.path(), Some(host_terms()), &["true", "true"]);
        let at = |seconds| Timestamp::ORIGIN.plus(Duration::from_secs(seconds));
        assert_eq!(pick(&queue), [2, 0], "the host and the first task");
        host_runs(&queue, "h", 2);
        ended_in(&queue, 0);
        assert_eq!([0, 1].map(|time| queue.end_idle_hosts(at(time)).len()), [0, 0]);
        assert_eq!(pick(&queue), [1]);
        ended_in(&queue, 1);
        assert_eq!([2, 61].map(|time| queue.end_idle_hosts(at(time)).len()), [0, 0]);
        assert_eq!(queue.end_idle_hosts(at(62)).len(), 1);

        let folder = tempfile::tempdir().unwrap();
        let queue = queue_of(folder.path(), Some(host_terms()), &["true", "true"]);
        assert_eq!(pick(&queue), [2, 0]);
        host_runs(&queue, "h", 2);
        ended_in(&queue, 0);
        assert_eq!([0, 1, 2].map(|time| queue.end_idle_hosts(at(time)).len()), [0, 0, 1]);
    }

    /// Goal: a host that starts isn't ended as idle while the end of a task waits for its own. Method: the end of its
    /// only task, a time-out shorter than that waits, and then the host's end before it ran.
    #[test]
    fn hosts_that_decide_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut terms = host_terms();
        terms.idle_timeout = Duration::from_secs(1);
        let queue = queue_in(folder.path(), Some(terms));
        assert_eq!(pick(&queue), [1, 0], "the host and the task");
        host_launched(&queue, "h", 1);
        queue.placed(&tagged("t", 0, ExecutorState::Starting));
        let unstarted = |name, tag, state, unstarted| ExecutorRecord {
            unstarted: Some(unstarted),
            ..tagged(name, tag, state)
        };
        let gone = unstarted("t", 0, ExecutorState::Lost, UnstartedEnd::Gone);
        assert_eq!(queue.ended(&gone, None), []);
        for seconds in 0..59 {
            let now = Timestamp::ORIGIN.plus(Duration::from_secs(seconds));
            assert_eq!(queue.end_idle_hosts(now), [] as [&str; 0]);
            assert_eq!(queue.take_decided(now), []);
        }
        queue.host_changed(&unstarted("h", 1, ExecutorState::Failed, UnstartedEnd::Failed));
        let events = queue.take_decided(Timestamp::ORIGIN.plus(Duration::from_secs(59)));
        let changes: Vec<TaskChange> = events.iter().map(|event| event.what).collect();
        assert_eq!(changes, [TaskChange::NotStarted]);
    }

    /// Goal: no task joins a host that a command kills, before any report of that has come. Method: the host of a task
    /// is killed; another task waits for its end, and brings another host.
    #[test]
    fn no_task_joins_a_host_that_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let queue = queue_of(folder.path(), Some(host_terms()), &["true", "true"]);
        assert_eq!(pick(&queue), [2, 0], "the host and the first task");
        host_runs(&queue, "h", 2);
        ended_in(&queue, 0);
        queue.killing(2);
        assert_eq!(pick(&queue), [] as [u64; 0]);
        queue.host_changed(&tagged("h", 2, ExecutorState::Killed));
        assert_eq!(pick(&queue), [3, 1]);
    }

    /// A host that was picked is launched and runs.
    fn host_runs(queue: &TaskQueue, executor: &str, tag: u64) {
        host_launched(queue, executor, tag);
        queue.host_changed(&tagged(executor, tag, ExecutorState::Running));
    }

    /// A host that was picked is launched.
    fn host_launched(queue: &TaskQueue, executor: &str, tag: u64) {
        let (cores, memory) = (MilliCpus::from_millis(100), Mebibytes::new(32));
        let mut context = LaunchContext::new(executor, "S1", "agent-1", cores, memory);
        context.tag = Some(tag);
        assert_eq!(queue.command(&context).hosting, Hosting::Host);
    }

    /// A task that was picked is placed and finishes.
    fn ended_in(queue: &TaskQueue, tag: u64) {
        let name = format!("t-{tag}");
        queue.placed(&tagged(&name, tag, ExecutorState::Starting));
        queue.ended(&tagged(&name, tag, ExecutorState::Finished), None);
    }

    /// Goal: an attempt that comes back after it was given up is to be ended, and one that was only out of reach isn't.
    /// Method: one of each, while a later attempt runs and after that.
    #[test]
    fn attempts_that_come_back_late_are_ended() {
        let folder = tempfile::tempdir().unwrap();
        let queue = queue(folder.path());
        let back = |name: &str| queue.returned(&record(name, ExecutorState::Running, None));
        attempt(&queue, "t-1", ExecutorState::GivenUp, None);
        assert!(back("t-1"));
        queue.start(&mut queue.lock(), 0, ("S1", "agent-1"), SystemTime::UNIX_EPOCH);
        queue.placed(&record("t-2", ExecutorState::Starting, None));
        assert!(back("t-1") && !back("t-2"));
    }

    /// Goal: a host that comes back after it was given up is to be ended, and one that was only out of reach isn't.
    /// Method: one of each, while the next host of the agent runs as well.
    #[test]
    fn hosts_that_come_back_late_are_ended() {
        let folder = tempfile::tempdir().unwrap();
        let queue = queue_in(folder.path(), Some(host_terms()));
        let back = |tag: u64| queue.returned(&tagged("h", tag, ExecutorState::Running));
        assert_eq!(pick(&queue), [1, 0]);
        queue.placed(&tagged("t-1", 0, ExecutorState::Starting));
        assert!(!back(1), "it was out of reach before it was seen to run");
        assert_eq!(queue.host_changed(&tagged("h", 1, ExecutorState::GivenUp)), Some(false));
        queue.ended(&tagged("t-1", 0, ExecutorState::GivenUp), None);
        assert!(back(1));
        assert_eq!(pick(&queue), [2, 0]);
        assert!(back(1) && !back(2));
    }

    /// Goal: a pick whose launch was never prepared, because an earlier call of its batch has panicked, takes no room
    /// in its queue once its attempt has ended. Method: a queue with room for one task and its host, that are picked
    /// and lost without a command, alone and in a host.
    #[test]
    fn picks_that_are_never_launched_leave_their_queue() {
        for hosts in [None, Some(host_terms())] {
            let folder = tempfile::tempdir().unwrap();
            let queue = queue_in(folder.path(), hosts.clone());
            for round in 1..=2 {
                let host = hosts.iter().map(|_| round);
                let picked: Vec<u64> = host.clone().chain([0]).collect();
                assert_eq!(pick(&queue), picked, "round {round}, with a host: {}", hosts.is_some());
                assert_eq!(pick(&queue), [] as [u64; 0]);
                queue.placed(&tagged("t", 0, ExecutorState::Starting));
                for tag in host {
                    queue.host_changed(&tagged("h", tag, ExecutorState::Lost));
                }
                assert_eq!(queue.ended(&tagged("t", 0, ExecutorState::Lost), None).len(), 1);
            }
            assert!(queue.lock().picked.is_empty());
        }
    }

    /// Goal: what ends by itself, or on request of a user, is a failure at once. Method: an attempt that fails, and one
    /// that is killed on request.
    #[test]
    fn failures_are_no_losses() {
        let folder = tempfile::tempdir().unwrap();
        let queue = queue(folder.path());
        let failed = attempt(&queue, "t-1", ExecutorState::Failed, Some(EndCause::Exited));
        let killed = attempt(&queue, "t-2", ExecutorState::Killed, Some(EndCause::Requested));
        assert_eq!((failed, killed), (TaskChange::Retried, TaskChange::Failed));
    }
}
