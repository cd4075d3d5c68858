//! What has become of executors that had not ended when the run did.

use crate::model::executor::ExecutorState;

/// What has become of executors that had not ended within the shutdown timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnendedFate {
    /// The cluster is a part of this program, and has killed them.
    Killed,
    /// The master has removed the framework, and ends them: those on agents that are out of its reach when their agents
    /// return.
    TornDown,
    /// Their pods were deleted; those on nodes that are silent end when their nodes return.
    Deleted,
    /// The cluster could not be told to end them.
    Left,
}

impl UnendedFate {
    /// The fate of an executor whose last known state is `state`, in a few words.
    pub(crate) fn of(self, state: ExecutorState) -> &'static str {
        match self {
            UnendedFate::Killed => "killed by force",
            UnendedFate::TornDown | UnendedFate::Deleted if is_unreachable(state) => "unreachable",
            UnendedFate::Deleted => "deleted",
            UnendedFate::TornDown => "torn down",
            UnendedFate::Left => "left behind",
        }
    }
}

/// Whether the executor's agent can't be told to end it.
pub(crate) fn is_unreachable(state: ExecutorState) -> bool {
    matches!(state, ExecutorState::Unreachable | ExecutorState::GivenUp)
}
