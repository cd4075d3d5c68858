//! Checks that kills are repeated until the executor's end is reported, and not after it: part of invariants 23 and 29.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::rule::RuleViolation;
use crate::time::Timestamp;

/// The time until the first repetition of a kill. It doubles with each repetition.
const RETRY_MIN: Duration = Duration::from_secs(15);
/// The maximum time between two repetitions.
const RETRY_MAX: Duration = Duration::from_secs(300);
/// The maximum delay of the controller.
const SLACK: Duration = Duration::from_secs(5);

/// The kills whose executors have not ended.
#[derive(Default)]
pub(super) struct KillChecker {
    /// The kills of known executors.
    open: BTreeMap<String, KillState>,
    /// Unknown executors that were reported alive, and are not in the expected state, or no longer.
    unknown_alive: BTreeSet<String>,
}

/// The calls that kill one executor.
struct KillState {
    last: Timestamp,
    calls: u32,
    /// The calls of its batch have not all been made.
    waits: bool,
}

impl KillState {
    /// The time by which the kill must be repeated.
    fn due(&self) -> Timestamp {
        let again = |before: u32| RETRY_MIN.saturating_mul(1 << before.min(16));
        let after = self.calls.checked_sub(1).map_or(Duration::ZERO, again);
        self.last.plus(after.min(RETRY_MAX)).plus(SLACK)
    }
}

impl KillChecker {
    /// A known executor is to be killed.
    pub(super) fn wanted(&mut self, executor: &str, waits: bool, now: Timestamp) {
        self.open.insert(executor.to_owned(), KillState { last: now, calls: 0, waits });
    }

    /// All calls of the batch of these executors have been made.
    pub(super) fn launched(&mut self, executors: &[String], now: Timestamp) {
        for executor in executors {
            if let Some(asked) = self.open.get_mut(executor).filter(|asked| asked.waits) {
                asked.last = now;
                asked.waits = false;
            }
        }
    }

    /// The cluster reports an unknown executor.
    pub(super) fn unknown_reported(&mut self, executor: &str, alive: bool) {
        if alive {
            self.unknown_alive.insert(executor.to_owned());
        } else {
            self.unknown_alive.remove(executor);
        }
    }

    /// An executor has ended or was forgotten.
    pub(super) fn ended(&mut self, executor: &str) {
        self.open.remove(executor);
        self.unknown_alive.remove(executor);
    }

    /// A kill is sent, for a known executor or another one.
    pub(super) fn called(
        &mut self,
        executor: &str,
        known: bool,
        now: Timestamp,
    ) -> Result<(), String> {
        if let Some(asked) = self.open.get_mut(executor) {
            asked.last = now;
            asked.calls += 1;
        }
        if known || self.unknown_alive.contains(executor) {
            return Ok(());
        }
        Err(format!("executor {executor} is killed, and was not reported alive since it ended"))
    }

    /// Checks that all kills have been repeated in time.
    pub(super) fn polled(&self, now: Timestamp) -> Result<(), String> {
        let mut open = self.open.iter().filter(|(_, asked)| !asked.waits);
        let late = open.find(|(_, asked)| asked.due() < now);
        let Some((executor, asked)) = late else { return Ok(()) };
        let KillState { last, calls, .. } = asked;
        Err(format!("executor {executor} was killed {calls} times, last at {last}, and not again"))
    }

    /// An executor that was killed and has not ended.
    pub(super) fn first_open(&self) -> Option<&str> {
        self.open.keys().next().map(String::as_str)
    }
}

/// Adds the invariant's number to a violation.
pub(super) fn numbered(result: Result<(), String>, closed: bool) -> Result<(), RuleViolation> {
    result.map_err(|what| (if closed { 23 } else { 29 }, what))
}
