//! Executors that have processes, from the end of their start until they are reaped: kills, grace periods, and the
//! replacement of their watchdogs.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::message::{ActorMessage, KILL_GRACE_MAX};
use super::starting::StartingExecutor;
use crate::cluster::process::{Exit, ProcessGroup, ProcessOptions, Watchdog};
use crate::cluster::worker_offers::CpuMemory;
use crate::status::{ProcessExit, ProcessReport, TaskState};

/// The time between two checks that all watchdogs are alive.
const WATCHDOG_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// An executor with processes.
pub(super) struct RunningExecutor {
    pub(super) id: String,
    pub(super) agent: usize,
    pub(super) agent_id: String,
    pub(super) amounts: CpuMemory,
    pub(super) port: Option<u16>,
    pub(super) phase: RunPhase,
    group: ProcessGroup,
    /// A replacement watchdog is being started.
    awaits_watchdog: bool,
}

/// The phases of an executor that has processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunPhase {
    Running,
    /// SIGTERM was sent; SIGKILL follows at `force_at`.
    Terminating {
        force_at: Instant,
    },
    /// SIGKILL was sent.
    Killed,
    /// Its agent was lost: SIGKILL was sent, the executor was reported gone, and its end is not reported again.
    AgentLost,
}

impl RunningExecutor {
    /// The process number.
    pub(super) fn pid(&self) -> i32 {
        self.group.pid()
    }

    /// The executor's folder.
    pub(super) fn sandbox(&self) -> &Path {
        self.group.sandbox()
    }

    /// What is known of the process.
    pub(super) fn process_report(&self, exit: Option<ProcessExit>) -> ProcessReport {
        ProcessReport {
            pid: u32::try_from(self.pid()).ok(),
            sandbox: self.sandbox().to_str().map(str::to_owned),
            exit,
        }
    }

    /// The state to report.
    pub(super) fn state(&self) -> TaskState {
        match self.phase {
            RunPhase::Running => TaskState::Running,
            RunPhase::Terminating { .. } | RunPhase::Killed => TaskState::Killing,
            RunPhase::AgentLost => TaskState::Gone,
        }
    }

    fn terminate(&mut self, force_at: Instant, now: Instant) {
        match self.phase {
            RunPhase::Running => self.group.terminate(),
            RunPhase::Terminating { force_at: sooner } if force_at < sooner => {}
            RunPhase::Terminating { .. } | RunPhase::Killed | RunPhase::AgentLost => return,
        }
        self.phase = RunPhase::Terminating { force_at };
        self.kill_if_due(now);
    }

