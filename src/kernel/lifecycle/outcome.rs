//! What a status update did, and where that is written.

use std::sync::Arc;

use crate::ids::ExecutorId;
use crate::resources::ExecutorResources;
use crate::status::Fate;
use crate::time::Timestamp;

/// The result of a status update.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Outcome {
    /// The executor, if the kernel knows it.
    pub executor: Option<ExecutorId>,
    /// The executor's [tag](crate::Task::tag), if it is a task that was alive when the update came: the first update
    /// that ends a task has it, later ones don't. `None` for executors that were not placed as tasks.
    pub tag: Option<u64>,
    /// What changed.
    pub change: Change,
    /// The resources that it freed; none if it freed nothing. An executor that ends after it was
    /// [given up](crate::Ticked::given_up) frees nothing: its resources were freed then.
    pub freed: Option<ExecutorResources>,
    /// Whether the executor must be killed, because it is unknown or because it returned and there is no room for it
    /// any more.
    pub kill: bool,
    /// The agent's exclusion, if this failure reached
    /// [`ExclusionRule::failures`](crate::config::ExclusionRule::failures).
    pub excluded: Option<Exclusion>,
}

/// What a status update changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Change {
    /// Nothing: the update was a duplicate or came too late. Or the executor was [given
    /// up](crate::Ticked::given_up), and a batch of another thread has booked the room in its queue and may give it
    /// back: it stays given up, and is among those that [`Scope::InDoubt`](crate::Scope::InDoubt) asks about.
    Nothing,
    /// Nothing: this kernel never placed such an executor.
    UnknownExecutor,
    /// The executor was seen running for the first time.
    Running,
    /// The executor is unreachable.
    Unreachable,
    /// The executor was unreachable and is back. Its resources were counted all the time.
    Returned,
    /// The executor was [given up](crate::Ticked::given_up) and is back. The resources that were freed then are counted
    /// again.
    Readmitted,
    /// The executor was [given up](crate::Ticked::given_up) and is back, but there is no room for it: it must be killed
    /// (`kill` is set).
    Refused,
    /// The executor has ended.
    Ended(Fate),
}

/// An agent on which no executors are placed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Exclusion {
    /// The agent's id.
    pub agent_id: Arc<str>,
    /// When the exclusion ends; [`Timestamp::MAX`] is never.
    pub until: Timestamp,
}

impl Exclusion {
    /// Creates the exclusion of an agent, for tests of what reads them.
    #[must_use]
    pub fn new(agent_id: impl Into<Arc<str>>, until: Timestamp) -> Exclusion {
        Exclusion { agent_id: agent_id.into(), until }
    }
}

/// What the end of an executor does to the executor limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitRule {
    /// The limit stays as it is.
    #[default]
    Keep,
    /// An executor that [finished](crate::Fate::Finished) lowers the limit by one, so that it is not replaced.
    CountDown,
}

impl Outcome {
    pub(super) fn of(executor: Option<ExecutorId>, change: Change) -> Outcome {
        Outcome { executor, tag: None, change, freed: None, kill: false, excluded: None }
    }
}

/// Where outcomes go. Each has a way for the most frequent one, so that it is written where it stays: a processor waits
/// when what was just written in small pieces is moved in large ones.
pub(super) trait OutcomeSink {
    type Written;

    /// The executor has ended, and has freed this.
    fn ended(self, id: ExecutorId, fate: Fate, freed: ExecutorResources) -> Self::Written;

    fn other(self, outcome: Outcome) -> Self::Written;
}

/// The outcome is returned.
pub(super) struct ReturnedOutcome;

impl OutcomeSink for ReturnedOutcome {
    type Written = Outcome;

    #[inline]
    fn ended(self, id: ExecutorId, fate: Fate, freed: ExecutorResources) -> Outcome {
        Outcome { freed: Some(freed), ..Outcome::of(Some(id), Change::Ended(fate)) }
    }

    #[inline]
    fn other(self, outcome: Outcome) -> Outcome {
        outcome
    }
}

impl OutcomeSink for &mut Vec<Outcome> {
    type Written = ();

    #[inline]
    fn ended(self, id: ExecutorId, fate: Fate, freed: ExecutorResources) {
        self.push(Outcome { freed: Some(freed), ..Outcome::of(Some(id), Change::Ended(fate)) });
    }

    #[inline(never)]
    fn other(self, outcome: Outcome) {
        self.push(outcome);
    }
}
