//! Does again what a journal tells.

use std::fmt;
use std::time::Duration;

use super::entry::{Entry, Operation, Outcome};
use super::{POINT_EVERY, TICK_EVERY};
use crate::engine::owned::{BorrowedParts, borrow_former, borrow_offers};
use crate::error::Error;
use crate::ids::ExecutorId;
use crate::kernel::{Decisions, DemandCall, Handler, Kernel, Target, Ticked};
use crate::status::StatusUpdate;
use crate::time::Timestamp;

/// A journal has something on record at least this often.
pub const GAP_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// What one point of the grid did.
#[derive(Debug)]
pub(crate) struct Passed {
    /// The point's moment.
    pub(crate) at: Timestamp,
    /// The subscription in force.
    pub(crate) epoch: u64,
    /// The call that is due in it.
    pub(crate) demand: Option<DemandCall>,
    /// At a full second.
    pub(crate) ticked: Option<Ticked>,
}

/// Does one point of the grid.
pub(crate) fn pass(kernel: &Kernel, at: Timestamp) -> Passed {
    let epoch = kernel.epoch();
    let demand = kernel.poll_demand_in(epoch, at);
    let every = TICK_EVERY.as_millis() as u64;
    let ticked = at.as_millis().is_multiple_of(every).then(|| kernel.tick(at));
    Passed { at, epoch, demand, ticked }
}

impl Passed {
    /// For the record, if something came of it.
    pub(crate) fn outcome(&self, kernel: &Kernel) -> Option<Outcome> {
        let nothing = Ticked::default();
        let ticked = self.ticked.as_ref().unwrap_or(&nothing);
        let names = |targets: &[Target]| -> Vec<String> {
            targets.iter().map(|it| kernel.executor_name(it.id).to_string()).collect()
        };
        let (given_up, forgotten) = (names(&ticked.given_up), names(&ticked.forgotten));
        let agents_forgotten = ticked.agents_forgotten;
        let is_something = self.demand.is_some()
            || agents_forgotten > 0
            || !given_up.is_empty()
            || !forgotten.is_empty();
        let demand = self.demand;
        is_something.then_some(Outcome::Passed { demand, given_up, forgotten, agents_forgotten })
    }
}

/// A kernel that is told what another was told: see the [module](super).
pub struct Player {
    kernel: Kernel,
    handler: Handler,
    decisions: Decisions,
    /// The moment of the last operation.
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
    /// A player around a kernel that nothing was done with, of the settings and ids of the one that was recorded.
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

    /// The kernel inside.
    #[must_use]
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Makes points of the grid up to `until`, and stops after the first that something comes of. `None` when all are
    /// made: then an operation of that moment can be [played](Player::play).
    ///
    /// # Errors
    /// When `until` is before the last operation, or more than [`GAP_MAX`] after it.
    pub fn pass(&mut self, until: Timestamp) -> Result<Option<Entry>, Error> {
        if until < self.at {
            return Err(Error::setting("moment", until, format!("{} or later", self.at)));
        }
        let last = self.at.plus(GAP_MAX);
        if until > last {
            return Err(Error::setting("moment", until, format!("{last} or sooner")));
        }
        while self.point <= until {
            let at = self.point;
            self.point = at.plus(POINT_EVERY);
            let passed = pass(&self.kernel, at);
            if let Some(outcome) = passed.outcome(&self.kernel) {
                return Ok(Some(Entry::after(&self.kernel, at, Operation::Point, outcome)));
            }
        }
        Ok(None)
    }

    /// Does an operation.
    ///
    /// # Errors
    /// When its moment is out of place, as for [`Player::pass`]; then nothing was done. Points that are still to be
    /// made before it are made, and what comes of them is not told.
    pub fn play(&mut self, at: Timestamp, operation: Operation) -> Result<Entry, Error> {
        while self.pass(at)?.is_some() {}
        self.at = at;
        let outcome = self.perform(at, &operation);
        Ok(Entry::after(&self.kernel, at, operation, outcome))
    }

    fn perform(&mut self, at: Timestamp, operation: &Operation) -> Outcome {
        let Player { kernel, handler, decisions, .. } = self;
        match operation {
            Operation::Offers(offers) => {
                let parts = BorrowedParts::default();
                handler.resource_offers(borrow_offers(offers, &parts), at, decisions);
                return Outcome::answers(kernel, decisions);
            }
            Operation::AnswersLeftLate => kernel.answers_sent(decisions),
            Operation::Update { executor, state, reason, limit } => {
                let update = StatusUpdate::new(executor, *state).because(*reason);
                return Outcome::from(&kernel.status_update_with(&update, *limit, at));
            }
            Operation::AgentLost { agent_id } => {
                return Outcome::targets(kernel, &kernel.agent_lost(agent_id, at));
            }
            Operation::ExecutorLost { executor } => {
                let target: Vec<Target> = kernel.executor_lost(executor).into_iter().collect();
                return Outcome::targets(kernel, &target);
            }
            Operation::Limit(limit) => {
                if kernel.set_executor_limit(*limit).is_err() {
                    return Outcome::Refused;
                }
            }
            Operation::Request { limit, hosts } => {
                let hosts = hosts.iter().map(String::as_str);
                if kernel.request_executors(*limit, hosts, at).is_err() {
                    return Outcome::Refused;
                }
            }
            Operation::Kill(executors) => {
                let ids: Vec<ExecutorId> =
                    executors.iter().filter_map(|it| kernel.executor_id(it)).collect();
                return Outcome::targets(kernel, &kernel.kill_executors(ids));
            }
            Operation::Recovered(former) => {
                let adopted = kernel.adopt(&borrow_former(former), at);
                return Outcome::adopted(adopted.as_deref().unwrap_or_default());
            }
            Operation::Registered { .. } => {
                kernel.registered();
            }
            Operation::Disconnected => kernel.disconnected(),
            Operation::Close => return Outcome::targets(kernel, &kernel.close()),
            Operation::Wait | Operation::Point => {}
        }
        Outcome::Done
    }
}
