//! [`Scenario`]: a simulated cluster, its framework and the faults that hit them, as data that can be printed,
//! shortened and replayed.

mod generate;
mod text;

use std::time::Duration;

use crate::config::ExclusionRule;
use crate::resources::{Mebibytes, MilliCpus};
use crate::time::Timestamp;

/// Everything that a simulation depends on: equal scenarios give equal simulations, bit for bit.
///
/// Its text form (`Display`, `FromStr`) has a line of settings and a line per fault. Times in it are in seconds, with
/// up to three decimals. When parsed, settings that are left out have default values (one agent, one executor), and
/// empty lines and lines that begin with `#` are ignored.
///
/// ```text
/// seed=7 agents=5 agent-cores=8
/// 12.5s agent-dies agent=3 lasts=60s amount=1
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scenario {
    /// The seed of all random numbers.
    pub seed: u64,
    /// The number of agents.
    pub agents: u32,
    /// The cores of an agent. Some agents have up to half as many more.
    pub agent_cores: u32,
    /// The memory of an agent. Some agents have up to half as much more.
    pub agent_memory: Mebibytes,
    /// The number of zones. Agents are assigned to them in turn, with the attribute `zone:z0`, `zone:z1` and so on.
    pub zones: u32,
    /// The probability that an agent reserves half of its resources for the framework's role, in percent.
    pub reserved_percent: u8,
    /// The executor limit at the start.
    pub executors: u32,
    /// The cores of an executor; zero takes all cores of the offer.
    pub executor_cores: MilliCpus,
    /// The memory of an executor, without overhead.
    pub executor_memory: Mebibytes,
    /// The memory that an executor takes in addition to `executor_memory`.
    pub memory_overhead: Mebibytes,
    /// The cores that are passed to an executor in addition to those that it takes.
    pub extra_cores: u32,
    /// The GPUs of an executor; zero takes those of the offer, if the cap leaves any.
    pub executor_gpus: u32,
    /// The maximum number of GPUs that all executors take together.
    pub gpu_cap: u32,
    /// Whether executors have a fixed port, which limits them to one per agent.
    pub fixed_port: bool,
    /// The core cap at the start; zero means no cap.
    pub core_cap: MilliCpus,
    /// Whether executor ids are plain numbers.
    pub plain_ids: bool,
    /// Whether the cluster chooses the agents of executors, as Kubernetes does: see
    /// [`Binding::Late`](crate::Binding::Late).
    pub binds_late: bool,
    /// Whether the framework places tasks of several sizes, some of them in gangs, instead of equal executors. The
    /// cores, memory and GPUs of an executor are those of the smallest task. Such a framework has no fixed port, and
    /// the cluster doesn't choose agents.
    pub tasks: bool,
    /// Whether its tasks run in [hosts](crate::Hosts), at most one on each agent; then there are no other gangs than a
    /// host with its first tasks. Without [tasks](Scenario::tasks) it means nothing.
    pub hosts: bool,
    /// Whether it has its tasks in a [`WorkQueue`](crate::engine::WorkQueue); then none are in gangs, except hosts with
    /// their first tasks. Without [tasks](Scenario::tasks) it means nothing.
    pub work_queue: bool,
    /// The number of [queues](crate::ConfigBuilder::queue) that its tasks are in, besides the default one; 0 is none at
    /// all. Their bounds follow from the seed. Without [tasks](Scenario::tasks) it means nothing.
    pub queues: u32,
    /// The number of failures after which an agent is excluded.
    pub exclude_after: u8,
    /// How long an agent stays excluded.
    pub exclude_for: Duration,
    /// How long an executor may be unreachable before its cores are given to others.
    pub release_after: Duration,
    /// The number of handlers that answer offers.
    pub handlers: u32,
    /// The maximum number of offers that wait for a handler; offers beyond it are declined.
    pub queue: u32,
    /// The maximum number of offers that a handler answers at a time.
    pub batch: u32,
    /// The mean lifetime of an executor until it ends by itself; zero means that executors never end by themselves.
    pub lifetime: Duration,
    /// The probability that an executor fails when it ends by itself, in percent.
    pub failures_percent: u8,
    /// When all faults end and the cluster is repaired, in virtual time.
    pub healed_at: Timestamp,
    /// How long executors may take to end at shutdown. The framework shuts down once it has recovered, or at a fault of
    /// the kind [`FaultKind::Shutdown`].
    pub shutdown_timeout: Duration,
    /// The faults, in order of time.
    pub faults: Vec<Fault>,
}

impl Scenario {
    /// The same scenario on a cluster that chooses the agents of executors itself.
    #[must_use]
    pub fn with_late_binding(self) -> Scenario {
        Scenario { binds_late: true, ..self }
    }

    /// The same scenario with a framework that places [tasks](Scenario::tasks).
    #[must_use]
    pub fn with_tasks(self) -> Scenario {
        Scenario { tasks: true, binds_late: false, fixed_port: false, ..self }
    }

    /// The same scenario with a framework that places [tasks](Scenario::with_tasks) in [hosts](Scenario::hosts).
    #[must_use]
    pub fn with_hosts(self) -> Scenario {
        Scenario { hosts: true, ..self.with_tasks() }
    }

    /// The same scenario with a framework that has its [tasks](Scenario::with_tasks) in a
    /// [work queue](Scenario::work_queue).
    #[must_use]
    pub fn with_work_queue(self) -> Scenario {
        Scenario { work_queue: true, ..self.with_tasks() }
    }

    /// Whether tasks are in a work queue.
    pub(super) fn has_work_queue(&self) -> bool {
        self.tasks && self.work_queue
    }

    /// Whether tasks run in hosts.
    pub(super) fn has_hosts(&self) -> bool {
        self.tasks && self.hosts
    }

