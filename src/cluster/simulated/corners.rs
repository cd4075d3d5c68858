//! Corner cases, and how often a simulation reaches each.

use std::time::Duration;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::framework::WorkFate;
use super::scenario::Scenario;
use crate::engine::Notice;
use crate::engine::cluster_manager::Call;
use crate::kernel::Change;

/// The maximum distance from a deadline at which an executor counts as back at the deadline, in milliseconds.
const CLOSE_MS: u64 = 1_500;

macro_rules! corners {
    ($($corner:ident = $text:literal,)+) => {
        /// A corner case.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Corner {
            $($corner,)+
        }

        /// The descriptions, in the order of [`Corner`].
        const TEXTS: &[&str] = &[$($text,)+];
    };
}

corners! {
    Update = "an update between a batch's commit and a call of it",
    Registered = "a further subscription between a batch's commit and a call of it",
    Question = "a question by name between a batch's commit and a call of it",
    Kill = "a kill between a batch's commit and a call of it",
    Poll = "time that passes between a batch's commit and a call of it",
    Batch = "another batch between a batch's commit and a call of it",
    Stale = "an answer to an offer of a former subscription",
    BackAtRelease = "an executor is back when it is about to be given up, or just was",
    BackAtForget = "an executor is back when it is about to be forgotten",
    BackAfterGivenUp = "an executor is back after it was given up",
    UnreachableAgain = "an executor is unreachable again after it came back",
    Bound = "an executor is bound late",
    Unwelcome = "an executor is found on an agent that doesn't take it",
    Avoid = "the cluster is told which agents to avoid",
    HostLost = "a host ends with tasks in it",
    HostIdle = "a host is ended because it is idle",
    HostGivenUp = "a host is given up",
    HostedBack = "a host, or a task in one, is back after it was given up",
    PutBack = "a task waits again because nothing of it has begun",
    Undecided = "the end of a task waits for that of its host",
}

/// Corner cases from this one on are those of hosts.
const FIRST_OF_HOSTS: usize = Corner::HostLost as usize;
/// Corner cases from this one on are those of work queues with hosts.
const FIRST_OF_WORK_QUEUES: usize = Corner::PutBack as usize;

/// Counts of the events that may occur between the steps of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EventCounts {
    updates: u64,
    registrations: u64,
    reconciliation: u64,
    kills: u64,
    polls: u64,
    batches: u64,
}

/// The state of an executor that was unreachable, and since when in virtual milliseconds.
#[derive(Clone, Copy, Debug)]
enum Visibility {
    Out(u64),
    GivenUp(u64),
    Back,
}

#[derive(Debug)]
pub(super) struct Corners {
    reached: [u64; TEXTS.len()],
    pub(super) seen: EventCounts,
    visibility: HashMap<String, Visibility, FixedState>,
    release_after: u64,
    forget_after: u64,
    has_hosts: bool,
    has_work_queue: bool,
}

impl Corners {
    pub(super) fn new(scenario: &Scenario) -> Corners {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Corners {
            reached: [0; TEXTS.len()],
            seen: EventCounts::default(),
            visibility: HashMap::default(),
            release_after: millis(scenario.release_after),
            forget_after: millis(scenario.forget_after()),
            has_hosts: scenario.has_hosts(),
            has_work_queue: scenario.has_work_queue(),
        }
    }

    /// The corner cases, and how often the simulation has reached each. With hosts, these are those of hosts.
    pub(super) fn reached(&self) -> Vec<(&'static str, u64)> {
        let own = match (self.has_hosts, self.has_work_queue) {
            (false, _) => 0..FIRST_OF_HOSTS,
            (true, false) => FIRST_OF_HOSTS..FIRST_OF_WORK_QUEUES,
            (true, true) => FIRST_OF_HOSTS..TEXTS.len(),
        };
        TEXTS[own.clone()].iter().copied().zip(self.reached[own].iter().copied()).collect()
    }

