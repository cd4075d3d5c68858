//! The processes of a worker's executors: those that wait to be started, are being started, and run.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::host_events::HostEventSink;
use super::step::WorkerInput;
use crate::cluster::process::{
    Exit, ProcessEvent, ProcessEventSink, ProcessGroup, ProcessOptions, RunPhase, RunningExecutors,
    StartError, StartRequest, StartingExecutor, StartingExecutors, WorkFolder, discard,
    is_valid_name,
};
use crate::cluster::standalone::protocol::{
    ExecutorCommand, ExecutorKey, ExecutorLaunch, LaunchHosting, ReportedState,
};
use crate::cluster::task_host::{HostPatience, HostRegistry};
use crate::launch::Command;

/// The processes of all executors.
#[derive(Debug)]
pub(super) struct WorkerProcesses {
    work_folder: WorkFolder,
    queue: VecDeque<(ExecutorLaunch, String)>,
    starting: StartingExecutors<ExecutorKey>,
    pub(super) running: RunningExecutors<ExecutorKey>,
    /// The executors that are hosts of tasks, and the tasks in them.
    pub(super) hosts: HostRegistry<ExecutorKey>,
    pub(super) host_events: HostEventSink,
    pub(super) has_forced: bool,
}

impl WorkerProcesses {
    pub(super) fn new(
        work_folder: WorkFolder,
        options: ProcessOptions,
        events: ProcessEventSink,
        host_events: HostEventSink,
    ) -> WorkerProcesses {
        WorkerProcesses {
            work_folder,
            queue: VecDeque::new(),
            starting: StartingExecutors::new(options.clone(), events.clone()),
            running: RunningExecutors::new(options, events),
            hosts: HostRegistry::new(HostPatience::default()),
            host_events,
            has_forced: false,
        }
    }

    /// Starts an executor, as soon as there is room, in a sandbox of this worker; or in its host, if it has one.
    pub(super) fn start(&mut self, launch: ExecutorLaunch, worker_id: &str) -> Vec<WorkerInput> {
        let names = [&launch.key.framework, &launch.key.executor];
        let bad = names.into_iter().find(|name| !is_valid_name(name)).cloned();
        if let Some(bad) = bad {
            let message = format!("not started: {bad:?} is not allowed as the name of a folder");
            return vec![ended(launch.key, ReportedState::Failed, message)];
        }
        match &launch.hosting {
            LaunchHosting::In(host) => {
                let host = host.clone();
                return self.start_in_host(launch, host);
            }
            LaunchHosting::Host => self.hosts.add(&id_of(&launch.key)),
            LaunchHosting::Alone => {}
        }
        self.queue.push_back((launch, worker_id.to_owned()));
        Vec::new()
    }

    /// Asks an executor to end, and ends it by force after `grace`.
    pub(super) fn end(
        &mut self,
        key: &ExecutorKey,
        grace: Duration,
        now: Instant,
    ) -> Vec<WorkerInput> {
        let id = id_of(key);
        let queued = self.queue.iter().position(|(launch, _)| launch.key == *key);
        if let Some((launch, _)) = queued.and_then(|at| self.queue.remove(at)) {
            let mut inputs = self.without_host(&id, "it was killed before it was started", now);
            let message = "on request, before it was started".to_owned();
            inputs.push(ended(launch.key, ReportedState::Killed, message));
            return inputs;
        }
        if let Some(inputs) = self.end_in_host(&id, grace, now) {
            return inputs;
        }
        self.hosts.finish(&id, grace);
        if self.starting.kill(&id, grace, now).is_none() {
            self.running.terminate(&id, grace, now);
        }
        Vec::new()
    }

    /// Starts what there is room for, gives up starts that hang, ends executors whose grace is over, and replaces
    /// watchdogs.
    pub(super) fn run_due(&mut self, now: Instant) -> Vec<WorkerInput> {
        let mut inputs = Vec::new();
        while self.starting.has_room(now)
            && let Some((mut launch, worker_id)) = self.queue.pop_front()
        {
            let input = self.open_host(&mut launch);
            if let Err(failed) = self.starting.begin(self.request(launch, worker_id, input), now) {
                let (executor, error) = *failed;
                inputs.extend(self.not_started(executor, error, now));
            }
        }
        for executor in self.starting.give_up_due(now) {
            let why = "the start hangs: its sandbox's file system or its watchdog doesn't answer";
            inputs.extend(self.not_started(executor, StartError::given_up(why), now));
        }
        self.running.run_due(now);
        let outcomes = self.hosts.run_due(now);
        inputs.extend(self.follow(outcomes, now));
        inputs
    }

