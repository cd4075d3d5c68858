//! The tick: unreachable executors are given up and then forgotten, unused agents are forgotten, and tables that are
//! nearly full grow.

use std::time::Duration;

use crate::ids::ExecutorId;
use crate::kernel::Core;
use crate::kernel::state::executor_state::CellStage;
use crate::kernel::state::executors::ExecutorCell;
use crate::kernel::state::target::Target;
use crate::resources::ExecutorResources;
use crate::sync::Ordering;
use crate::time::Timestamp;

/// An agent that was not offered for this long is forgotten, unless it holds executors or is excluded.
const AGENT_KEPT_FOR: Duration = Duration::from_secs(900);
/// The time between two searches for agents to forget.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// The result of a tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Ticked {
    /// Executors that were unreachable for so long that their resources are not counted any more, with these resources.
    /// If one of them returns, its update is a [`Change::Readmitted`](crate::Change::Readmitted) or
    /// [`Change::Refused`](crate::Change::Refused).
    pub given_up: Vec<GivenUp>,
    /// Executors that were unreachable for so long that they are forgotten.
    pub forgotten: Vec<Target>,
    /// The number of agents that were forgotten.
    pub agents_forgotten: usize,
}

/// An executor that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct GivenUp {
    /// The executor and its agent.
    pub target: Target,
    /// The resources that are not counted any more.
    pub freed: ExecutorResources,
}

impl Core {
    pub(crate) fn tick(&self, now: Timestamp) -> Ticked {
        let mut ticked = Ticked::default();
        self.executors.grow_ahead();
        if let Some(numbers) = &self.numbers {
            numbers.grow_ahead();
        }
        self.agents.grow_ahead();
        // Relaxed: an executor that becomes unreachable meanwhile is not due yet, and earlier ones are counted.
        if self.unreachable.load(Ordering::Relaxed) > 0 {
            self.expire_unreachable(now, &mut ticked);
        }
        let swept = self.swept_at.load(Ordering::Relaxed);
        let due = !Timestamp::from_millis(swept).is_recent(SWEEP_EVERY, now);
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
            let age = now.since(Timestamp::ORIGIN.plus(AGENT_KEPT_FOR));
            let before = Timestamp::ORIGIN.plus(age);
            // With a read-modify-write, as `Core::release` does for executors that aren't counted: an agent that loses
            // its name had no executor that the drain lists.
            let names_stay = || self.admission.is_closed_latest();
            ticked.agents_forgotten = self.agents.sweep(before, now, &names_stay);
        }
        ticked
    }

    fn expire_unreachable(&self, now: Timestamp, ticked: &mut Ticked) {
        let rule = self.policy.load().config.unreachable;
        for (id, executor, state) in self.live() {
            let Some(age) = executor.unreachable_for(state, now) else { continue };
            match (state.stage, rule.release_after) {
                (CellStage::Unreachable, Some(after)) if age >= after => {
                    ticked.given_up.extend(self.give_up(id, executor, after, now));
                }
                (CellStage::GivenUp, _) if age >= rule.forget_after => {
                    ticked.forgotten.extend(self.forget(id, executor, rule.forget_after, now));
                }
                _ => {}
            }
        }
    }

    fn give_up(
        &self,
        id: ExecutorId,
        executor: &ExecutorCell,
        after: Duration,
        now: Timestamp,
    ) -> Option<GivenUp> {
        // All are read before the change: after it the executor may end and the cell be reused.
        let target = self.target(id, executor);
        let (allocation, queue) = (executor.allocation(), self.read_queue(id));
        if !executor.give_up(id.sequence, after, now) {
            return None;
        }
        self.release_queue(queue, allocation.booked());
        self.release_allocation(&allocation);
        target.map(|target| GivenUp { target, freed: allocation.resources })
    }

    fn forget(
        &self,
        id: ExecutorId,
        executor: &ExecutorCell,
        after: Duration,
        now: Timestamp,
    ) -> Option<Target> {
        let target = self.target(id, executor);
        let before = executor.forget(id.sequence, after, now)?;
        self.vacate(id, executor, before);
        target
    }
}
