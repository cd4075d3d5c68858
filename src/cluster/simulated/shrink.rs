//! From a scenario that breaks a rule to a short one that breaks the same.

use std::time::Duration;

use super::scenario::Scenario;
use super::simulation::{Broken, Checks, Simulation};
use crate::resources::MilliCpus;
use crate::time::Timestamp;

/// Looks for a shorter scenario that breaks the same rule: with fewer faults, then with a plainer world. Asks `tell`
/// before each run, with the number of runs so far and the shortest scenario yet, whether to go on.
///
/// Each run may take as long as the original one did.
pub fn shorten(
    scenario: &Scenario,
    broken: &Broken,
    checks: Checks,
    tell: &mut dyn FnMut(u32, &Scenario) -> bool,
) -> Scenario {
    let (invariant, steps) = (broken.invariant, broken.step.saturating_mul(4).max(10_000));
    let mut search = Search { shortest: scenario.clone(), invariant, checks, steps, runs: 0, tell };
    loop {
        let before = search.shortest.clone();
        // `None` is the end of it: nobody wants to wait any longer.
        if search.fewer_faults().and_then(|()| search.plainer_world()).is_none() {
            break;
        }
        if search.shortest == before {
            break;
        }
    }
    search.shortest
}

struct Search<'a> {
    shortest: Scenario,
    invariant: u8,
    checks: Checks,
    steps: u64,
    runs: u32,
    tell: &'a mut dyn FnMut(u32, &Scenario) -> bool,
}

impl Search<'_> {
    /// Leaves out faults: half of them, then quarters, down to single ones.
    fn fewer_faults(&mut self) -> Option<()> {
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

    /// Makes each setting as plain as it can be.
    fn plainer_world(&mut self) -> Option<()> {
        let changes: [fn(&mut Scenario); 15] = [
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

    /// Whether `candidate` breaks the same rule; it is the shortest then.
    fn attempt(&mut self, candidate: Scenario) -> Option<bool> {
        if !(self.tell)(self.runs, &self.shortest) {
            return None;
        }
        self.runs += 1;
        let breaks = Simulation::new(candidate.clone(), self.checks)
            .is_ok_and(|mut run| self.breaks_the_same(&mut run));
        if breaks {
            self.shortest = candidate;
        }
        Some(breaks)
    }

    fn breaks_the_same(&self, run: &mut Simulation) -> bool {
        run.advance(self.steps).is_err_and(|broken| broken.invariant == self.invariant)
    }
}
