//! The kernel's configuration: [`Config`], its builder, and parsers for settings as text.
//!
//! Errors name a setting as the command line does, if it has an option for it.

mod builder;
mod compatibility;
pub mod properties;
mod queues;
pub mod text;

pub use builder::ConfigBuilder;
pub use compatibility::Compatibility;
pub use queues::{Queue, QueueId, Queues};

use std::sync::Arc;
use std::time::Duration;

use crate::constraint::Constraint;
use crate::resources::{Gpus, Mebibytes, MilliCpus};

/// A validated configuration of a [`Kernel`](crate::Kernel).
///
/// Create one with [`Config::builder`]. [`Kernel::reconfigure`](crate::Kernel::reconfigure) replaces the configuration
/// of a running kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub(crate) core_cap: Option<MilliCpus>,
    pub(crate) executor_cores: ExecutorCores,
    pub(crate) executor_memory: Mebibytes,
    pub(crate) memory_overhead: Mebibytes,
    pub(crate) extra_cores: MilliCpus,
    pub(crate) gpu_cap: Gpus,
    pub(crate) executor_gpus: ExecutorGpus,
    pub(crate) executor_limit: Option<u32>,
    pub(crate) fixed_port: Option<u16>,
    pub(crate) revocable: bool,
    pub(crate) constraint: Constraint,
    pub(crate) refuse: RefuseDurations,
    pub(crate) exclusion: Option<ExclusionRule>,
    pub(crate) placement: Placement,
    pub(crate) compatibility: Compatibility,
    pub(crate) locality_wait: Option<Duration>,
    pub(crate) unreachable: UnreachableRule,
    pub(crate) maintenance_lead: Duration,
    pub(crate) launch_timeout: Duration,
    pub(crate) revive_interval: Duration,
    pub(crate) capacity_refresh: Duration,
    pub(crate) queues: Arc<Queues>,
}

impl Config {
    /// Returns a builder with every setting at its default.
    #[must_use]
    pub fn builder() -> ConfigBuilder {
        ConfigBuilder::default()
    }

    /// Returns the memory that an executor takes from an offer, including the overhead.
    #[must_use]
    pub fn memory_taken(&self) -> Mebibytes {
        Mebibytes::new(self.executor_memory.get() + self.memory_overhead.get())
    }

    /// Returns the memory that is advertised to the executor, which excludes the overhead.
    #[must_use]
    pub fn executor_memory(&self) -> Mebibytes {
        self.executor_memory
    }

    /// Returns the executor limit; `None` means unlimited. In [`Kernel::config`](crate::Kernel::config) it is the one
    /// in force.
    #[must_use]
    pub fn executor_limit(&self) -> Option<u32> {
        self.executor_limit
    }

    /// Returns the cores advertised to an executor beyond those that it takes; see [`ConfigBuilder::extra_cores`].
    #[must_use]
    pub fn extra_cores(&self) -> MilliCpus {
        self.extra_cores
    }

    /// Returns how long declined offers are refused for, by reason.
    #[must_use]
    pub fn refuse_durations(&self) -> RefuseDurations {
        self.refuse
    }

    /// Returns how many cores an executor takes.
    #[must_use]
    pub fn executor_cores(&self) -> ExecutorCores {
        self.executor_cores
    }

    /// Returns whether revocable resources may be used; see [`ConfigBuilder::revocable`].
    #[must_use]
    pub fn revocable(&self) -> bool {
        self.revocable
    }

    /// Returns the maximum number of cores of all executors together; `None` means no maximum.
    #[must_use]
    pub fn core_cap(&self) -> Option<MilliCpus> {
        self.core_cap
    }

    /// Returns the memory overhead of an executor, also if it was not set but derived from the memory.
    #[must_use]
    pub fn memory_overhead(&self) -> Mebibytes {
        self.memory_overhead
    }

    /// Returns the maximum number of GPUs of all executors together.
    #[must_use]
    pub fn gpu_cap(&self) -> Gpus {
        self.gpu_cap
    }

    /// Returns how many GPUs an executor takes.
    #[must_use]
    pub fn executor_gpus(&self) -> ExecutorGpus {
        self.executor_gpus
    }

    /// Returns the port that each executor takes, if there is one.
    #[must_use]
    pub fn fixed_port(&self) -> Option<u16> {
        self.fixed_port
    }

    /// Returns the constraint that agents must meet.
    #[must_use]
    pub fn constraint(&self) -> &Constraint {
        &self.constraint
    }

    /// Returns when agents are excluded because executors failed there; `None` means never.
    #[must_use]
    pub fn exclusion(&self) -> Option<ExclusionRule> {
        self.exclusion
    }

    /// Returns the order in which agents are filled.
    #[must_use]
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// Returns how offers are evaluated where schedulers differ.
    #[must_use]
    pub fn compatibility(&self) -> Compatibility {
        self.compatibility
    }

    /// Returns how long wanted hosts are waited for; see [`ConfigBuilder::locality_wait`].
    #[must_use]
    pub fn locality_wait(&self) -> Option<Duration> {
        self.locality_wait
    }

    /// Returns what happens to unreachable executors.
    #[must_use]
    pub fn unreachable(&self) -> UnreachableRule {
        self.unreachable
    }

    /// Returns how long before its maintenance an agent gets no executors.
    #[must_use]
    pub fn maintenance_lead(&self) -> Duration {
        self.maintenance_lead
    }

