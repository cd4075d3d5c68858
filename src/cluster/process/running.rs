//! Executors that have processes, from the end of their start until they are reaped: kills, grace periods, and the
//! replacement of their watchdogs.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::exit::Exit;
use super::group::{ProcessGroup, ProcessOptions};
use super::process_event::{ProcessEvent, ProcessEventSink};
use super::starting::{KILL_GRACE_MAX, StartingExecutor};
use super::watchdog::Watchdog;
use crate::status::{ProcessExit, ProcessReport, TaskState};

/// The time between two checks that all watchdogs are alive.
const WATCHDOG_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// An executor with processes.
#[derive(Debug)]
pub(crate) struct RunningExecutor<T> {
    pub(crate) id: String,
    /// What the owner keeps of it.
    pub(crate) record: T,
    pub(crate) phase: RunPhase,
    group: ProcessGroup,
    /// Its owner asks it to end by its standard input.
    has_input: bool,
    /// A replacement watchdog is being started.
    awaits_watchdog: bool,
}

/// The phases of an executor that has processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunPhase {
    Running,
    /// SIGTERM was sent; SIGKILL follows at `force_at`.
    Terminating {
        force_at: Instant,
    },
    /// SIGKILL was sent.
    Killed,
    /// SIGKILL was sent, and the owner knows nothing of it any more: its end is not reported.
    Abandoned,
}

impl<T> RunningExecutor<T> {
    /// The process number.
    pub(crate) fn pid(&self) -> i32 {
        self.group.pid()
    }

    /// The executor's folder.
    pub(crate) fn sandbox(&self) -> &Path {
        self.group.sandbox()
    }

    /// What is known of the process.
    pub(crate) fn process_report(&self, exit: Option<ProcessExit>) -> ProcessReport {
        ProcessReport {
            pid: u32::try_from(self.pid()).ok(),
            sandbox: self.sandbox().to_str().map(str::to_owned),
            exit,
            ..ProcessReport::default()
        }
    }

    /// The state to report.
    pub(crate) fn state(&self) -> TaskState {
        match self.phase {
            RunPhase::Running => TaskState::Running,
            RunPhase::Terminating { .. } | RunPhase::Killed => TaskState::Killing,
            RunPhase::Abandoned => TaskState::Gone,
        }
    }

    fn terminate(&mut self, force_at: Instant, now: Instant) {
        match self.phase {
            RunPhase::Running if self.has_input => {}
            RunPhase::Running => self.group.terminate(),
            RunPhase::Terminating { force_at: sooner } if force_at < sooner => {}
            RunPhase::Terminating { .. } | RunPhase::Killed | RunPhase::Abandoned => return,
        }
        self.phase = RunPhase::Terminating { force_at };
        self.kill_if_due(now);
    }

    /// Starts a replacement watchdog on a thread of its own, because the start may block.
    fn start_watchdog(
        &self,
        number: u64,
        options: &ProcessOptions,
        events: &ProcessEventSink,
    ) -> bool {
        let start = self.group.replacement_watchdog(options);
        let events = events.clone();
        // If nothing receives the event any more, dropping it ends the watchdog.
        let work =
            move || events.send(ProcessEvent::WatchdogReplaced { number, watchdog: start() });
        Builder::new().name("offermill-watchdog".into()).spawn(work).is_ok()
    }

    fn kill_if_due(&mut self, now: Instant) {
        if matches!(self.phase, RunPhase::Terminating { force_at } if force_at <= now) {
            self.group.kill();
            self.phase = RunPhase::Killed;
        }
    }
}

/// All executors with processes, by number: the end of a process finds its executor even if the id was reused.
#[derive(Debug)]
pub(crate) struct RunningExecutors<T> {
    /// How watchdogs are started.
    options: ProcessOptions,
    events: ProcessEventSink,
    executors: BTreeMap<u64, RunningExecutor<T>>,
    /// The numbers of executors that aren't abandoned, by id.
    numbers: HashMap<String, u64>,
    next_watchdog_check: Instant,
}

impl<T> RunningExecutors<T> {
    pub(crate) fn new(options: ProcessOptions, events: ProcessEventSink) -> RunningExecutors<T> {
        RunningExecutors {
            options,
            events,
            executors: BTreeMap::new(),
            numbers: HashMap::new(),
            next_watchdog_check: Instant::now() + WATCHDOG_CHECK_INTERVAL,
        }
    }

