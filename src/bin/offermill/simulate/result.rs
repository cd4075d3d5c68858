//! The results of simulations: of one scenario, of a search over seeds, and of shortening a scenario that fails.

use std::time::Duration;

use offermill::Timestamp;
use offermill::cluster::simulated::{InvariantViolation, Report, Scenario};

use super::options::{ScenarioOptions, SearchOptions};
use crate::output::PrintOutcome;

/// The result of one scenario.
pub(super) struct RunResult<'a> {
    pub(super) options: &'a ScenarioOptions,
    pub(super) report: Report,
    /// The real time that the simulation took.
    pub(super) took: Duration,
    /// The signal that stopped the simulation, and the virtual time at which the shutdown began.
    pub(super) stopped_by: Option<(&'static str, Timestamp)>,
    /// The invariant that was violated, if any.
    pub(super) broken: Option<InvariantViolation>,
}

/// The result of a search over seeds.
pub(super) struct SearchResult<'a> {
    pub(super) options: &'a SearchOptions,
    /// The number of seeds that were played to their end or to a violation.
    pub(super) seeds: u64,
    /// The number of seeds whose settings the kernel rejected: a fault of the generator.
    pub(super) rejected: u64,
    pub(super) steps: u64,
    pub(super) offers: u64,
    /// The real time that the search took.
    pub(super) took: Duration,
    /// The reason why the search ended before its last seed.
    pub(super) stopped_by: Option<&'static str>,
    /// Whether the last line reached standard output.
    pub(super) printed: PrintOutcome,
    /// The seed that failed, and the invariant that it violated.
    pub(super) broken: Option<(u64, InvariantViolation)>,
}

/// The shortest scenario found that still violates the same invariant.
pub(super) struct Shortened {
    pub(super) scenario: Scenario,
    /// The number of simulations that shortening took.
    pub(super) runs: u32,
    /// The real time that shortening took.
    pub(super) took: Duration,
    /// The reason why shortening ended before it found the shortest scenario.
    pub(super) stopped_by: Option<&'static str>,
}
