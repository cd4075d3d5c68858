//! The load of tasks, and the number of executors that it needs.

use super::rule::AllocationRule;

/// The numbers of tasks at one moment. Use 0 for unknown numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Tasks that wait for an executor, without speculative ones.
    pub pending: u64,
    /// Speculative copies of slow tasks that wait for an executor. They count like other tasks. If a single executor
    /// with several slots would suffice, one more is needed, because a copy must not run beside its original.
    pub speculative: u64,
    /// Running tasks, including speculative copies.
    pub running: u64,
    /// Task sets that wait but may not run on any present executor, because they have failed on each. One more executor
    /// than the present ones is needed for every `slots ÷ ratio` of them.
    pub unschedulable: u64,
}

impl Load {
    /// Whether any tasks wait.
    pub(super) fn is_backlogged(&self) -> bool {
        self.pending > 0 || self.speculative > 0 || self.unschedulable > 0
    }

    /// Whether there are any tasks.
    pub(super) fn is_any(&self) -> bool {
        self.is_backlogged() || self.running > 0
    }

    /// Returns the number of executors that the load could keep busy if `present` exist, regardless of the rule's
    /// bounds.
    pub(super) fn executors_needed(&self, rule: &AllocationRule, present: u32) -> u32 {
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

/// Returns the number of executors for this many tasks, computed in floating point as in Spark. Saturates at
/// `u32::MAX`.
fn executors_for(tasks: u64, rule: &AllocationRule) -> u32 {
    (tasks as f64 * rule.ratio / f64::from(rule.slots)).ceil() as u32
}
