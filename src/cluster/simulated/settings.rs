//! The framework's settings that faults change while it runs: executor limit, core cap, executor cores, zones, queues.

use super::scenario::Scenario;
use crate::resources::MilliCpus;

/// Settings that can be changed while the framework runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameworkSettings {
    /// The executor limit.
    pub(super) limit: u32,
    /// Zero means no cap.
    pub(super) core_cap: MilliCpus,
    /// Zero means all cores of the offer.
    pub(super) executor_cores: MilliCpus,
    /// How many zones the constraint allows, from the first; 0 allows all.
    pub(super) zones: u32,
    /// Which of the bounds that follow from the seed the queues have.
    pub(super) queue_round: u64,
}

impl FrameworkSettings {
    /// The settings at the start of `scenario`.
    pub(super) fn of(scenario: &Scenario) -> FrameworkSettings {
        FrameworkSettings {
            limit: scenario.executors,
            core_cap: scenario.core_cap,
            executor_cores: scenario.executor_cores,
            zones: 0,
            queue_round: 0,
        }
    }

    /// Whether the constraint allows agents of this zone.
    pub(super) fn allows_zone(&self, zone: u32) -> bool {
        self.zones == 0 || zone < self.zones
    }

    /// The minimum number of cores that an executor takes.
    pub(super) fn executor_cores_min(&self) -> MilliCpus {
        match self.executor_cores {
            MilliCpus::ZERO => MilliCpus::from_cores(1),
            cores => cores,
        }
    }
}
