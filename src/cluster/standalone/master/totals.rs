//! What has happened since a master's start, in numbers, and which of it an executor's end adds to.

use serde::Serialize;

use crate::mesos_v1::messages::TaskState;

/// What has happened since the master's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MasterTotals {
    /// Offers that were made.
    pub offers: u64,
    /// Offers that frameworks declined. Those that were partly used aren't among them.
    pub offers_declined: u64,
    /// Executors that were launched.
    pub launched: u64,
    /// Executors that ended by themselves, with exit code 0.
    pub finished: u64,
    /// Executors that failed, or whose command was refused.
    pub failed: u64,
    /// Executors that were killed, as their framework wanted or because it is gone.
    pub killed: u64,
    /// Executors that were lost with their worker, or whose launch didn't arrive.
    pub lost: u64,
}

impl MasterTotals {
    /// Counts an executor that has ended in this state. Other states are no end.
    pub(super) fn count_end(&mut self, state: TaskState) {
        let total = match state {
            TaskState::Finished => &mut self.finished,
            TaskState::Failed | TaskState::Error => &mut self.failed,
            TaskState::Killed => &mut self.killed,
            TaskState::Dropped | TaskState::Gone | TaskState::Lost => &mut self.lost,
            _ => return,
        };
        *total += 1;
    }
}
