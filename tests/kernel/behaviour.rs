//! Tests of the kernel's documented behaviour: one readable example per sentence.

mod adopting;
mod binding;
mod bound_neighbours;
mod capacity;
mod capacity_sums;
mod compatibility;
mod demand;
mod documented;
mod draining;
mod expected_cores;
mod explaining;
mod lacking;
mod late_answers;
mod locality;
mod placing;
mod policing;
mod recorded_offers;
mod updating;

use offermill::{
    Decisions, Decline, ExecutorId, Handler, IdScheme, Kernel, Outcome, Reason, StatusUpdate,
    TaskState, UpdateReason,
};

use crate::world::{OfferData, Setup, at, lend};

/// A kernel with one handler, with short forms of its calls. Times are in milliseconds.
struct Fixture {
    kernel: Kernel,
    handler: Handler,
    decisions: Decisions,
}

impl Fixture {
    fn new(setup: &Setup) -> Fixture {
        Fixture::with_ids(setup, IdScheme::unique("job", 36).unwrap())
    }

    fn with_ids(setup: &Setup, ids: IdScheme) -> Fixture {
        let kernel = Kernel::new(setup.config(), ids);
        Fixture { handler: kernel.handler(), kernel, decisions: Decisions::new() }
    }

    /// Offers the batch. Returns the placed executors in the order of their numbers.
    fn offer(&mut self, batch: &[OfferData], now: u64) -> Vec<ExecutorId> {
        let Fixture { handler, decisions, .. } = self;
        lend(batch, |offers| handler.resource_offers(offers, at(now), decisions));
        let mut placed: Vec<ExecutorId> = self
            .decisions
            .accepts()
            .flat_map(|accept| accept.executors.iter().map(|executor| executor.id))
            .collect();
        placed.sort_unstable();
        placed
    }

    /// Offers an agent with room for one executor of the default setup, and expects one to be placed.
    fn start_on(&mut self, agent: &str, now: u64) -> ExecutorId {
        let placed = self.offer(&[OfferData::new(agent, 1.0, 100.0)], now);
        assert_eq!(placed.len(), 1, "{:?}", self.decisions.declines());
        placed[0]
    }

    /// Offers an agent with room for one executor. Returns the reason for which it is declined.
    fn refused_on(&mut self, agent: &str, now: u64) -> Reason {
        let placed = self.offer(&[OfferData::new(agent, 1.0, 100.0)], now);
        assert_eq!(placed, []);
        self.declines()[0].reason
    }

    fn declines(&self) -> &[Decline] {
        self.decisions.declines()
    }

    fn update(&self, id: ExecutorId, state: TaskState, now: u64) -> Outcome {
        self.update_because(id, state, UpdateReason::Other, now)
    }

    fn update_because(
        &self,
        id: ExecutorId,
        state: TaskState,
        reason: UpdateReason,
        now: u64,
    ) -> Outcome {
        let name = self.kernel.executor_name(id).to_string();
        let outcome =
            self.kernel.status_update(&StatusUpdate::new(&name, state).because(reason), at(now));
        self.kernel.check().unwrap();
        outcome
    }

    fn executors(&self) -> u32 {
        self.kernel.totals().executors
    }
}
