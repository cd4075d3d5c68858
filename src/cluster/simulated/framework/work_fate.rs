//! [`WorkFate`]: what becomes of the tasks of a simulated framework, for the counts of corner cases.

/// What becomes of tasks and of the hosts that they are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum WorkFate {
    /// A host has ended with tasks in it.
    HostLost,
    HostGivenUp,
    /// A host, or a task in one, is back after it was given up.
    HostedBack,
    /// A task waits again.
    PutBack,
    /// The end of a task waits for that of its host.
    Undecided,
}
