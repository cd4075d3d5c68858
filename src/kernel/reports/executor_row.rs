//! What reports collect of an executor.

use crate::ids::ExecutorId;
use crate::kernel::state::executor_state::{CellStage, SeenState};
use crate::kernel::state::executors::Allocation;
use crate::time::Timestamp;

/// An executor at the first look: what may change while it lives.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenExecutor {
    pub(super) state: SeenState,
    pub(super) slot: u32,
    /// The index of its agent's cell, or [`NO_AGENT`](crate::kernel::state::agent_binding::NO_AGENT). It is another
    /// executor's if the second look finds that this one has ended.
    pub(super) agent: u32,
}

impl SeenExecutor {
    #[inline]
    pub(super) fn id(&self) -> ExecutorId {
        ExecutorId { sequence: self.state.sequence(), slot: self.slot }
    }
}

/// An executor that was there at both looks: its stage and its agent at the first one, and what never changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) id: ExecutorId,
    pub(super) stage: CellStage,
    pub(super) allocation: Allocation,
    pub(super) launched: Timestamp,
}
