//! Kills until the end is reported, and none after it: part of rules 23 and 29.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Finding;
use crate::time::Timestamp;

/// The first repetition is due after so long, each further one after twice as long, up to the most.
const AGAIN_AFTER: Duration = Duration::from_secs(15);
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(300);
/// The controller may be so late.
const SLACK: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct Kills {
    /// Executors in the ledger that were asked to end.
    open: BTreeMap<String, Asked>,
    /// Executors that are not in the ledger and were reported alive since they left it, if they ever were there.
    strays: BTreeSet<String>,
}

struct Asked {
    last: Timestamp,
    calls: u32,
    /// The calls of its batch are still being made.
    waits: bool,
}

impl Asked {
    /// By then there must be a further call.
    fn due(&self) -> Timestamp {
        let again = |before: u32| AGAIN_AFTER.saturating_mul(1 << before.min(16));
        let after = self.calls.checked_sub(1).map_or(Duration::ZERO, again);
        self.last.plus(after.min(AGAIN_AFTER_MAX)).plus(SLACK)
    }
}

impl Kills {
    /// An executor in the ledger is to end.
    pub(super) fn wanted(&mut self, executor: &str, waits: bool, now: Timestamp) {
        self.open.insert(executor.to_owned(), Asked { last: now, calls: 0, waits });
    }

    /// The calls that launch these were made.
    pub(super) fn launched(&mut self, executors: &[String], now: Timestamp) {
        for executor in executors {
            if let Some(asked) = self.open.get_mut(executor).filter(|asked| asked.waits) {
                (asked.last, asked.waits) = (now, false);
            }
        }
    }

    /// There is a report about an executor that is not in the ledger.
    pub(super) fn heard_of_stray(&mut self, executor: &str, alive: bool) {
        if alive {
            self.strays.insert(executor.to_owned());
        } else {
            self.strays.remove(executor);
        }
    }

    /// An executor left the ledger.
    pub(super) fn ended(&mut self, executor: &str) {
        self.open.remove(executor);
        self.strays.remove(executor);
    }

    /// A call is made, for an executor in the ledger (`known`) or another.
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
        if known || self.strays.contains(executor) {
            return Ok(());
        }
        Err(format!("executor {executor} is asked to end, and was not reported alive since it did"))
    }

    /// Everyone who was asked to end was asked again in time.
    pub(super) fn polled(&self, now: Timestamp) -> Result<(), String> {
        let mut open = self.open.iter().filter(|(_, asked)| !asked.waits);
        let late = open.find(|(_, asked)| asked.due() < now);
        let Some((executor, asked)) = late else { return Ok(()) };
        let (last, calls) = (asked.last, asked.calls);
        Err(format!(
            "executor {executor} was asked to end {calls} times, last at {last}, and not again"
        ))
    }

    /// An executor that was asked to end and has not ended.
    pub(super) fn first_open(&self) -> Option<&str> {
        self.open.keys().next().map(String::as_str)
    }
}

/// With the rule's number.
pub(super) fn judged(result: Result<(), String>, closed: bool) -> Result<(), Finding> {
    result.map_err(|what| (if closed { 23 } else { 29 }, what))
}
