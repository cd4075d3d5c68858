//! The states that Spark gives to the tasks of Mesos.

use offermill::TaskState;

/// Spark's task states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SparkState {
    Launching,
    Running,
    Finished,
    Failed,
    Killed,
    Lost,
}

impl SparkState {
    pub(super) fn of(state: TaskState) -> SparkState {
        match state {
            TaskState::Staging | TaskState::Starting => SparkState::Launching,
            TaskState::Running | TaskState::Killing => SparkState::Running,
            TaskState::Finished => SparkState::Finished,
            TaskState::Failed | TaskState::Gone | TaskState::GoneByOperator => SparkState::Failed,
            TaskState::Killed => SparkState::Killed,
            _ => SparkState::Lost,
        }
    }

    /// Returns the equivalent state for the kernel. A task that Spark considers lost has failed.
    pub(super) fn for_kernel(self) -> TaskState {
        match self {
            SparkState::Launching => TaskState::Staging,
            SparkState::Running => TaskState::Running,
            SparkState::Finished => TaskState::Finished,
            SparkState::Failed | SparkState::Lost => TaskState::Failed,
            SparkState::Killed => TaskState::Killed,
        }
    }

    pub(super) fn is_failure(self) -> bool {
        matches!(self, SparkState::Failed | SparkState::Lost)
    }

    /// Whether a task in this state has ended.
    pub(super) fn is_end(self) -> bool {
        !matches!(self, SparkState::Launching | SparkState::Running)
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            SparkState::Launching => "LAUNCHING",
            SparkState::Running => "RUNNING",
            SparkState::Finished => "FINISHED",
            SparkState::Failed => "FAILED",
            SparkState::Killed => "KILLED",
            SparkState::Lost => "LOST",
        }
    }
}