    /// Returns the time after which an unconfirmed launch is reconciled.
    #[must_use]
    pub fn launch_timeout(&self) -> Duration {
        self.launch_timeout
    }

    /// Returns how old the picture of the cluster's capacity may be before it is rebuilt.
    #[must_use]
    pub fn capacity_refresh(&self) -> Duration {
        self.capacity_refresh
    }

    /// Returns the minimum time between two revives.
    #[must_use]
    pub fn revive_interval(&self) -> Duration {
        self.revive_interval
    }

    /// Returns the most memory that the executors of all queues hold together.
    #[must_use]
    pub fn queued_memory(&self) -> Option<Mebibytes> {
        self.queues.memory
    }

    /// Returns the queues.
    #[must_use]
    pub fn queues(&self) -> &Queues {
        &self.queues
    }

    /// Returns the minimum number of cores that an executor takes.
    pub(crate) fn cores_at_least(&self) -> MilliCpus {
        match self.executor_cores {
            ExecutorCores::Fixed(cores) => cores,
            ExecutorCores::WholeOffer => MilliCpus::from_cores(1),
        }
    }

    /// Returns the minimum number of GPUs that an executor takes.
    pub(crate) fn gpus_at_least(&self) -> Gpus {
        match self.executor_gpus {
            ExecutorGpus::Exactly(gpus) => gpus,
            ExecutorGpus::WhatThereIs => Gpus::ZERO,
        }
    }
}

/// How many cores an executor takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum ExecutorCores {
    /// A fixed number. An agent can run several such executors.
    Fixed(MilliCpus),
    /// All whole cores of the agent's offers, within the core cap, as Spark does when `spark.executor.cores` is not
    /// set. With [revocable resources](ConfigBuilder::revocable), either the revocable or the other cores are used,
    /// whichever are more.
    WholeOffer,
}

/// How many GPUs an executor takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum ExecutorGpus {
    /// All whole GPUs of the offer, within the GPU cap, as Spark does. There may be none; an offer is never declined
    /// for that. The first executor placed on an offer takes them.
    #[default]
    WhatThereIs,
    /// Exactly this many; an offer with fewer is declined.
    Exactly(Gpus),
}

/// How long declined offers are refused for, by reason. Mesos limits a refusal to 365 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RefuseDurations {
    /// The agent doesn't meet the constraint, or is about to be taken down for maintenance; or it is excluded, but then
    /// no longer than its exclusion lasts. Default 120 s (`spark.mesos.rejectOfferDurationForUnmetConstraints`).
    pub unmet_constraint: Duration,
    /// A cap or the executor limit has been reached. Default 120 s
    /// (`spark.mesos.rejectOfferDurationForReachedMaxCores`).
    pub reached_cap: Duration,
    /// Any other reason: the offer is too small, its agent was just reported lost or other hosts are wanted (both no
    /// longer than that lasts), it is malformed. Default 5 s, as in Mesos.
    pub other: Duration,
    /// The kernel is stopping. Default 120 s.
    pub stopping: Duration,
}

impl RefuseDurations {
    /// Returns the longest of the four durations.
    pub(crate) fn longest(&self) -> Duration {
        let RefuseDurations { unmet_constraint, reached_cap, other, stopping } = *self;
        unmet_constraint.max(reached_cap).max(other).max(stopping)
    }
}

impl Default for RefuseDurations {
    fn default() -> RefuseDurations {
        let long = Duration::from_secs(120);
        let other = Duration::from_secs(5);
        RefuseDurations { unmet_constraint: long, reached_cap: long, other, stopping: long }
    }
}

/// When an agent is excluded because executors failed on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ExclusionRule {
    /// The number of failures that exclude an agent, 1 to 255.
    pub failures: u8,
    /// The time within which the failures must occur.
    pub window: Duration,
    /// How long the agent is excluded for; `None` means forever.
    pub expiry: Option<Duration>,
}

impl Default for ExclusionRule {
    /// Two failures within an hour exclude the agent for an hour.
    fn default() -> ExclusionRule {
        let hour = Duration::from_secs(3600);
        ExclusionRule { failures: 2, window: hour, expiry: Some(hour) }
    }
}

/// The order in which agents are filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum Placement {
    /// Repeated passes over the offers in their order, one executor per agent and pass, until a pass places none. An
    /// agent on which an executor failed comes last for 5 min or until another executor is placed there, so that a
    /// replacement starts elsewhere if possible.
    #[default]
    RoundRobin,
    /// Fill one agent before the next; agents on which an executor failed come last.
    Consolidate,
}

/// What happens to an executor that is unreachable, unknown to the cluster, or lost by disconnection. It may still run
/// and may return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct UnreachableRule {
    /// The time after which its cores no longer count against the cap, so that it can be replaced. `None` keeps them
    /// counted until the executor is known to have ended. If it returns later, it is readmitted if the caps allow it,
    /// otherwise killed. Default 5 min.
    pub release_after: Option<Duration>,
    /// The further time after which it is forgotten, as lost. If it returns even later, it is killed. Default 10 min.
    pub forget_after: Duration,
}

impl Default for UnreachableRule {
    fn default() -> UnreachableRule {
        UnreachableRule {
            release_after: Some(Duration::from_secs(300)),
            forget_after: Duration::from_secs(600),
        }
    }
}
