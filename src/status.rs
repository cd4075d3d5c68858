//! What comes in later: an executor's state as the cluster reports it.

/// A report about one executor. Borrowed, like [`Offer`](crate::Offer).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StatusUpdate<'a> {
    /// The executor's id as the cluster knows it (Mesos: the task id).
    pub executor: &'a str,
    /// The state.
    pub state: TaskState,
    /// Why, where the cluster says.
    pub reason: UpdateReason,
}

impl<'a> StatusUpdate<'a> {
    /// `executor` is in `state`, for no particular reason.
    #[must_use]
    pub const fn new(executor: &'a str, state: TaskState) -> StatusUpdate<'a> {
        StatusUpdate { executor, state, reason: UpdateReason::Other }
    }

    /// The same update, with its reason.
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
    /// The agent has the task.
    Staging,
    /// The executor process has started.
    Starting,
    /// It runs.
    Running,
    /// It was asked to end and has not yet.
    Killing,
    /// It ended well.
    Finished,
    /// It ended badly.
    Failed,
    /// It ended because it was asked to.
    Killed,
    /// Its description was refused.
    Error,
    /// Gone, or perhaps only out of reach: see [`UpdateReason`].
    Lost,
    /// It was never started.
    Dropped,
    /// Its agent is out of reach; it may run on.
    Unreachable,
    /// It ended with its agent.
    Gone,
    /// An operator declared its agent gone; it may run on.
    GoneByOperator,
    /// The cluster doesn't know it; it may run on.
    Unknown,
}

/// Why a state was reported, as far as it changes what is right to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UpdateReason {
    /// Nothing that matters here.
    #[default]
    Other,
    /// The agent was disconnected from the master (`REASON_AGENT_DISCONNECTED`).
    AgentDisconnected,
    /// The master removed the agent (`REASON_AGENT_REMOVED` and its kin).
    AgentRemoved,
    /// The answer to a reconciliation (`REASON_RECONCILIATION`).
    Reconciliation,
    /// The accepted offer was no longer valid (`REASON_INVALID_OFFERS`).
    InvalidOffers,
    /// The agent is being drained (`REASON_AGENT_DRAINING`).
    AgentDraining,
    /// It was ended to make room for others (`REASON_CONTAINER_PREEMPTED`).
    Preempted,
}

/// What a reported state means for the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// On its way.
    Launching,
    /// Running.
    Running,
    /// Perhaps still running, out of sight.
    Unreachable,
    /// Ended, and how.
    Ended(Fate),
}

/// How an executor stands or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fate {
    /// Ended well.
    Finished,
    /// Ended badly.
    Failed,
    /// Ended because it was asked to.
    Killed,
    /// Ended with its agent, or vanished, or was never started.
    Lost,
    /// Out of sight when last heard of: it may run on.
    Unreachable,
    /// Still running, or still starting.
    Alive,
}

impl TaskState {
    /// What the state means. `TASK_LOST` is "not always terminal" (`mesos.proto`): by disconnection, removal or
    /// reconciliation it means no more than unreachable.
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

    /// Whether this end counts against the agent. Ends that were asked for, that came with the agent's own removal, or
    /// that another's decision caused, don't.
    ///
    /// `TASK_ERROR` counts although the description is at fault and not the agent: it is what slows the relaunching
    /// of an executor that can never start.
    pub(crate) fn blames_agent(self, reason: UpdateReason) -> bool {
        use UpdateReason::{AgentDraining, AgentRemoved, InvalidOffers, Preempted};
        let excused = matches!(reason, AgentDraining | AgentRemoved | InvalidOffers | Preempted);
        match self {
            TaskState::Failed | TaskState::Error => !excused,
            TaskState::Lost => !excused && self.meaning(reason) == Meaning::Ended(Fate::Lost),
            _ => false,
        }
    }

    /// The name in Mesos' API, such as `TASK_RUNNING`.
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

    /// Whether the state may bear the executor's cluster that it is alive: an unknown executor in such a state is a
    /// stray that ought to be killed.
    pub(crate) fn alive(self) -> bool {
        matches!(
            self,
            TaskState::Staging | TaskState::Starting | TaskState::Running | TaskState::Killing
        )
    }
}

impl Fate {
    /// The fate in one word, lower case.
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
