//! One executor, as far as its idleness goes.

use super::rule::Rule;
use crate::time::Timestamp;

/// Shuffle data on an executor, where it is tracked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShuffleData {
    /// There is none.
    #[default]
    None,
    /// There is some, and no job that runs needs it.
    Kept,
    /// A job that runs needs it.
    Needed,
}

/// An executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tracked {
    /// Since when it has no tasks; `None` while it has.
    pub(super) idle_since: Option<Timestamp>,
    pub(super) has_cached: bool,
    pub(super) shuffle: ShuffleData,
    /// Whether it is being ended.
    pub(super) is_leaving: bool,
}

impl Tracked {
    /// One that has just come.
    pub(super) fn new(now: Timestamp) -> Tracked {
        let shuffle = ShuffleData::None;
        Tracked { idle_since: Some(now), has_cached: false, shuffle, is_leaving: false }
    }

    /// Whether it has been idle for as long as the rule allows one like it.
    pub(super) fn is_overdue(&self, rule: &Rule, now: Timestamp) -> bool {
        let Some(since) = self.idle_since.filter(|_| !self.is_leaving) else { return false };
        let timeout = match (self.has_cached, self.shuffle) {
            (_, ShuffleData::Needed) => None,
            (false, ShuffleData::None) => Some(rule.idle_timeout),
            (true, ShuffleData::None) => rule.cached_idle_timeout,
            (false, ShuffleData::Kept) => rule.shuffle_timeout,
            // As in Spark the shorter counts.
            (true, ShuffleData::Kept) => {
                let both = [rule.cached_idle_timeout, rule.shuffle_timeout];
                both.into_iter().flatten().min()
            }
        };
        timeout.is_some_and(|timeout| now.since(since) >= timeout)
    }
}
