//! What renderers show between events: the current state of a run.

use offermill::{OfferCounts, Timestamp};

use crate::model::state::RunState;
use crate::model::task::TaskCounts;
use crate::model::waiting::Stall;
use crate::settings::RunSettings;

/// The current state of a run.
pub(crate) struct RunView<'a> {
    pub(crate) settings: &'a RunSettings,
    pub(crate) run_state: &'a RunState,
    pub(crate) counts: OfferCounts,
    pub(crate) offers_per_second: f64,
    pub(crate) now: Timestamp,
    /// The executor limit in force.
    pub(crate) limit: Option<u32>,
    /// Why no executor could be placed for a while, if that is so.
    pub(crate) stall: Option<&'a Stall>,
    /// How many tasks are in which state, if tasks are run.
    pub(crate) tasks: Option<TaskCounts>,
    /// Whether the run is stopping.
    pub(crate) is_stopping: bool,
}
