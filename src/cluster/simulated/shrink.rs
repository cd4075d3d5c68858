//! Shrinks a failing scenario: searches for a shorter one that violates the same invariant.

use std::time::Duration;

use super::scenario::Scenario;
use super::simulation::{Checks, InvariantViolation, Simulation};
use crate::resources::MilliCpus;
use crate::time::Timestamp;

/// Searches for a shorter scenario that violates the same invariant: with fewer faults, then with simpler settings.
/// Before each run, `keep_going` is called with the number of runs so far and the shortest scenario found; the search
/// ends when it returns `false`.
///
/// Each run may take up to four times as many steps as the original run.
pub fn shorten(
    scenario: &Scenario,
    broken: &InvariantViolation,
    checks: Checks,
    keep_going: &mut dyn FnMut(u32, &Scenario) -> bool,
) -> Scenario {
    let mut search = ShrinkSearch {
        shortest: scenario.clone(),
        invariant: broken.invariant,
        checks,
        steps: broken.step.saturating_mul(4).max(10_000),
        runs: 0,
        keep_going,
    };
    loop {
        let before = search.shortest.clone();
        // `None`: the caller ends the search.
        if search.remove_faults().and_then(|()| search.simplify_settings()).is_none() {
            break;
        }
        if search.shortest == before {
            break;
        }
    }
    search.shortest
}

struct ShrinkSearch<'a> {
    shortest: Scenario,
    invariant: u8,
    checks: Checks,
    steps: u64,
    runs: u32,
    keep_going: &'a mut dyn FnMut(u32, &Scenario) -> bool,
}

impl ShrinkSearch<'_> {
    /// Leaves out faults: half of them, then quarters, down to single ones.
    fn remove_faults(&mut self) -> Option<()> {
        let mut chunk = self.shortest.faults.len().div_ceil(2);
        while chunk > 0 {
            let mut start = 0;
            while start < self.shortest.faults.len() {
                let mut candidate = self.shortest.clone();
                let end = (start + chunk).min(candidate.faults.len());
                candidate.faults.drain(start..end);
                if !self.attempt(candidate)? {
                    start += chunk;
                }
            }
            chunk /= 2;
        }
        Some(())
    }

    /// Simplifies one setting after the other.
    fn simplify_settings(&mut self) -> Option<()> {
        let changes: [fn(&mut Scenario); 17] = [
            |it| it.agents = 1,
            |it| it.agents = it.agents.div_ceil(2),
            |it| it.agents -= u32::from(it.agents > 1),
            |it| it.executors = it.executors.min(1),
            |it| it.executors = it.executors.div_ceil(2),
            |it| it.handlers = 1,
            |it| it.lifetime = Duration::ZERO,
            |it| it.failures_percent = 0,
            |it| it.core_cap = MilliCpus::ZERO,
            |it| it.reserved_percent = 0,
            |it| it.fixed_port = false,
            |it| (it.executor_gpus, it.gpu_cap) = (0, 0),
            |it| it.plain_ids = false,
            |it| it.hosts = false,
            |it| it.queues = it.queues.saturating_sub(1),
            |it| it.zones = 1,
            |it| {
                let last = it.faults.last().map_or(Timestamp::ORIGIN, |fault| fault.at);
                let soon = last.plus(Duration::from_secs(1));
                it.healed_at = it.healed_at.min(soon);
            },
        ];
        for change in changes {
            let mut candidate = self.shortest.clone();
            change(&mut candidate);
            if candidate != self.shortest {
                self.attempt(candidate)?;
            }
        }
        Some(())
    }

    /// Runs `candidate`. Keeps it as the shortest if it violates the same invariant, and returns whether it does.
    fn attempt(&mut self, candidate: Scenario) -> Option<bool> {
        if !(self.keep_going)(self.runs, &self.shortest) {
            return None;
        }
        self.runs += 1;
        let breaks = Simulation::new(candidate.clone(), self.checks)
            .is_ok_and(|mut run| self.violates_same(&mut run));
        if breaks {
            self.shortest = candidate;
        }
        Some(breaks)
    }

    fn violates_same(&self, run: &mut Simulation) -> bool {
        run.advance(self.steps).is_err_and(|broken| broken.invariant == self.invariant)
    }
}
