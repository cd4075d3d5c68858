//! Executors that are being started, each on a thread of its own, because a file system or a watchdog may block.
//!
//! A start that hangs delays no other executor, no kill and not the stop. It is given up when its time is over, or when
//! the grace period of a kill that came in the meantime is over; the executor's end is reported then. If such a start
//! succeeds later, its processes are killed at once. Its thread can't be ended; when too many threads hang, no executor
//! is started until some of them return.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::group::{ProcessGroup, ProcessOptions, StartError, StartErrorKind};
use super::process_event::{ProcessEvent, ProcessEventSink};
use super::sandbox::Sandboxes;
use crate::launch::Command;

/// The maximum grace period of a kill.
pub(super) const KILL_GRACE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);
/// The maximum number of starts in progress, not counting those that have taken longer than [`SLOW_AFTER`].
const CONCURRENT_STARTS_MAX: usize = 8;
/// The time after which a start no longer counts towards [`CONCURRENT_STARTS_MAX`].
const SLOW_AFTER: Duration = Duration::from_secs(1);
/// The maximum number of threads of starts that were given up and haven't returned.
const HANGING_MAX: usize = 64;

/// An executor to start.
#[derive(Debug)]
pub(crate) struct StartRequest<T> {
    /// Identifies it among all executors of the owner.
    pub(crate) id: String,
    pub(crate) command: Command,
    /// The folders in which its sandbox is made.
    pub(crate) sandboxes: Arc<Sandboxes>,
    /// The agent's name among them.
    pub(crate) agent_id: String,
    /// The sandbox's name, which [`is_valid_name`](super::is_valid_name) allows.
    pub(crate) folder: String,
    /// Its standard input, by which its owner asks it to end: it gets no SIGTERM.
    pub(crate) input: Option<OwnedFd>,
    /// What the owner keeps of it.
    pub(crate) record: T,
}

/// An executor that is being started.
#[derive(Debug)]
pub(crate) struct StartingExecutor<T> {
    pub(crate) id: String,
    /// What the owner keeps of it.
    pub(crate) record: T,
    /// When it is ended by force, if it was killed in the meantime.
    pub(crate) force_at: Option<Instant>,
    /// The executor has ended already.
    pub(crate) has_ended: bool,
    /// Its owner asks it to end by its standard input.
    pub(crate) has_input: bool,
    started_at: Instant,
    give_up_at: Instant,
}

/// All executors that are being started, by number. An executor keeps its number when it runs.
#[derive(Debug)]
pub(crate) struct StartingExecutors<T> {
    options: ProcessOptions,
    events: ProcessEventSink,
    starting: BTreeMap<u64, StartingExecutor<T>>,
    numbers: HashMap<String, u64>,
    next_number: u64,
    /// Starts that were given up and have not returned.
    hanging: usize,
}

