//! What happened to a task, and how many tasks are in which state.

/// What happened to a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskEvent {
    pub(crate) id: String,
    pub(crate) what: TaskChange,
    /// How many attempts were started.
    pub(crate) attempts: u32,
    /// The host of the last attempt; empty if there was none.
    pub(crate) host: String,
    /// Why; empty if it succeeded.
    pub(crate) why: String,
    /// The file with its output, on its agent.
    pub(crate) output: Option<String>,
}

/// How a task changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskChange {
    Succeeded,
    /// It failed, and is started again.
    Retried,
    /// Its attempt was lost, and it is started again.
    Lost,
    /// Its agent has not started it, and it is tried again.
    NotStarted,
    Failed,
    /// A task that it waits for did not succeed.
    Skipped,
    /// The run was stopped, and ended it.
    Stopped,
}

impl TaskChange {
    /// The change's name.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            TaskChange::Succeeded => "succeeded",
            TaskChange::Retried => "retried",
            TaskChange::Lost => "lost",
            TaskChange::NotStarted => "not_started",
            TaskChange::Failed => "failed",
            TaskChange::Skipped => "skipped",
            TaskChange::Stopped => "stopped",
        }
    }
}

/// How many tasks are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskCounts {
    pub(crate) all: u64,
    /// Those that had succeeded in a former run, and aren't run again.
    pub(crate) before: u64,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    /// Those that are in flight.
    pub(crate) running: u64,
    /// Attempts that failed or were lost and were started again.
    pub(crate) retried: u64,
}

impl TaskCounts {
    /// How many have come to their end.
    pub(crate) fn ended(&self) -> u64 {
        self.before + self.succeeded + self.failed + self.skipped
    }

    /// How many have neither ended nor are in flight.
    pub(crate) fn waiting(&self) -> u64 {
        self.all - self.ended() - self.running
    }

    /// Whether all have succeeded.
    pub(crate) fn have_all_succeeded(&self) -> bool {
        self.before + self.succeeded == self.all
    }
}