    /// Adds an executor that was started.
    pub(crate) fn insert(
        &mut self,
        number: u64,
        start: StartingExecutor<T>,
        group: ProcessGroup,
    ) -> &RunningExecutor<T> {
        let StartingExecutor { id, record, has_input, .. } = start;
        self.numbers.insert(id.clone(), number);
        self.executors.entry(number).or_insert(RunningExecutor {
            id,
            record,
            phase: RunPhase::Running,
            group,
            has_input,
            awaits_watchdog: false,
        })
    }

    pub(crate) fn get(&self, id: &str) -> Option<&RunningExecutor<T>> {
        self.executors.get(self.numbers.get(id)?)
    }

    /// All executors that aren't abandoned.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &RunningExecutor<T>> {
        self.executors.values().filter(|executor| executor.phase != RunPhase::Abandoned)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.executors.is_empty()
    }

    /// Terminates the executor with this number, and kills it at `force_at`.
    pub(crate) fn terminate_before(&mut self, number: u64, force_at: Instant, now: Instant) {
        if let Some(executor) = self.executors.get_mut(&number) {
            executor.terminate(force_at, now);
        }
    }

    /// Terminates an executor, and kills it after `grace`. A repeated call can only shorten the grace. `None` if there
    /// is no such executor.
    pub(crate) fn terminate(
        &mut self,
        id: &str,
        grace: Duration,
        now: Instant,
    ) -> Option<&RunningExecutor<T>> {
        let executor = self.executors.get_mut(self.numbers.get(id)?)?;
        executor.terminate(now + grace.min(KILL_GRACE_MAX), now);
        Some(executor)
    }

    /// Terminates all executors, and kills them after `grace`.
    pub(crate) fn terminate_all(&mut self, grace: Duration, now: Instant) {
        for executor in self.executors.values_mut() {
            executor.terminate(now + grace.min(KILL_GRACE_MAX), now);
        }
    }

    /// Kills the executors of which the owner keeps such a record, abandons them, and returns their ids.
    pub(crate) fn abandon(&mut self, matches: impl Fn(&T) -> bool) -> Vec<String> {
        let mut lost = Vec::new();
        for executor in self.executors.values_mut() {
            if matches(&executor.record) && executor.phase != RunPhase::Abandoned {
                executor.group.kill();
                executor.phase = RunPhase::Abandoned;
                self.numbers.remove(&executor.id);
                lost.push(executor.id.clone());
            }
        }
        lost
    }

    /// Removes and reaps the executor with this number, whose process has ended.
    pub(crate) fn reap(&mut self, number: u64) -> Option<(RunningExecutor<T>, Exit)> {
        let mut executor = self.executors.remove(&number)?;
        if self.numbers.get(&executor.id) == Some(&number) {
            self.numbers.remove(&executor.id);
        }
        let exit = executor.group.reap();
        Some((executor, exit))
    }

    /// Gives the replacement watchdog to the executor with this number. If it could not be started, the next check
    /// tries again.
    pub(crate) fn replace_watchdog(&mut self, number: u64, watchdog: io::Result<Watchdog>) {
        let Some(executor) = self.executors.get_mut(&number) else { return };
        executor.awaits_watchdog = false;
        if let Ok(watchdog) = watchdog {
            executor.group.replace_watchdog(watchdog);
        }
    }

    /// Kills executors whose grace period is over, and replaces watchdogs that have ended.
    pub(crate) fn run_due(&mut self, now: Instant) {
        for executor in self.executors.values_mut() {
            executor.kill_if_due(now);
        }
        if self.next_watchdog_check <= now {
            self.next_watchdog_check = now + WATCHDOG_CHECK_INTERVAL;
            for (number, executor) in &mut self.executors {
                if !executor.awaits_watchdog && executor.group.needs_watchdog() {
                    executor.awaits_watchdog =
                        executor.start_watchdog(*number, &self.options, &self.events);
                }
            }
        }
    }

    /// The next time at which [`RunningExecutors::run_due`] has work.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let kills = self.executors.values().filter_map(|executor| match executor.phase {
            RunPhase::Terminating { force_at } => Some(force_at),
            _ => None,
        });
        let check = (!self.executors.is_empty()).then_some(self.next_watchdog_check);
        kills.chain(check).min()
    }
}
