//! Executors that are being started, each on a thread of its own, because a file system or a watchdog may block.
//!
//! A start that hangs delays no other executor, no kill and not the stop. It is given up when its time is over, or when
//! the grace period of a kill that came in the meantime is over; the executor's end is reported then. If such a start
//! succeeds later, its processes are killed at once. Its thread can't be ended; when too many threads hang, no executor
//! is started until some of them return.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::mpsc::{SendError, Sender};
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::launch_queue::QueuedLaunch;
use super::message::{ActorMessage, KILL_GRACE_MAX, LaunchRequest};
use crate::cluster::process::{
    ProcessGroup, ProcessOptions, Sandboxes, StartError, StartErrorKind,
};
use crate::cluster::worker_offers::CpuMemory;

/// The maximum number of starts in progress, not counting those that have taken longer than [`SLOW_AFTER`].
const CONCURRENT_STARTS_MAX: usize = 8;
/// The time after which a start no longer counts towards [`CONCURRENT_STARTS_MAX`].
const SLOW_AFTER: Duration = Duration::from_secs(1);
/// The maximum number of threads of starts that were given up and haven't returned.
const HANGING_MAX: usize = 64;

/// An executor that is being started.
#[derive(Debug)]
pub(super) struct StartingExecutor {
    pub(super) id: String,
    pub(super) agent: usize,
    pub(super) agent_id: String,
    pub(super) amounts: CpuMemory,
    pub(super) port: Option<u16>,
    /// When it is ended by force, if it was killed in the meantime.
    pub(super) force_at: Option<Instant>,
    /// The executor has ended already.
    pub(super) has_ended: bool,
    started_at: Instant,
    give_up_at: Instant,
}

/// Starts executors on any thread.
#[derive(Clone, Debug)]
pub(super) struct ExecutorStarter {
    pub(super) sandboxes: Arc<Sandboxes>,
    pub(super) options: ProcessOptions,
    pub(super) inbox: Sender<ActorMessage>,
}

/// All executors that are being started, by number. An executor keeps its number when it runs.
#[derive(Debug)]
pub(super) struct StartingExecutors {
    starter: ExecutorStarter,
    starting: BTreeMap<u64, StartingExecutor>,
    numbers: HashMap<String, u64>,
    next_number: u64,
    /// Starts that were given up and have not returned.
    hanging: usize,
}

impl StartingExecutors {
    pub(super) fn new(starter: ExecutorStarter) -> StartingExecutors {
        StartingExecutors {
            starter,
            starting: BTreeMap::new(),
            numbers: HashMap::new(),
            next_number: 0,
            hanging: 0,
        }
    }

    /// Begins to start an executor.
    ///
    /// # Errors
    /// The reason for which it can't be started, and the executor.
    pub(super) fn begin(
        &mut self,
        launch: QueuedLaunch,
        now: Instant,
    ) -> Result<(), Box<(StartingExecutor, StartError)>> {
        let QueuedLaunch { request, agent, agent_id } = launch;
        let executor = StartingExecutor {
            id: request.executor.clone(),
            agent,
            agent_id: agent_id.clone(),
            amounts: request.amounts,
            port: request.port,
            force_at: None,
            has_ended: false,
            started_at: now,
            give_up_at: now + self.starter.options.start_timeout,
        };
        if self.hanging >= HANGING_MAX {
            let why = format!("{HANGING_MAX} starts before it hang");
            return Err(Box::new((executor, StartError { why, kind: StartErrorKind::Failed })));
        }
        let number = self.next_number;
        self.next_number += 1;
        let starter = self.starter.clone();
        let work = move || starter.start_and_report(number, &request, &agent_id);
        if let Err(error) = Builder::new().name("offermill-start".into()).spawn(work) {
            let error = StartError::from_io("no thread can be started", &error);
            return Err(Box::new((executor, error)));
        }
        self.numbers.insert(executor.id.clone(), number);
        self.starting.insert(number, executor);
        Ok(())
    }

    /// Whether another start may begin now.
    pub(super) fn has_room(&self, now: Instant) -> bool {
        self.recent(now).count() < CONCURRENT_STARTS_MAX
    }

    /// The next time at which another start may begin or a start is given up, if no other event comes first.
    pub(super) fn next_due(&self, now: Instant) -> Option<Instant> {
        let room_at = self.recent(now).map(|start| start.started_at + SLOW_AFTER).min();
        let room_at = room_at.filter(|_| !self.has_room(now));
        self.starting.values().map(StartingExecutor::due).chain(room_at).min()
    }

