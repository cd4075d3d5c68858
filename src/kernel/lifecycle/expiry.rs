//! What time alone does: executors out of sight are given up, then forgotten; agents that nobody hears of go; tables
//! that are nearly full grow.

use std::time::Duration;

use super::updates::Target;
use crate::ids::ExecutorId;
use crate::kernel::Core;
use crate::kernel::state::executors::{Executor, Stage};
use crate::sync::Ordering;
use crate::time::Timestamp;

/// An agent that no offer came from for so long is forgotten, unless it holds executors or is excluded.
const AGENT_KEPT_FOR: Duration = Duration::from_secs(900);
/// How often agents are looked through.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// What a tick did.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Ticked {
    /// Executors out of sight for so long that their resources are counted no more.
    pub given_up: Vec<Target>,
    /// Executors out of sight for so long that they are forgotten.
    pub forgotten: Vec<Target>,
    /// How many agents were forgotten.
    pub agents_forgotten: usize,
}

impl Core {
    pub(crate) fn tick(&self, now: Timestamp) -> Ticked {
        let mut ticked = Ticked::default();
        self.executors.grow_ahead();
        self.agents.grow_ahead();
        // Relaxed: an executor that goes out of sight meanwhile is not due yet, and one that did so before is counted.
        if self.unreachable.load(Ordering::Relaxed) > 0 {
            self.expire_unreachable(now, &mut ticked);
        }
        let swept = self.swept_at.load(Ordering::Relaxed);
        let due = now.since(Timestamp::from_millis(swept)) >= SWEEP_EVERY;
        let claim = |at: u64| {
            self.swept_at.compare_exchange(
                swept,
                at,
                // Relaxed: it only keeps two threads from sweeping at once.
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
        };
        if due && claim(now.as_millis()).is_ok() {
            let before = now.since(Timestamp::ORIGIN.plus(AGENT_KEPT_FOR));
            let before = Timestamp::ORIGIN.plus(before);
            // By a read-modify-write, as in `flush_releases`: an agent whose name goes had no executor that the drain lists.
            let names_stay = || self.admission.load_latest().closed();
            ticked.agents_forgotten = self.agents.sweep(before, now, &names_stay);
        }
        ticked
    }

    fn expire_unreachable(&self, now: Timestamp, ticked: &mut Ticked) {
        let rule = self.policy.load().config.unreachable;
        for (id, executor, state) in self.live() {
            let Some(age) = executor.unreachable_for(state, now) else { continue };
            match (state.stage, rule.release_after) {
                (Stage::Unreachable, Some(after)) if age >= after => {
                    ticked.given_up.extend(self.give_up(id, executor, after, now));
                }
                (Stage::GivenUp, _) if age >= rule.forget_after => {
                    ticked.forgotten.extend(self.forget(id, executor, rule.forget_after, now));
                }
                _ => {}
            }
        }
    }

    fn give_up(
        &self,
        id: ExecutorId,
        executor: &Executor,
        after: Duration,
        now: Timestamp,
    ) -> Option<Target> {
        // Both before the change: after it the executor may end, and the cell be another's.
        let target = self.target(id, executor);
        let allocation = executor.allocation();
        if !executor.give_up(id.sequence, after, now) {
            return None;
        }
        self.release_allocation(&allocation);
        target
    }

    fn forget(
        &self,
        id: ExecutorId,
        executor: &Executor,
        after: Duration,
        now: Timestamp,
    ) -> Option<Target> {
        let target = self.target(id, executor);
        let before = executor.forget(id.sequence, after, now)?;
        self.vacate(id, executor, before);
        target
    }
}