    /// Whether tasks are in queues.
    pub(super) fn has_queues(&self) -> bool {
        self.tasks && self.queues > 0
    }

    /// The rule that excludes agents on which executors fail.
    pub(super) fn exclusion(&self) -> ExclusionRule {
        let (failures, expiry) = (self.exclude_after, Some(self.exclude_for));
        ExclusionRule { failures, expiry, ..ExclusionRule::default() }
    }

    /// The time after which an executor that was given up is forgotten.
    pub(super) fn forget_after(&self) -> Duration {
        self.release_after * 2
    }

    /// The memory that an executor takes, overhead included.
    pub(super) fn memory_taken(&self) -> Mebibytes {
        Mebibytes::new(self.executor_memory.get() + self.memory_overhead.get())
    }
}

/// A fault of the cluster or the framework. The meaning of the numbers depends on its kind; see [`FaultKind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// When it begins, in virtual time.
    pub at: Timestamp,
    /// The kind of fault.
    pub kind: FaultKind,
    /// The agent that it hits, counted from 0, modulo the number of agents.
    pub agent: u32,
    /// The probability with which it hits each message, offer, batch or executor, in percent.
    pub percent: u8,
    /// How long it lasts.
    pub lasts: Duration,
    /// Its extent: milliseconds, a number of repetitions, or the new value of a setting.
    pub amount: u64,
}

/// How many faults a scenario has, and how severe they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Severity {
    /// No faults, except that executors end as configured in the scenario.
    None,
    /// Faults as in a bad week of a large cluster: agents die and come back, launches fail, the master fails over.
    #[default]
    Mild,
    /// Many faults of all kinds, at the same time.
    Harsh,
}

macro_rules! kinds {
    ($($(#[$docs:meta])* $kind:ident = $name:literal,)+) => {
        /// The kinds of fault.
        ///
        /// In their descriptions `agent`, `percent`, `lasts` and `amount` are the fields of [`Fault`]. A fault that
        /// lasts replaces an earlier one of the same kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum FaultKind {
            $($(#[$docs])* $kind,)+
        }

        impl FaultKind {
            /// All kinds.
            pub const ALL: &'static [FaultKind] = &[$(FaultKind::$kind,)+];

            /// The kind's name in the text of a scenario.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(FaultKind::$kind => $name,)+
                }
            }
        }
    };
}

kinds! {
    /// Agent `agent` and everything on it dies; it comes back after `lasts`, under a new id if `amount` is 1.
    AgentDies = "agent-dies",
    /// Agent `agent` can't be reached for `lasts`; its executors keep running.
    AgentPartitioned = "agent-partitioned",
    /// The master dies; another one leads after `lasts`, and learns about executors from agents as they register.
    MasterFailsOver = "master-fails-over",
    /// The framework's connection breaks; the framework subscribes again after `lasts`.
    ConnectionBreaks = "connection-breaks",
    /// For `lasts`, `percent` % of the messages between framework and master are lost.
    MessagesLost = "messages-lost",
    /// For `lasts`, `percent` % of the messages between framework and master arrive twice, except offers and accepts.
    MessagesDuplicated = "messages-duplicated",
    /// For `lasts`, `percent` % of the messages between framework and master take up to `amount` milliseconds longer,
    /// so that others overtake them.
    MessagesReordered = "messages-reordered",
    /// For `lasts`, all messages between framework and master take `amount` milliseconds longer, whatever `percent` is.
    MessagesDelayed = "messages-delayed",
    /// For `lasts`, `percent` % of offers are rescinded at about the time at which they are answered.
    OffersRescinded = "offers-rescinded",
    /// `percent` % of the running executors crash at the same time.
    ExecutorsCrash = "executors-crash",
    /// For `lasts`, `percent` % of the executors that start on every third agent crash at startup.
    LaunchesFail = "launches-fail",
    /// For `lasts`, `percent` % of the launched executors stay in startup until the cluster is repaired. If the cluster
    /// chooses the agents, they may stay without one.
    LaunchesHang = "launches-hang",
    /// For `lasts`, `percent` % of the launched executors survive kills until the cluster is repaired.
    KillsOutlived = "kills-outlived",
    /// The framework's clock jumps ahead by `amount` milliseconds.
    ClockJumps = "clock-jumps",
    /// For `lasts`, `percent` % of the batches are answered with a clock that is up to `amount` milliseconds behind.
    ClockLags = "clock-lags",
    /// For `lasts`, `percent` % of the batches are answered slowly: they are committed, and then their calls are made
    /// one by one, the last one up to `amount` milliseconds later.
    AnswersDelayed = "answers-delayed",
    /// The master forgets all refusals and offers all free resources, `amount` times in a row, at most 1000 times.
    OfferStorm = "offer-storm",
    /// The executor limit becomes `amount`.
    LimitChanges = "limit-changes",
    /// The core cap becomes `amount` thousandths of a core; 0 means no cap.
    CoreCapChanges = "core-cap-changes",
    /// The constraint allows only the first `amount` zones from now on; 0 allows all.
    ConstraintChanges = "constraint-changes",
    /// New executors have `amount` thousandths of a core from now on; 0 takes all cores of the offer.
    ExecutorCoresChange = "executor-cores-change",
    /// The queues of tasks have other bounds from now on, those with the number `amount`, and others of them have
    /// demand.
    QueuesChange = "queues-change",
    /// The framework kills `percent` % of its executors.
    ExecutorsKilled = "executors-killed",
    /// `amount` updates arrive about executors that were never launched, at most 1000.
    StrayUpdates = "stray-updates",
    /// The framework shuts down.
    Shutdown = "shutdown",
}
