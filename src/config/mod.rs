//! What a kernel is told to do: validated once, then read without doubt.
//!
//! Names of settings in errors are the ones that people write on the command line where there is one.

mod builder;
mod conduct;
pub mod properties;
pub mod text;

pub use builder::ConfigBuilder;
pub use conduct::Conduct;

use std::time::Duration;

use crate::constraint::Constraint;
use crate::resources::{Gpus, Mebibytes, MilliCpus};

/// A kernel's validated settings.
///
/// Made by [`Config::builder`]; a running kernel takes a new one in
/// [`Kernel::reconfigure`](crate::Kernel::reconfigure).
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
    pub(crate) conduct: Conduct,
    pub(crate) locality_wait: Option<Duration>,
    pub(crate) unreachable: UnreachableRule,
    pub(crate) maintenance_lead: Duration,
    pub(crate) launch_timeout: Duration,
    pub(crate) revive_interval: Duration,
}

impl Config {
    /// Starts with every setting at its default.
    #[must_use]
    pub fn builder() -> ConfigBuilder {
        ConfigBuilder::default()
    }

    /// The memory that an executor takes from an offer: its own and the overhead.
    #[must_use]
    pub fn memory_taken(&self) -> Mebibytes {
        Mebibytes::new(self.executor_memory.get() + self.memory_overhead.get())
    }

    /// The executor's own memory, without the overhead: what it is told.
    #[must_use]
    pub fn executor_memory(&self) -> Mebibytes {
        self.executor_memory
    }

    /// The limit of executors at the start; `None` is no limit.
    #[must_use]
    pub fn executor_limit(&self) -> Option<u32> {
        self.executor_limit
    }

    /// Cores told to an executor in addition to those that it takes; see [`ConfigBuilder::extra_cores`].
    #[must_use]
    pub fn extra_cores(&self) -> MilliCpus {
        self.extra_cores
    }

    /// How long an offer is refused, by why it is.
    #[must_use]
    pub fn refuse_durations(&self) -> RefuseDurations {
        self.refuse
    }

    /// How many cores an executor takes.
    #[must_use]
    pub fn executor_cores(&self) -> ExecutorCores {
        self.executor_cores
    }

    /// Whether revocable resources may be used, too; see [`ConfigBuilder::revocable`].
    #[must_use]
    pub fn revocable(&self) -> bool {
        self.revocable
    }

    /// The fewest cores that an executor can take.
    pub(crate) fn cores_at_least(&self) -> MilliCpus {
        match self.executor_cores {
            ExecutorCores::Fixed(cores) => cores,
            ExecutorCores::WholeOffer => MilliCpus::from_cores(1),
        }
    }
}

/// How many cores an executor takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutorCores {
    /// So many. An agent can hold several such executors.
    Fixed(MilliCpus),
    /// All whole cores of the agent's offer that the core cap leaves, as Spark does when `spark.executor.cores` is
    /// not set. With [revocable resources](ConfigBuilder::revocable): of those and the others whichever has more.
    WholeOffer,
}

/// How many GPUs an executor takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExecutorGpus {
    /// All whole GPUs of the offer that the GPU cap leaves, perhaps none: never a reason to decline. The first
    /// executor on an offer takes them. As Spark does.
    #[default]
    WhatThereIs,
    /// Exactly so many, or there is no executor.
    Exactly(Gpus),
}

/// How long declined offers are refused for, by why. Mesos knows no longer refusal than 365 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefuseDurations {
    /// The agent doesn't meet the constraint. Default 120 s (`spark.mesos.rejectOfferDurationForUnmetConstraints`).
    pub unmet_constraint: Duration,
    /// A cap or the executor limit is reached. Default 120 s
    /// (`spark.mesos.rejectOfferDurationForReachedMaxCores`).
    pub reached_cap: Duration,
    /// Anything else: too small, excluded for a moment, malformed. Default 5 s, as Mesos' own.
    pub other: Duration,
    /// The kernel is stopping. Default 120 s.
    pub stopping: Duration,
}

impl RefuseDurations {
    /// The longest of them.
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

/// When an agent on which executors fail gets no more of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExclusionRule {
    /// So many failures, 1 to 255 …
    pub failures: u8,
    /// … within so long …
    pub window: Duration,
    /// … exclude the agent for so long; `None` is for ever.
    pub expiry: Option<Duration>,
}

impl Default for ExclusionRule {
    /// Two failures within an hour exclude for an hour.
    fn default() -> ExclusionRule {
        let hour = Duration::from_secs(3600);
        ExclusionRule { failures: 2, window: hour, expiry: Some(hour) }
    }
}

/// Which agents fill first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// One executor an agent and pass, over the offers in their order, until a pass places none. An agent on which an
    /// executor failed comes last for 5 min or until it gets another: so a replacement starts elsewhere if it can.
    #[default]
    RoundRobin,
    /// Fill one agent before the next; those on which an executor failed last.
    Consolidate,
}

/// What becomes of an executor that is out of sight (unreachable, unknown, lost by disconnection): it may run on, and
/// may come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreachableRule {
    /// After so long its cores no longer count against the cap, so that it can be replaced; `None` keeps them counted
    /// until it has ended for sure. Comes it back later, it is readmitted if the caps allow, and else killed.
    /// Default 5 min.
    pub release_after: Option<Duration>,
    /// After so long more it is forgotten, as lost; if it comes back even then, it is killed. Default 10 min.
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
