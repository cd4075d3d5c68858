//! What happened to a task, how many tasks are in which state, and which fit on no agent.

use crate::text::format::count;

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
    /// It fits on no agent that has made an offer, and waits for one.
    Waiting,
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
            TaskChange::Waiting => "waiting",
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

/// Tasks of one size that wait because they fit on no agent that has made an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TooLargeTasks {
    /// The id of the first.
    pub(crate) id: String,
    /// How many there are.
    pub(crate) tasks: u64,
    pub(crate) why: String,
}

impl TooLargeTasks {
    /// Why they wait, as in `it fits on no agent that makes offers: …; 2 more tasks of its size wait as well`.
    pub(crate) fn reason(&self) -> String {
        match self.tasks.saturating_sub(1) {
            0 => self.why.clone(),
            more => {
                let verb = if more == 1 { "waits" } else { "wait" };
                format!("{}; {} of its size {verb} as well", self.why, count(more, "more task"))
            }
        }
    }

    /// As in `task wide: it fits on no agent that makes offers: …`.
    pub(crate) fn sentence(&self) -> String {
        format!("task {}: {}", self.id, self.reason())
    }
}
