//! Status updates: an executor's state as the cluster reports it, and its meaning for the kernel.

/// A cluster's report about one executor. Borrowed, like [`Offer`](crate::Offer).
///
/// [`TaskState`] says what each state and reason does.
///
/// ```
/// # use offermill::{Config, Decisions, IdScheme, Kernel, Offer, Resource, Timestamp};
/// use offermill::{Change, StatusUpdate, TaskState, UpdateReason};
///
/// # let kernel = Kernel::new(Config::builder().executor_limit(Some(1)).build()?, IdScheme::unique("etl", 1)?);
/// # let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 4096.0)];
/// # let offers = [Offer::new("O1", "S1", "host-1", &resources, &[])];
/// # let now = Timestamp::ORIGIN;
/// # kernel.handler().resource_offers(&offers, now, &mut Decisions::new());
/// // An executor was placed, whose id is etl-1-0.0. The agent's connection breaks: it may still run.
/// let lost = StatusUpdate::new("etl-1-0.0", TaskState::Lost).because(UpdateReason::AgentDisconnected);
/// assert_eq!(kernel.status_update(&lost, now).change, Change::Unreachable);
/// assert_eq!(kernel.totals().executors, 1);
///
/// // The agent is back, and so is the executor.
/// let running = StatusUpdate::new("etl-1-0.0", TaskState::Running);
/// assert_eq!(kernel.status_update(&running, now).change, Change::Returned);
///
/// // It fails. Its resources are free; the same report again does nothing.
/// let failed = StatusUpdate::new("etl-1-0.0", TaskState::Failed);
/// assert!(kernel.status_update(&failed, now).freed.is_some());
/// assert_eq!(kernel.status_update(&failed, now).change, Change::Nothing);
///
/// // An executor that runs although the kernel doesn't know it must be killed.
/// let stray = StatusUpdate::new("etl-0-7.3", TaskState::Running);
/// assert!(kernel.status_update(&stray, now).kill);
/// # Ok::<(), offermill::Error>(())
/// ```
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
///
/// # What an update does
/// To an executor that runs, by state and [reason](UpdateReason):
///
/// | state | reason | change | freed | agent blamed | if it is unknown |
/// |---|---|---|---|---|---|
/// | `Staging`, `Starting`, `Running`, `Killing` | any | `Nothing` | no | no | kill it |
/// | `Finished` | any | `Ended(Finished)` | at once | no | nothing |
/// | `Failed` | `Other`, `AgentDisconnected`, `Reconciliation` | `Ended(Failed)` | at once | yes | nothing |
/// | `Failed`, `Error` | `AgentRemoved`, `InvalidOffers`, `AgentDraining`, `Preempted` | `Ended(Failed)` | at once | no | nothing |
/// | `Killed` | any | `Ended(Killed)` | at once | no | nothing |
/// | `Error` | `Other`, `AgentDisconnected`, `Reconciliation` | `Ended(Failed)` | at once | no \* | nothing |
/// | `Lost` | `Other` | `Ended(Lost)` | at once | yes | nothing |
/// | `Lost` | `AgentDisconnected`, `AgentRemoved`, `Reconciliation` | `Unreachable` | when given up | no | nothing |
/// | `Lost` | `InvalidOffers`, `AgentDraining`, `Preempted` | `Ended(Lost)` | at once | no | nothing |
/// | `Dropped`, `Gone` | any | `Ended(Lost)` | at once | no | nothing |
/// | `Unreachable`, `GoneByOperator`, `Unknown` | any | `Unreachable` | when given up | no | nothing |
///
/// * **Change** is [`Outcome::change`](crate::Outcome::change).
/// * **Freed**: its resources don't count any more, and another executor may take its place. An executor that is
///   unreachable holds them until it is [given up](crate::Ticked::given_up), by default after 5 min. If it returns
///   before, nothing was freed. If it returns later, it gets them back ([`Change::Readmitted`](crate::Change)), or is
///   to be killed where the caps have no room ([`Change::Refused`](crate::Change)).
/// * **Agent blamed**: it counts as a failure towards the agent's [exclusion](crate::config::ExclusionRule), once. It
///   never does if the executor was asked to end ([`Kernel::kill_executors`](crate::Kernel::kill_executors)). \* Only
///   with [`Compatibility::rejections_count`](crate::config::Compatibility::rejections_count), as with Spark.
/// * **If it is unknown**: whether an executor is to be killed ([`Outcome::kill`](crate::Outcome::kill)) that this
///   kernel neither placed nor adopted, or that has ended.
///
/// An end is final: no later update changes it. Of an executor that is launching, `Staging` and `Starting` change
/// nothing either, while `Running` and `Killing` are [`Change::Running`](crate::Change).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
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
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum UpdateReason {
    /// Any other reason, or none.
    #[default]
    Other,
    /// The agent was disconnected from the master (`REASON_AGENT_DISCONNECTED`).
    AgentDisconnected,
    /// The master removed the agent (`REASON_AGENT_REMOVED` and related reasons).
    AgentRemoved,
    /// The answer to a reconciliation (`REASON_RECONCILIATION`), or a failure that the master tells when the agent is
    /// back (`REASON_AGENT_REREGISTERED`): the last state that is known, while other updates may be on their way.
    Reconciliation,
    /// The accepted offer was no longer valid (`REASON_INVALID_OFFERS`).
    InvalidOffers,
    /// The agent is being drained (`REASON_AGENT_DRAINING`).
    AgentDraining,
    /// It was preempted by other tasks (`REASON_CONTAINER_PREEMPTED`).
    Preempted,
}

/// What a cluster reports about an executor's process, for observers. The kernel doesn't use it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ProcessReport {
    /// The process id on the agent's machine.
    pub pid: Option<u32>,
    /// The absolute path of the folder on the agent's machine that holds its output.
    pub sandbox: Option<String>,
    /// How it ended.
    pub exit: Option<ProcessExit>,
    /// It was not started, because its agent had no process, open file, memory or disk space for it at the moment.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "std::ops::Not::not"))]
    pub is_agent_exhausted: bool,
}

impl ProcessReport {
    /// Sets the process id.
    #[must_use]
    pub fn with_pid(self, pid: u32) -> ProcessReport {
        ProcessReport { pid: Some(pid), ..self }
    }

    /// Sets the folder that holds its output.
    #[must_use]
    pub fn with_sandbox(self, sandbox: impl Into<String>) -> ProcessReport {
        ProcessReport { sandbox: Some(sandbox.into()), ..self }
    }

    /// Sets that it was not started, because its agent had nothing left for it.
    #[must_use]
    pub fn with_agent_exhausted(self) -> ProcessReport {
        ProcessReport { is_agent_exhausted: true, ..self }
    }

    /// Sets how it ended.
    #[must_use]
    pub fn with_exit(self, exit: ProcessExit) -> ProcessReport {
        ProcessReport { exit: Some(exit), ..self }
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum ProcessExit {
    /// It exited with this code.
    Code(i32),
    /// The signal with this number ended it.
    Signal(i32),
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
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
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
