//! The processes of a worker's executors: those that wait to be started, are being started, and run.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::step::WorkerInput;
use crate::cluster::process::{
    Exit, ProcessEvent, ProcessEventSink, ProcessGroup, ProcessOptions, RunPhase, RunningExecutors,
    StartError, StartRequest, StartingExecutor, StartingExecutors, WorkFolder, discard,
    is_valid_name,
};
use crate::cluster::standalone::protocol::{
    ExecutorCommand, ExecutorKey, ExecutorLaunch, ReportedState,
};
use crate::launch::Command;

/// The processes of all executors.
#[derive(Debug)]
pub(super) struct WorkerProcesses {
    work_folder: WorkFolder,
    queue: VecDeque<(ExecutorLaunch, String)>,
    starting: StartingExecutors<ExecutorKey>,
    running: RunningExecutors<ExecutorKey>,
    has_forced: bool,
}

impl WorkerProcesses {
    pub(super) fn new(
        work_folder: WorkFolder,
        options: ProcessOptions,
        events: ProcessEventSink,
    ) -> WorkerProcesses {
        WorkerProcesses {
            work_folder,
            queue: VecDeque::new(),
            starting: StartingExecutors::new(options.clone(), events.clone()),
            running: RunningExecutors::new(options, events),
            has_forced: false,
        }
    }

    /// Starts an executor, as soon as there is room, in a sandbox of this worker.
    pub(super) fn start(&mut self, launch: ExecutorLaunch, worker_id: &str) -> Option<WorkerInput> {
        let names = [&launch.key.framework, &launch.key.executor];
        let bad = names.into_iter().find(|name| !is_valid_name(name)).cloned();
        if let Some(bad) = bad {
            let message = format!("not started: {bad:?} is not allowed as the name of a folder");
            return Some(ended(launch.key, ReportedState::Failed, message));
        }
        self.queue.push_back((launch, worker_id.to_owned()));
        None
    }

    /// Asks an executor to end, and ends it by force after `grace`.
    pub(super) fn end(
        &mut self,
        key: &ExecutorKey,
        grace: Duration,
        now: Instant,
    ) -> Option<WorkerInput> {
        let queued = self.queue.iter().position(|(launch, _)| launch.key == *key);
        if let Some((launch, _)) = queued.and_then(|at| self.queue.remove(at)) {
            let message = "on request, before it was started".to_owned();
            return Some(ended(launch.key, ReportedState::Killed, message));
        }
        let id = id_of(key);
        if self.starting.kill(&id, grace, now).is_none() {
            self.running.terminate(&id, grace, now);
        }
        None
    }

    /// Starts what there is room for, gives up starts that hang, ends executors whose grace is over, and replaces
    /// watchdogs.
    pub(super) fn run_due(&mut self, now: Instant) -> Vec<WorkerInput> {
        let mut inputs = Vec::new();
        while self.starting.has_room(now)
            && let Some((launch, worker_id)) = self.queue.pop_front()
        {
            if let Err(failed) = self.starting.begin(self.request(launch, worker_id), now) {
                let (executor, error) = *failed;
                inputs.push(not_started(executor, error));
            }
        }
        for executor in self.starting.give_up_due(now) {
            let why = "the start hangs: its sandbox's file system or its watchdog doesn't answer";
            inputs.push(not_started(executor, StartError::given_up(why)));
        }
        self.running.run_due(now);
        inputs
    }

    /// When [`WorkerProcesses::run_due`] has something to do next, unless something happens before.
    pub(super) fn next_due(&self, now: Instant) -> Option<Instant> {
        let can_start = !self.queue.is_empty() && self.starting.has_room(now);
        let due = [can_start.then_some(now), self.starting.next_due(now), self.running.next_due()];
        due.into_iter().flatten().min()
    }

    /// Whether an executor was ended by force, after its grace period.
    pub(super) fn has_forced(&self) -> bool {
        self.has_forced
    }

    /// Handles what has happened to a process.
    pub(super) fn handle(&mut self, event: ProcessEvent, now: Instant) -> Vec<WorkerInput> {
        match event {
            ProcessEvent::Started { number, started } => self.on_started(number, started, now),
            ProcessEvent::Ended(number) => self.on_ended(number).into_iter().collect(),
            ProcessEvent::WatchdogReplaced { number, watchdog } => {
                self.running.replace_watchdog(number, watchdog);
                Vec::new()
            }
        }
    }

    fn request(&self, launch: ExecutorLaunch, worker_id: String) -> StartRequest<ExecutorKey> {
        let ExecutorLaunch { key, command, .. } = launch;
        let ExecutorCommand { argv, environment, user: _ } = command;
        StartRequest {
            id: id_of(&key),
            command: Command::new(argv).with_environment(environment),
            sandboxes: Arc::new(self.work_folder.sandboxes_of(&key.framework)),
            agent_id: worker_id,
            folder: key.executor.clone(),
            input: None,
            record: key,
        }
    }

    fn on_started(
        &mut self,
        number: u64,
        started: Result<ProcessGroup, StartError>,
        now: Instant,
    ) -> Vec<WorkerInput> {
        let (start, group) = match (self.starting.finish(number), started) {
            (Some(start), Ok(group)) => (start, group),
            (Some(start), Err(error)) => return vec![not_started(start, error)],
            (None, Ok(group)) => {
                discard(group);
                return Vec::new();
            }
            (None, Err(_)) => return Vec::new(),
        };
        let StartingExecutor { force_at, has_ended, .. } = start;
        let executor = self.running.insert(number, start, group);
        let output = executor.sandbox().display();
        let message = format!("process {}, output in {output}", executor.pid());
        let pid = u32::try_from(executor.pid()).ok();
        let mut inputs = vec![WorkerInput::Running { key: executor.record.clone(), pid, message }];
        if let Some(force_at) = force_at {
            self.running.terminate_before(number, force_at, now);
        }
        if has_ended {
            inputs.extend(self.on_ended(number));
        }
        inputs
    }

    fn on_ended(&mut self, number: u64) -> Option<WorkerInput> {
        if self.starting.record_end(number) {
            return None;
        }
        let (executor, exit) = self.running.reap(number)?;
        self.has_forced |= executor.phase == RunPhase::Killed;
        let state = match (executor.phase, exit) {
            (RunPhase::Running, Exit::Code(0)) => ReportedState::Finished,
            (RunPhase::Running, _) => ReportedState::Failed,
            _ => ReportedState::Killed,
        };
        Some(ended(executor.record, state, exit.as_mesos_says()))
    }
}

/// An executor's id among all frameworks: the name of a folder has no slash.
fn id_of(key: &ExecutorKey) -> String {
    format!("{}/{}", key.framework, key.executor)
}

fn not_started(executor: StartingExecutor<ExecutorKey>, error: StartError) -> WorkerInput {
    match executor.force_at {
        Some(_) => {
            let message = "on request, while it was being started".to_owned();
            ended(executor.record, ReportedState::Killed, message)
        }
        None => {
            let message = format!("not started: {}", error.why);
            ended(executor.record, ReportedState::Failed, message)
        }
    }
}

fn ended(key: ExecutorKey, state: ReportedState, message: String) -> WorkerInput {
    WorkerInput::Ended { key, state, message }
}