impl<T> StartingExecutors<T> {
    /// Creates a set without executors, whose starts and ends are reported to `events`.
    pub(crate) fn new(options: ProcessOptions, events: ProcessEventSink) -> StartingExecutors<T> {
        StartingExecutors {
            options,
            events,
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
    pub(crate) fn begin(
        &mut self,
        request: StartRequest<T>,
        now: Instant,
    ) -> Result<(), Box<(StartingExecutor<T>, StartError)>> {
        let StartRequest { id, command, sandboxes, agent_id, folder, input, record } = request;
        let executor = StartingExecutor {
            id,
            record,
            force_at: None,
            has_ended: false,
            has_input: input.is_some(),
            started_at: now,
            give_up_at: now + self.options.start_timeout,
        };
        if self.hanging >= HANGING_MAX {
            let why = format!("{HANGING_MAX} starts before it hang");
            return Err(Box::new((executor, StartError { why, kind: StartErrorKind::Failed })));
        }
        let number = self.next_number;
        self.next_number += 1;
        let events = self.events.clone();
        let options = self.options.clone();
        let work = move || {
            let start = || {
                let sandbox = sandboxes
                    .make(&agent_id, &folder)
                    .map_err(|error| StartError::from_io("the sandbox can't be created", &error))?;
                let events = events.clone();
                let ended = move || events.send(ProcessEvent::Ended(number));
                ProcessGroup::start(&options, &command, sandbox, input, ended)
            };
            events.send(ProcessEvent::Started { number, started: start() });
        };
        if let Err(error) = Builder::new().name("offermill-start".into()).spawn(work) {
            let error = StartError::from_io("no thread can be started", &error);
            return Err(Box::new((executor, error)));
        }
        self.numbers.insert(executor.id.clone(), number);
        self.starting.insert(number, executor);
        Ok(())
    }

    /// Whether another start may begin now.
    pub(crate) fn has_room(&self, now: Instant) -> bool {
        self.recent(now).count() < CONCURRENT_STARTS_MAX
    }

    /// The next time at which another start may begin or a start is given up, if no other event comes first.
    pub(crate) fn next_due(&self, now: Instant) -> Option<Instant> {
        let room_at = self.recent(now).map(|start| start.started_at + SLOW_AFTER).min();
        let room_at = room_at.filter(|_| !self.has_room(now));
        self.starting.values().map(StartingExecutor::due).chain(room_at).min()
    }

    fn recent(&self, now: Instant) -> impl Iterator<Item = &StartingExecutor<T>> {
        self.starting.values().filter(move |start| now < start.started_at + SLOW_AFTER)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.starting.is_empty()
    }

    pub(crate) fn get(&self, id: &str) -> Option<&StartingExecutor<T>> {
        self.starting.get(self.numbers.get(id)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &StartingExecutor<T>> {
        self.starting.values()
    }

    /// Ends an executor within `grace`, whether its start succeeds or not. Returns whether this is the first kill, or
    /// `None` if the executor isn't being started.
    pub(crate) fn kill(&mut self, id: &str, grace: Duration, now: Instant) -> Option<bool> {
        let executor = self.starting.get_mut(self.numbers.get(id)?)?;
        Some(executor.kill(grace, now))
    }

    /// Ends all executors within `grace`.
    pub(crate) fn kill_all(&mut self, grace: Duration, now: Instant) {
        for executor in self.starting.values_mut() {
            executor.kill(grace, now);
        }
    }

    /// Removes the executor with this number, whose start has returned. `None` if the start was given up before.
    pub(crate) fn finish(&mut self, number: u64) -> Option<StartingExecutor<T>> {
        let executor = self.remove(number);
        if executor.is_none() {
            self.hanging = self.hanging.saturating_sub(1);
        }
        executor
    }

    /// Records that the executor with this number has ended. Returns `false` if it isn't being started.
    pub(crate) fn record_end(&mut self, number: u64) -> bool {
        let Some(executor) = self.starting.get_mut(&number) else { return false };
        executor.has_ended = true;
        true
    }

    /// Gives up the starts whose time is over.
    pub(crate) fn give_up_due(&mut self, now: Instant) -> Vec<StartingExecutor<T>> {
        self.give_up_if(|executor| executor.due() <= now)
    }

    /// Gives up the starts of executors of which the owner keeps such a record.
    pub(crate) fn give_up_matching(
        &mut self,
        matches: impl Fn(&T) -> bool,
    ) -> Vec<StartingExecutor<T>> {
        self.give_up_if(|executor| matches(&executor.record))
    }

    fn give_up_if(
        &mut self,
        is_over: impl Fn(&StartingExecutor<T>) -> bool,
    ) -> Vec<StartingExecutor<T>> {
        let over = self.starting.iter().filter(|(_, executor)| is_over(executor));
        let numbers: Vec<u64> = over.map(|(number, _)| *number).collect();
        self.hanging += numbers.len();
        numbers.into_iter().filter_map(|number| self.remove(number)).collect()
    }

    fn remove(&mut self, number: u64) -> Option<StartingExecutor<T>> {
        let executor = self.starting.remove(&number)?;
        self.numbers.remove(&executor.id);
        Some(executor)
    }
}

impl<T> StartingExecutor<T> {
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