    fn recent(&self, now: Instant) -> impl Iterator<Item = &StartingExecutor> {
        self.starting.values().filter(move |start| now < start.started_at + SLOW_AFTER)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.starting.is_empty()
    }

    pub(super) fn get(&self, id: &str) -> Option<&StartingExecutor> {
        self.starting.get(self.numbers.get(id)?)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &StartingExecutor> {
        self.starting.values()
    }

    /// Ends an executor within `grace`, whether its start succeeds or not. Returns whether this is the first kill, or
    /// `None` if the executor isn't being started.
    pub(super) fn kill(&mut self, id: &str, grace: Duration, now: Instant) -> Option<bool> {
        let executor = self.starting.get_mut(self.numbers.get(id)?)?;
        Some(executor.kill(grace, now))
    }

    /// Ends all executors within `grace`.
    pub(super) fn kill_all(&mut self, grace: Duration, now: Instant) {
        for executor in self.starting.values_mut() {
            executor.kill(grace, now);
        }
    }

    /// Removes the executor with this number, whose start has returned. `None` if the start was given up before.
    pub(super) fn finish(&mut self, number: u64) -> Option<StartingExecutor> {
        let executor = self.remove(number);
        if executor.is_none() {
            self.hanging = self.hanging.saturating_sub(1);
        }
        executor
    }

    /// Records that the executor with this number has ended. Returns `false` if it isn't being started.
    pub(super) fn record_end(&mut self, number: u64) -> bool {
        let Some(executor) = self.starting.get_mut(&number) else { return false };
        executor.has_ended = true;
        true
    }

    /// Gives up the starts whose time is over.
    pub(super) fn give_up_due(&mut self, now: Instant) -> Vec<StartingExecutor> {
        self.give_up_if(|executor| executor.due() <= now)
    }

    /// Gives up the starts on an agent.
    pub(super) fn give_up_agent(&mut self, agent_id: &str) -> Vec<StartingExecutor> {
        self.give_up_if(|executor| executor.agent_id == agent_id)
    }

    fn give_up_if(&mut self, is_over: impl Fn(&StartingExecutor) -> bool) -> Vec<StartingExecutor> {
        let over = self.starting.iter().filter(|(_, executor)| is_over(executor));
        let numbers: Vec<u64> = over.map(|(number, _)| *number).collect();
        self.hanging += numbers.len();
        numbers.into_iter().filter_map(|number| self.remove(number)).collect()
    }

    fn remove(&mut self, number: u64) -> Option<StartingExecutor> {
        let executor = self.starting.remove(&number)?;
        self.numbers.remove(&executor.id);
        Some(executor)
    }
}

impl StartingExecutor {
    /// When the start is given up.
    fn due(&self) -> Instant {
        self.force_at.map_or(self.give_up_at, |force_at| force_at.min(self.give_up_at))
    }

    fn kill(&mut self, grace: Duration, now: Instant) -> bool {
        let is_first = self.force_at.is_none();
        let force_at = now + grace.min(KILL_GRACE_MAX);
        self.force_at = Some(self.force_at.map_or(force_at, |sooner| sooner.min(force_at)));
        is_first
    }
}

impl ExecutorStarter {
    /// Starts an executor and sends the result to the cluster's thread.
    fn start_and_report(self, number: u64, request: &LaunchRequest, agent_id: &str) {
        let started = self.start(number, request, agent_id);
        let sent = self.inbox.send(ActorMessage::Started { number, started });
        // The cluster has stopped in the meantime.
        if let Err(SendError(ActorMessage::Started { started: Ok(mut group), .. })) = sent {
            let _how = group.reap();
        }
    }

    fn start(
        &self,
        number: u64,
        request: &LaunchRequest,
        agent_id: &str,
    ) -> Result<ProcessGroup, StartError> {
        let sandbox = self
            .sandboxes
            .make(agent_id, &request.executor)
            .map_err(|error| StartError::from_io("the sandbox can't be created", &error))?;
        let inbox = self.inbox.clone();
        let ended = move || {
            let _ = inbox.send(ActorMessage::Ended(number));
        };
        ProcessGroup::start(&self.options, &request.command, sandbox, ended)
    }
}
