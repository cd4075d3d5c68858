//! Why a run ends, and the exit code for it.

use crate::exit::ExitStatus;
use crate::model::task::TaskCounts;

/// Why the run ends.
pub(crate) enum EndReason {
    /// This many executors were to finish, and have.
    AllFinished(u32),
    /// All tasks have come to their end.
    TasksEnded(TaskCounts),
    /// The results of tasks can't be written, for this reason.
    ResultsFailed(String),
    TooManyFailures(u64),
    NoAgentLeft,
    /// By the signal of this name.
    Signal(&'static str),
    /// By a control command.
    Command,
    /// The program that steers the run has ended.
    ParentEnded(ParentEnd),
    /// Standard output was closed before this many executors that should have finished had.
    OutputClosed {
        unfinished: u64,
    },
    /// The cluster can't be reached, or refuses this framework.
    Refused(String),
    /// The engine's control thread panicked.
    Broken(String),
}

/// What says that the program that steers a run has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ParentEnd {
    InputClosed,
    /// Standard input can't be read, for this reason.
    InputFailed(String),
    OutputClosed,
    /// This process has another parent.
    Gone,
}

impl EndReason {
    /// The exit code, given whether all executors ended in time.
    pub(crate) fn exit(&self, drained: bool) -> ExitStatus {
        match self {
            EndReason::TooManyFailures(_) | EndReason::NoAgentLeft => ExitStatus::ExecutorsFailed,
            EndReason::Refused(_) => ExitStatus::Cluster,
            EndReason::Broken(_) => ExitStatus::Internal,
            EndReason::ResultsFailed(_) => ExitStatus::OutputClosed,
            EndReason::OutputClosed { unfinished: 1.. } if drained => ExitStatus::OutputClosed,
            _ if drained => ExitStatus::Done,
            _ => ExitStatus::TimedOut,
        }
    }
}
