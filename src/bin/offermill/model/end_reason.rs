//! Why a run ends, in words and as an exit code.

use crate::exit::Exit;
use crate::text::format::{count, printable};

/// Why the run ends.
pub(crate) enum Ending {
    AllFinished(u32),
    TooManyFailures(u64),
    NoAgentLeft,
    Asked(&'static str),
    /// By a command of a client's.
    Commanded,
    /// With so many executors that should have finished and had not.
    OutputClosed {
        unfinished: u64,
    },
    /// The cluster can't be reached, or refuses this framework.
    Refused(String),
    /// The engine is broken: its control thread panicked.
    Broken(String),
}

impl Ending {
    /// In words.
    pub(crate) fn sentence(&self) -> String {
        match self {
            Ending::AllFinished(1) => "the executor has finished".to_owned(),
            Ending::AllFinished(goal) => format!("all {goal} executors have finished"),
            Ending::TooManyFailures(failures) => {
                format!("{} failed, no more are tolerated", count(*failures, "executor"))
            }
            Ending::NoAgentLeft => "no agent is left, executors failed on all".to_owned(),
            Ending::Commanded => "stopped by a command".to_owned(),
            Ending::Asked(signal) => format!("stopped by {signal}"),
            Ending::OutputClosed { .. } => "standard output was closed".to_owned(),
            Ending::Refused(why) => format!("the cluster can't be had: {}", printable(why)),
            Ending::Broken(why) => format!("internal error: {}", printable(why)),
        }
    }

    /// With which exit code, given whether all executors ended in time.
    pub(crate) fn exit(&self, drained: bool) -> Exit {
        match self {
            Ending::TooManyFailures(_) | Ending::NoAgentLeft => Exit::ExecutorsFailed,
            Ending::Refused(_) => Exit::Cluster,
            Ending::Broken(_) => Exit::Internal,
            Ending::OutputClosed { unfinished: 1.. } if drained => Exit::OutputClosed,
            _ if drained => Exit::Done,
            _ => Exit::TimedOut,
        }
    }
}
