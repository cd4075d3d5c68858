//! The allocator's state of one executor: idle time, cached blocks and shuffle data.

use super::rule::AllocationRule;
use crate::time::Timestamp;

/// Whether an executor holds shuffle data, if shuffle data is tracked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShuffleData {
    /// No shuffle data.
    #[default]
    None,
    /// Shuffle data that no running job needs.
    Kept,
    /// Shuffle data that a running job needs.
    Needed,
}

/// The state of one executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tracked {
    /// When it became idle; `None` while it has tasks.
    pub(super) idle_since: Option<Timestamp>,
    pub(super) has_cached: bool,
    pub(super) shuffle: ShuffleData,
    /// Whether it is being ended or was asked to end.
    pub(super) is_leaving: bool,
}

impl Tracked {
    /// A new executor, which has no tasks.
    pub(super) fn new(now: Timestamp) -> Tracked {
        let shuffle = ShuffleData::None;
        Tracked { idle_since: Some(now), has_cached: false, shuffle, is_leaving: false }
    }

    /// Whether it has been idle for at least the timeout that the rule sets for an executor with its data.
    pub(super) fn is_overdue(&self, rule: &AllocationRule, now: Timestamp) -> bool {
        let Some(since) = self.idle_since.filter(|_| !self.is_leaving) else { return false };
        let timeout = match (self.has_cached, self.shuffle) {
            (_, ShuffleData::Needed) => None,
            (false, ShuffleData::None) => Some(rule.idle_timeout),
            (true, ShuffleData::None) => rule.cached_idle_timeout,
            (false, ShuffleData::Kept) => rule.shuffle_timeout,
            // As in Spark, the shorter timeout applies.
            (true, ShuffleData::Kept) => {
                let both = [rule.cached_idle_timeout, rule.shuffle_timeout];
                both.into_iter().flatten().min()
            }
        };
        timeout.is_some_and(|timeout| now.since(since) >= timeout)
    }
}
