//! What executors are to a run: executors of its program, or tasks and the hosts that tasks run in.

/// What an executor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExecutorKind {
    /// One of those that all run the program of the run.
    Executor,
    /// An attempt of a task.
    Task,
    /// A host, in which tasks run.
    Host,
}

/// How many executors there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KindCounts {
    pub(crate) executors: u64,
    pub(crate) tasks: u64,
    pub(crate) hosts: u64,
}

impl KindCounts {
    /// Counts these.
    pub(crate) fn of(kinds: impl Iterator<Item = ExecutorKind>) -> KindCounts {
        let mut counts = KindCounts::default();
        for kind in kinds {
            match kind {
                ExecutorKind::Executor => counts.executors += 1,
                ExecutorKind::Task => counts.tasks += 1,
                ExecutorKind::Host => counts.hosts += 1,
            }
        }
        counts
    }

    /// How many there are together.
    pub(crate) fn all(self) -> u64 {
        self.executors + self.tasks + self.hosts
    }
}
