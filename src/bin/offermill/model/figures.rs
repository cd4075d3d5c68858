//! The figures of a run at one time, for metrics and plots.

use std::time::Duration;

use offermill::{CapacitySums, OfferCounts};

use crate::model::executor::ExecutorState;

/// The figures of a run at one time.
#[derive(Clone, Debug)]
pub(crate) struct RunFigures {
    /// How long the run has been running.
    pub(crate) ran: Duration,
    /// How many executors are in each state, in the order of [`ExecutorState::ALL`].
    pub(crate) executors: [(ExecutorState, u64); ExecutorState::ALL.len()],
    /// How many executors were replaced.
    pub(crate) replaced: u64,
    /// The executor limit; `None` if there is none.
    pub(crate) limit: Option<u32>,
    /// How many more executors are wanted.
    pub(crate) wanted: u32,
    /// What became of offers.
    pub(crate) offers: OfferCounts,
    /// What agents offered, and what of it is used and free.
    pub(crate) cluster: CapacitySums,
    /// How many agents are excluded.
    pub(crate) excluded: usize,
    /// Whether the framework is subscribed.
    pub(crate) is_registered: bool,
    /// Whether the run stops.
    pub(crate) is_stopping: bool,
}

impl RunFigures {
    /// How many executors are in this state.
    pub(crate) fn count(&self, state: ExecutorState) -> u64 {
        self.executors.iter().filter(|(it, _)| *it == state).map(|(_, number)| number).sum()
    }

    /// How many executors are alive.
    pub(crate) fn alive(&self) -> u64 {
        self.executors.iter().filter(|(it, _)| !it.is_end()).map(|(_, number)| number).sum()
    }
}