    /// When [`WorkerProcesses::run_due`] has something to do next, unless something happens before.
    pub(super) fn next_due(&self, now: Instant) -> Option<Instant> {
        let can_start = !self.queue.is_empty() && self.starting.has_room(now);
        let hosts_due = self.hosts.next_due();
        let (starting_due, running_due) = (self.starting.next_due(now), self.running.next_due());
        let due = [can_start.then_some(now), starting_due, running_due, hosts_due];
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
            ProcessEvent::Ended(number) => self.on_ended(number, now),
            ProcessEvent::WatchdogReplaced { number, watchdog } => {
                self.running.replace_watchdog(number, watchdog);
                Vec::new()
            }
        }
    }

    fn request(
        &self,
        launch: ExecutorLaunch,
        worker_id: String,
        input: Option<OwnedFd>,
    ) -> StartRequest<ExecutorKey> {
        let ExecutorLaunch { key, command, .. } = launch;
        let ExecutorCommand { argv, environment, user: _ } = command;
        StartRequest {
            id: id_of(&key),
            command: Command::new(argv).with_environment(environment),
            sandboxes: Arc::new(self.work_folder.sandboxes_of(&key.framework)),
            agent_id: worker_id,
            folder: key.executor.clone(),
            input,
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
            (Some(start), Err(error)) => return self.not_started(start, error, now),
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
        let (key, folder) = (executor.record.clone(), None);
        let id = id_of(&key);
        // A host runs once it says that it is ready.
        let mut inputs = match self.hosts.is_host(&id) {
            false => vec![WorkerInput::Running { key, pid, message, folder }],
            true => {
                let outcomes = self.hosts.started(&id, executor.sandbox().parent(), now);
                self.follow(outcomes, now)
            }
        };
        if let Some(force_at) = force_at {
            self.running.terminate_before(number, force_at, now);
        }
        if has_ended {
            inputs.extend(self.on_ended(number, now));
        }
        inputs
    }

    fn on_ended(&mut self, number: u64, now: Instant) -> Vec<WorkerInput> {
        if self.starting.record_end(number) {
            return Vec::new();
        }
        let Some((executor, exit)) = self.running.reap(number) else { return Vec::new() };
        let executor = match self.hosts.process_ended(executor, exit, now) {
            Ok(outcomes) => return self.follow(outcomes, now),
            Err(executor) => *executor,
        };
        self.has_forced |= executor.phase == RunPhase::Killed;
        let state = match (executor.phase, exit) {
            (RunPhase::Running, Exit::Code(0)) => ReportedState::Finished,
            (RunPhase::Running, _) => ReportedState::Failed,
            _ => ReportedState::Killed,
        };
        vec![ended(executor.record, state, exit.as_mesos_says())]
    }

    fn not_started(
        &mut self,
        executor: StartingExecutor<ExecutorKey>,
        error: StartError,
        now: Instant,
    ) -> Vec<WorkerInput> {
        let mut inputs = self.without_host(&executor.id, &error.why, now);
        inputs.push(match executor.force_at {
            Some(_) => {
                let message = "on request, while it was being started".to_owned();
                ended(executor.record, ReportedState::Killed, message)
            }
            None if error.kind.is_agents() => {
                let message = format!("not started: {}", error.why);
                WorkerInput::Exhausted { key: executor.record, message }
            }
            None => {
                let message = format!("not started: {}", error.why);
                ended(executor.record, ReportedState::Failed, message)
            }
        });
        inputs
    }

    /// An executor doesn't start. If it is a host, its tasks end.
    fn without_host(&mut self, id: &str, why: &str, now: Instant) -> Vec<WorkerInput> {
        let outcomes = self.hosts.remove(id, why);
        self.follow(outcomes, now)
    }
}

/// An executor's id among all frameworks: the name of a folder has no slash.
pub(super) fn id_of(key: &ExecutorKey) -> String {
    format!("{}/{}", key.framework, key.executor)
}

pub(super) fn ended(key: ExecutorKey, state: ReportedState, message: String) -> WorkerInput {
    WorkerInput::Ended { key, state, message, is_lost: false }
}