    /// Starts a replacement watchdog on a thread of its own, because the start may block.
    fn start_watchdog(
        &self,
        number: u64,
        options: &ProcessOptions,
        inbox: &Sender<ActorMessage>,
    ) -> bool {
        let start = self.group.replacement_watchdog(options);
        let inbox = inbox.clone();
        let work = move || {
            // If the cluster has stopped in the meantime, dropping the message ends the watchdog.
            let _stopped = inbox.send(ActorMessage::WatchdogReplaced { number, watchdog: start() });
        };
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
pub(super) struct RunningExecutors {
    /// How watchdogs are started.
    options: ProcessOptions,
    inbox: Sender<ActorMessage>,
    executors: BTreeMap<u64, RunningExecutor>,
    /// The numbers of executors whose agents aren't lost, by id.
    numbers: HashMap<String, u64>,
    next_watchdog_check: Instant,
}

impl RunningExecutors {
    pub(super) fn new(options: ProcessOptions, inbox: Sender<ActorMessage>) -> RunningExecutors {
        RunningExecutors {
            options,
            inbox,
            executors: BTreeMap::new(),
            numbers: HashMap::new(),
            next_watchdog_check: Instant::now() + WATCHDOG_CHECK_INTERVAL,
        }
    }

    /// Adds an executor that was started.
    pub(super) fn insert(
        &mut self,
        number: u64,
        start: StartingExecutor,
        group: ProcessGroup,
    ) -> &RunningExecutor {
        let StartingExecutor { id, agent, agent_id, amounts, port, .. } = start;
        self.numbers.insert(id.clone(), number);
        self.executors.entry(number).or_insert(RunningExecutor {
            id,
            agent,
            agent_id,
            amounts,
            port,
            phase: RunPhase::Running,
            group,
            awaits_watchdog: false,
        })
    }

    pub(super) fn get(&self, id: &str) -> Option<&RunningExecutor> {
        self.executors.get(self.numbers.get(id)?)
    }

    /// All executors whose agents aren't lost.
    pub(super) fn iter(&self) -> impl Iterator<Item = &RunningExecutor> {
        self.executors.values().filter(|executor| executor.phase != RunPhase::AgentLost)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.executors.is_empty()
    }

    /// Terminates the executor with this number, and kills it at `force_at`.
    pub(super) fn terminate_before(&mut self, number: u64, force_at: Instant, now: Instant) {
        if let Some(executor) = self.executors.get_mut(&number) {
            executor.terminate(force_at, now);
        }
    }

    /// Terminates an executor, and kills it after `grace`. A repeated call can only shorten the grace. `None` if there
    /// is no such executor.
    pub(super) fn terminate(
        &mut self,
        id: &str,
        grace: Duration,
        now: Instant,
    ) -> Option<&RunningExecutor> {
        let executor = self.executors.get_mut(self.numbers.get(id)?)?;
        executor.terminate(now + grace.min(KILL_GRACE_MAX), now);
        Some(executor)
    }

    /// Terminates all executors, and kills them after `grace`.
    pub(super) fn terminate_all(&mut self, grace: Duration, now: Instant) {
        for executor in self.executors.values_mut() {
            executor.terminate(now + grace.min(KILL_GRACE_MAX), now);
        }
    }

    /// Kills all executors of a lost agent, and returns their ids.
    pub(super) fn lose_agent(&mut self, agent_id: &str) -> Vec<String> {
        let mut lost = Vec::new();
        for executor in self.executors.values_mut() {
            if executor.agent_id == agent_id && executor.phase != RunPhase::AgentLost {
                executor.group.kill();
                executor.phase = RunPhase::AgentLost;
                self.numbers.remove(&executor.id);
                lost.push(executor.id.clone());
            }
        }
        lost
    }

    /// Removes and reaps the executor with this number, whose process has ended.
    pub(super) fn reap(&mut self, number: u64) -> Option<(RunningExecutor, Exit)> {
        let mut executor = self.executors.remove(&number)?;
        if self.numbers.get(&executor.id) == Some(&number) {
            self.numbers.remove(&executor.id);
        }
        let exit = executor.group.reap();
        Some((executor, exit))
    }

    /// Gives the replacement watchdog to the executor with this number. If it could not be started, the next check
    /// tries again.
    pub(super) fn replace_watchdog(&mut self, number: u64, watchdog: io::Result<Watchdog>) {
        let Some(executor) = self.executors.get_mut(&number) else { return };
        executor.awaits_watchdog = false;
        if let Ok(watchdog) = watchdog {
            executor.group.replace_watchdog(watchdog);
        }
    }

    /// Kills executors whose grace period is over, and replaces watchdogs that have ended.
    pub(super) fn run_due(&mut self, now: Instant) {
        for executor in self.executors.values_mut() {
            executor.kill_if_due(now);
        }
        if self.next_watchdog_check <= now {
            self.next_watchdog_check = now + WATCHDOG_CHECK_INTERVAL;
            for (number, executor) in &mut self.executors {
                if !executor.awaits_watchdog && executor.group.needs_watchdog() {
                    executor.awaits_watchdog =
                        executor.start_watchdog(*number, &self.options, &self.inbox);
                }
            }
        }
    }

    /// The next time at which [`RunningExecutors::run_due`] has work.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let kills = self.executors.values().filter_map(|executor| match executor.phase {
            RunPhase::Terminating { force_at } => Some(force_at),
            _ => None,
        });
        let check = (!self.executors.is_empty()).then_some(self.next_watchdog_check);
        kills.chain(check).min()
    }
}
