//! What is simulated: a cluster, a framework, and what befalls them. Data, so that it can be printed, shortened and
//! played again.

mod generate;
mod text;

use std::time::Duration;

use crate::config::ExclusionRule;
use crate::resources::{Mebibytes, MilliCpus};
use crate::time::Timestamp;

/// Everything that a simulation depends on: equal scenarios give equal runs, bit for bit.
///
/// Its text (`Display`, `FromStr`) is a line of settings and a line for each fault.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scenario {
    /// Where chance comes from.
    pub seed: u64,
    /// How many agents the cluster has.
    pub agents: u32,
    /// The cores of an agent. Some have up to a half more.
    pub agent_cores: u32,
    /// The memory of an agent. Some have up to a half more.
    pub agent_memory: Mebibytes,
    /// Agents are in so many zones, `zone:z0` and so on, in turns.
    pub zones: u32,
    /// So many of a hundred agents have half of their resources reserved for the framework's role.
    pub reserved_percent: u8,
    /// The executor limit at the start.
    pub executors: u32,
    /// The cores of an executor; zero takes what the offer has.
    pub executor_cores: MilliCpus,
    /// The memory of an executor, without overhead.
    pub executor_memory: Mebibytes,
    /// The memory that an executor takes in addition.
    pub memory_overhead: Mebibytes,
    /// The cores that an executor is told in addition to those that it takes.
    pub extra_cores: u32,
    /// The GPUs of an executor; zero takes what the offer has, if the cap leaves any.
    pub executor_gpus: u32,
    /// The cap of GPUs.
    pub gpu_cap: u32,
    /// Whether executors have a fixed port, so that there is one an agent.
    pub fixed_port: bool,
    /// The core cap at the start; zero is none.
    pub core_cap: MilliCpus,
    /// Whether ids are plain numbers.
    pub plain_ids: bool,
    /// So many failures exclude an agent …
    pub exclude_after: u8,
    /// … for so long.
    pub exclude_for: Duration,
    /// After so long out of sight an executor's cores are given to others.
    pub release_after: Duration,
    /// How many handlers answer offers.
    pub handlers: u32,
    /// So many offers may wait for them; what comes beyond is declined.
    pub queue: u32,
    /// So many offers a handler takes at a time.
    pub batch: u32,
    /// How long an executor lives on average until it ends by itself; zero is for ever. So many …
    pub lifetime: Duration,
    /// … of a hundred of these ends are failures.
    pub failures_percent: u8,
    /// When faults are over and the cluster is healed.
    pub healed_at: Timestamp,
    /// How long executors may take to end at the shutdown, which comes when the cluster has recovered, or with
    /// [`FaultKind::Shutdown`].
    pub shutdown_timeout: Duration,
    /// What befalls the cluster, in the order of time.
    pub faults: Vec<Fault>,
}

impl Scenario {
    /// When failing agents are excluded.
    pub(super) fn exclusion(&self) -> ExclusionRule {
        let (failures, expiry) = (self.exclude_after, Some(self.exclude_for));
        ExclusionRule { failures, expiry, ..ExclusionRule::default() }
    }

    /// After so long an executor that was given up is forgotten.
    pub(super) fn forget_after(&self) -> Duration {
        self.release_after * 2
    }

    /// The memory that an executor takes.
    pub(super) fn memory_taken(&self) -> Mebibytes {
        Mebibytes::new(self.executor_memory.get() + self.memory_overhead.get())
    }
}

/// Something that befalls the cluster or the framework. What the numbers mean depends on the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// When it begins.
    pub at: Timestamp,
    /// What it is.
    pub kind: FaultKind,
    /// Which agent it befalls, from 0.
    pub agent: u32,
    /// How many of a hundred it befalls.
    pub percent: u8,
    /// How long it lasts.
    pub lasts: Duration,
    /// How much of it: milliseconds, a number of times, or the new value.
    pub amount: u64,
}

/// How hard a cluster is hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Severity {
    /// Nothing goes wrong, except that executors end as the scenario says.
    None,
    /// What a large cluster sees in a bad week: agents die and come back, launches fail, the master fails over once.
    #[default]
    Mild,
    /// Everything at once.
    Harsh,
}

macro_rules! kinds {
    ($($(#[$docs:meta])* $kind:ident = $name:literal,)+) => {
        /// What can befall a cluster or its framework.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum FaultKind {
            $($(#[$docs])* $kind,)+
        }

        impl FaultKind {
            /// Every kind.
            pub const ALL: &'static [FaultKind] = &[$(FaultKind::$kind,)+];

            /// The name in a scenario's text.
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
    /// An agent (`agent`) and everything on it dies; it comes back after `lasts`, under a new id if `amount` is 1.
    AgentDies = "agent-dies",
    /// An agent (`agent`) can't be reached for `lasts`; its executors run on.
    AgentPartitioned = "agent-partitioned",
    /// The master dies; another is found after `lasts`, knows nothing, and learns from agents as they come back.
    MasterFailsOver = "master-fails-over",
    /// The framework's connection breaks; it subscribes again after `lasts`.
    ConnectionBreaks = "connection-breaks",
    /// For `lasts`, `percent` of the messages between framework and master are lost.
    MessagesLost = "messages-lost",
    /// For `lasts`, `percent` of the messages between framework and master arrive twice, offers and accepts excepted.
    MessagesDuplicated = "messages-duplicated",
    /// For `lasts`, `percent` of the messages between framework and master are overtaken: they take up to `amount`
    /// milliseconds longer.
    MessagesReordered = "messages-reordered",
    /// For `lasts`, all messages between framework and master take `amount` milliseconds longer.
    MessagesDelayed = "messages-delayed",
    /// For `lasts`, `percent` of offers are rescinded at just about the moment when they are answered.
    OffersRescinded = "offers-rescinded",
    /// `percent` of the running executors crash at once.
    ExecutorsCrash = "executors-crash",
    /// For `lasts`, `percent` of the executors that start on every third agent crash as they start.
    LaunchesFail = "launches-fail",
    /// For `lasts`, `percent` of the executors that are launched don't get beyond starting until the cluster is healed.
    LaunchesHang = "launches-hang",
    /// For `lasts`, `percent` of the executors that are launched outlive a kill, until the cluster is healed.
    KillsOutlived = "kills-outlived",
    /// The framework's clock jumps `amount` milliseconds ahead.
    ClockJumps = "clock-jumps",
    /// For `lasts`, `percent` of batches are answered by a clock that is up to `amount` milliseconds behind.
    ClockLags = "clock-lags",
    /// For `lasts`, `percent` of batches are answered slowly: they are committed, and then their calls leave one by
    /// one, the last after up to `amount` milliseconds.
    AnswersDelayed = "answers-delayed",
    /// The master forgets all refusals and offers everything, `amount` times in a row.
    OfferStorm = "offer-storm",
    /// The executor limit becomes `amount`.
    LimitChanges = "limit-changes",
    /// The core cap becomes `amount` thousandths of a core.
    CoreCapChanges = "core-cap-changes",
    /// A constraint allows the first `amount` zones from now on; 0 allows all.
    ConstraintChanges = "constraint-changes",
    /// Executors are of `amount` thousandths of a core from now on.
    ExecutorCoresChange = "executor-cores-change",
    /// The framework kills `percent` of its executors.
    ExecutorsKilled = "executors-killed",
    /// `amount` updates come about executors that nobody launched.
    StrayUpdates = "stray-updates",
    /// The framework shuts down, now.
    Shutdown = "shutdown",
}
