//! The player: repeats a journal's operations on a new kernel.

use std::fmt;
use std::time::Duration;

use super::entry::{JournalEntry, Operation, OperationOutcome};
use super::{POINT_EVERY, TICK_EVERY};
use crate::error::Error;
use crate::kernel::{Decisions, DemandCall, Handler, Kernel, Target, Ticked};
use crate::time::Timestamp;

/// The longest time between two entries of a journal.
pub const GAP_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The result of one point of the grid.
#[derive(Debug)]
pub(crate) struct GridPoint {
    /// The point's time.
    pub(crate) at: Timestamp,
    /// The subscription in force.
    pub(crate) epoch: u64,
    /// The call that is due in it.
    pub(crate) demand: Option<DemandCall>,
    /// The result of the tick, at full seconds.
    pub(crate) ticked: Option<Ticked>,
}

/// Runs one point of the grid: a poll, and at full seconds a tick.
pub(crate) fn run_point(kernel: &Kernel, at: Timestamp) -> GridPoint {
    let epoch = kernel.epoch();
    let demand = kernel.poll_demand_in(epoch, at);
    let every = TICK_EVERY.as_millis() as u64;
    let ticked = at.as_millis().is_multiple_of(every).then(|| kernel.tick(at));
    GridPoint { at, epoch, demand, ticked }
}

impl GridPoint {
    /// The outcome to be recorded, if there is one.
    pub(crate) fn outcome(&self, kernel: &Kernel) -> Option<OperationOutcome> {
        let nothing = Ticked::default();
        let ticked = self.ticked.as_ref().unwrap_or(&nothing);
        let name = |target: &Target| kernel.executor_name(target.id).to_string();
        let given_up: Vec<_> = ticked.given_up.iter().map(|it| name(&it.target)).collect();
        let forgotten: Vec<_> = ticked.forgotten.iter().map(name).collect();
        let agents_forgotten = ticked.agents_forgotten;
        let is_something = self.demand.is_some()
            || agents_forgotten > 0
            || !given_up.is_empty()
            || !forgotten.is_empty();
        let demand = self.demand;
        is_something.then_some(OperationOutcome::Point {
            demand,
            given_up,
            forgotten,
            agents_forgotten,
        })
    }
}

/// Repeats the operations of a recorded kernel on another: see the [module](super).
pub struct Player {
    kernel: Kernel,
    handler: Handler,
    decisions: Decisions,
    /// The time of the last operation.
    at: Timestamp,
    /// The next point of the grid.
    point: Timestamp,
}

impl fmt::Debug for Player {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Player").field("kernel", &self.kernel).finish_non_exhaustive()
    }
}

impl Player {
    /// A player around an unused kernel, with the settings and id scheme of the recorded one.
    #[must_use]
    pub fn new(kernel: Kernel) -> Player {
        Player {
            handler: kernel.handler(),
            kernel,
            decisions: Decisions::new(),
            at: Timestamp::ORIGIN,
            point: Timestamp::ORIGIN.plus(POINT_EVERY),
        }
    }

    /// The player's kernel.
    #[must_use]
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Runs points of the grid up to `until`, and stops after the first with an outcome. Returns `None` when all have
    /// run: then an operation of that time can be [played](Player::play).
    ///
    /// # Errors
    /// If `until` is before the last operation, or more than [`GAP_MAX`] after it.
    pub fn advance(&mut self, until: Timestamp) -> Result<Option<JournalEntry>, Error> {
        if until < self.at {
            return Err(Error::setting("moment", until, format!("{} or later", self.at)));
        }
        let last = self.at.plus(GAP_MAX);
        if until > last {
            return Err(Error::setting("moment", until, format!("{last} or earlier")));
        }
        while self.point <= until {
            let at = self.point;
            self.point = at.plus(POINT_EVERY);
            let point = run_point(&self.kernel, at);
            if let Some(outcome) = point.outcome(&self.kernel) {
                return Ok(Some(JournalEntry::after(&self.kernel, at, Operation::Point, outcome)));
            }
        }
        Ok(None)
    }

    /// Runs an operation. Points before it that have not run yet are run first, and their outcomes are dropped.
    ///
    /// # Errors
    /// If its time is out of range, as for [`Player::advance`]; then nothing was run.
    pub fn play(&mut self, at: Timestamp, operation: Operation) -> Result<JournalEntry, Error> {
        while self.advance(at)?.is_some() {}
        self.at = at;
        let Player { kernel, handler, decisions, .. } = self;
        let outcome = operation.apply(kernel, handler, decisions, at);
        Ok(JournalEntry::after(&self.kernel, at, operation, outcome))
    }
}