    /// Something becomes of a task or a host.
    pub(super) fn work(&mut self, fate: WorkFate) {
        let corner = match fate {
            WorkFate::HostLost => Corner::HostLost,
            WorkFate::HostGivenUp => Corner::HostGivenUp,
            WorkFate::HostedBack => Corner::HostedBack,
            WorkFate::PutBack => Corner::PutBack,
            WorkFate::Undecided => Corner::Undecided,
        };
        self.record(corner, true);
    }

    /// This many hosts are ended because they are idle.
    pub(super) fn hosts_idle(&mut self, hosts: usize) {
        self.reached[Corner::HostIdle as usize] += hosts as u64;
    }

    pub(super) fn polled(&mut self) {
        self.seen.polls += 1;
    }

    pub(super) fn batch_answered(&mut self) {
        self.seen.batches += 1;
    }

    pub(super) fn called(&mut self, call: &Call<'_>, stale: bool) {
        match call {
            Call::Reconcile(tasks) if !tasks.is_empty() => self.seen.reconciliation += 1,
            Call::Kill { .. } => self.seen.kills += 1,
            Call::Avoid(_) => self.record(Corner::Avoid, true),
            _ => {}
        }
        self.record(Corner::Stale, stale);
    }

    /// Records that a call of a batch is made. `committed` are the counts at the commit of the batch.
    pub(super) fn call_made(&mut self, committed: EventCounts) {
        let seen = self.seen;
        self.record(Corner::Update, seen.updates > committed.updates);
        self.record(Corner::Registered, seen.registrations > committed.registrations);
        self.record(Corner::Question, seen.reconciliation > committed.reconciliation);
        self.record(Corner::Kill, seen.kills > committed.kills);
        self.record(Corner::Poll, seen.polls > committed.polls);
        self.record(Corner::Batch, seen.batches > committed.batches);
    }

    pub(super) fn noticed(&mut self, notice: &Notice, now: u64) {
        let (executor, change) = match notice {
            Notice::Registered { .. } => {
                self.seen.registrations += 1;
                return;
            }
            Notice::Bound { .. } => return self.record(Corner::Bound, true),
            Notice::Unwelcome { .. } => return self.record(Corner::Unwelcome, true),
            Notice::Updated { executor, change, .. } => {
                self.seen.updates += 1;
                (executor, *change)
            }
            Notice::GivenUp { executor } => {
                self.visibility.insert(executor.clone(), Visibility::GivenUp(now));
                return;
            }
            Notice::Forgotten { executor } => {
                self.visibility.remove(executor);
                return;
            }
            _ => return,
        };
        match change {
            Change::Unreachable => {
                let before = self.visibility.insert(executor.clone(), Visibility::Out(now));
                self.record(Corner::UnreachableAgain, matches!(before, Some(Visibility::Back)));
            }
            Change::Returned | Change::Readmitted => {
                let before = self.visibility.insert(executor.clone(), Visibility::Back);
                self.returned(before, now);
            }
            Change::Ended(_) if !self.visibility.is_empty() => {
                self.visibility.remove(executor);
            }
            _ => {}
        }
    }

    fn returned(&mut self, before: Option<Visibility>, now: u64) {
        let close = |since: u64, after: u64| since.saturating_add(after).abs_diff(now) <= CLOSE_MS;
        match before {
            Some(Visibility::Out(since)) => {
                self.record(Corner::BackAtRelease, close(since, self.release_after));
            }
            Some(Visibility::GivenUp(since)) => {
                self.record(Corner::BackAfterGivenUp, true);
                self.record(Corner::BackAtRelease, close(since, 0));
                self.record(Corner::BackAtForget, close(since, self.forget_after));
            }
            _ => {}
        }
    }

    fn record(&mut self, corner: Corner, reached: bool) {
        self.reached[corner as usize] += u64::from(reached);
    }
}
