//! Status updates: an executor's state as the cluster reports it, and its meaning for the kernel.

/// A cluster's report about one executor. Borrowed, like [`Offer`](crate::Offer).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatusUpdate<'a> {
    /// The executor's id as the cluster knows it (Mesos: the task id).
    pub executor: &'a str,
    /// The reported state.
    pub state: TaskState,
    /// The reason, if the cluster gives one.
    pub reason: UpdateReason,
}

impl<'a> StatusUpdate<'a> {
    /// Creates an update without a reason.
    #[must_use]
    pub const fn new(executor: &'a str, state: TaskState) -> StatusUpdate<'a> {
        StatusUpdate { executor, state, reason: UpdateReason::Other }
    }

    /// Sets the reason.
    #[must_use]
    pub const fn because(mut self, reason: UpdateReason) -> StatusUpdate<'a> {
        self.reason = reason;
        self
    }
}

/// The task states of Mesos' v1 scheduler API, all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TaskState {
    /// The agent has received the task.
    Staging,
    /// The executor process has started.
    Starting,
    /// It is running.
    Running,
    /// It was asked to terminate and hasn't yet.
    Killing,
    /// It terminated successfully.
    Finished,
    /// It failed.
    Failed,
    /// It was killed on request.
    Killed,
    /// Its description was rejected.
    Error,
    /// Terminated, or perhaps only unreachable: see [`UpdateReason`].
    Lost,
    /// It was never started.
    Dropped,
    /// Its agent is unreachable; it may still run.
    Unreachable,
    /// It terminated with its agent.
    Gone,
    /// An operator declared its agent gone; it may still run.
    GoneByOperator,
    /// The cluster doesn't know it; it may still run.
    Unknown,
}

/// Why a state was reported, if that affects how the kernel reacts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UpdateReason {
    /// Any other reason, or none.
    #[default]
    Other,
    /// The agent was disconnected from the master (`REASON_AGENT_DISCONNECTED`).
    AgentDisconnected,
    /// The master removed the agent (`REASON_AGENT_REMOVED` and related reasons).
    AgentRemoved,
    /// The answer to a reconciliation (`REASON_RECONCILIATION`).
    Reconciliation,
    /// The accepted offer was no longer valid (`REASON_INVALID_OFFERS`).
    InvalidOffers,
    /// The agent is being drained (`REASON_AGENT_DRAINING`).
    AgentDraining,
    /// It was preempted by other tasks (`REASON_CONTAINER_PREEMPTED`).
    Preempted,
}

/// What a reported state means for the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Launching.
    Launching,
    /// Running.
    Running,
    /// Unreachable, perhaps still running.
    Unreachable,
    /// Terminated, with its fate.
    Ended(Fate),
}

/// How an executor terminated, or that it hasn't.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fate {
    /// Terminated successfully.
    Finished,
    /// Failed.
    Failed,
    /// Killed on request.
    Killed,
    /// Terminated with its agent, vanished, or never started.
    Lost,
    /// Unreachable according to the last update; it may still run.
    Unreachable,
    /// Still running or starting.
    Alive,
}

impl TaskState {
    /// Returns what the state means. `TASK_LOST` is "not always terminal" (`mesos.proto`): after a disconnection, a
    /// removal or a reconciliation it only means unreachable.
    pub(crate) fn meaning(self, reason: UpdateReason) -> Meaning {
        use UpdateReason::{AgentDisconnected, AgentRemoved, Reconciliation};
        match self {
            TaskState::Staging | TaskState::Starting => Meaning::Launching,
            TaskState::Running | TaskState::Killing => Meaning::Running,
            TaskState::Unreachable | TaskState::Unknown | TaskState::GoneByOperator => {
                Meaning::Unreachable
            }
            TaskState::Lost
                if matches!(reason, AgentDisconnected | AgentRemoved | Reconciliation) =>
            {
                Meaning::Unreachable
            }
            TaskState::Finished => Meaning::Ended(Fate::Finished),
            TaskState::Failed | TaskState::Error => Meaning::Ended(Fate::Failed),
            TaskState::Killed => Meaning::Ended(Fate::Killed),
            TaskState::Lost | TaskState::Dropped | TaskState::Gone => Meaning::Ended(Fate::Lost),
        }
    }

    /// Returns whether this termination counts as a failure on the agent. Terminations that were requested, came with
    /// the agent's removal, or were caused by another party's decision don't.
    ///
    /// `TASK_ERROR` says that the description was rejected, which is no agent's fault; it counts only if
    /// `rejections_count`.
    pub(crate) fn blames_agent(self, reason: UpdateReason, rejections_count: bool) -> bool {
        use UpdateReason::{AgentDraining, AgentRemoved, InvalidOffers, Preempted};
        let excused = matches!(reason, AgentDraining | AgentRemoved | InvalidOffers | Preempted);
        match self {
            TaskState::Failed => !excused,
            TaskState::Error => !excused && rejections_count,
            TaskState::Lost => !excused && self.meaning(reason) == Meaning::Ended(Fate::Lost),
            _ => false,
        }
    }

    /// Returns the name in Mesos' API, such as `TASK_RUNNING`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            TaskState::Staging => "TASK_STAGING",
            TaskState::Starting => "TASK_STARTING",
            TaskState::Running => "TASK_RUNNING",
            TaskState::Killing => "TASK_KILLING",
            TaskState::Finished => "TASK_FINISHED",
            TaskState::Failed => "TASK_FAILED",
            TaskState::Killed => "TASK_KILLED",
            TaskState::Error => "TASK_ERROR",
            TaskState::Lost => "TASK_LOST",
            TaskState::Dropped => "TASK_DROPPED",
            TaskState::Unreachable => "TASK_UNREACHABLE",
            TaskState::Gone => "TASK_GONE",
            TaskState::GoneByOperator => "TASK_GONE_BY_OPERATOR",
            TaskState::Unknown => "TASK_UNKNOWN",
        }
    }

    /// Returns whether the state says that the executor is alive. An executor in such a state that the kernel doesn't
    /// know must be killed.
    pub(crate) fn alive(self) -> bool {
        matches!(
            self,
            TaskState::Staging | TaskState::Starting | TaskState::Running | TaskState::Killing
        )
    }
}

impl Fate {
    /// Returns the fate as one word in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Fate::Finished => "finished",
            Fate::Failed => "failed",
            Fate::Killed => "killed",
            Fate::Lost => "lost",
            Fate::Unreachable => "unreachable",
            Fate::Alive => "alive",
        }
    }
}

impl std::fmt::Display for Fate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
