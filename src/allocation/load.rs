//! What there is to do, in tasks, and how many executors that needs.

use super::rule::Rule;

/// The tasks that there are at a moment. What isn't known is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Tasks that wait for an executor, without the speculative ones.
    pub pending: u64,
    /// Second copies of slow tasks that wait for an executor. They count like others; and if a single executor with
    /// several slots would do, one more is needed, as a copy must not run beside its original.
    pub speculative: u64,
    /// Tasks that run, copies included.
    pub running: u64,
    /// Sets of tasks that wait and may not run on any executor that is there, as these have failed them: for every
    /// `slots ÷ ratio` of them one executor more than there are is needed.
    pub unschedulable: u64,
}

impl Load {
    /// Whether anything waits.
    pub(super) fn is_backlogged(&self) -> bool {
        self.pending > 0 || self.speculative > 0 || self.unschedulable > 0
    }

    /// Whether there is anything to do.
    pub(super) fn is_any(&self) -> bool {
        self.is_backlogged() || self.running > 0
    }

    /// How many executors could be kept busy, where `present` are there. Whatever the rule's bounds are.
    pub(super) fn executors_needed(&self, rule: &Rule, present: u32) -> u32 {
        let tasks = self.pending.saturating_add(self.speculative).saturating_add(self.running);
        let mut needed = executors_for(tasks, rule);
        if rule.slots > 1 && needed == 1 && self.speculative > 0 {
            needed = 2;
        }
        match self.unschedulable {
            0 => needed,
            sets => needed.max(present.saturating_add(executors_for(sets, rule))),
        }
    }
}

/// As Spark counts: in floating point. Beyond the range it is the largest number.
fn executors_for(tasks: u64, rule: &Rule) -> u32 {
    (tasks as f64 * rule.ratio / f64::from(rule.slots)).ceil() as u32
}
