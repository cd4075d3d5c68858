//! What reports collect of an executor.

use crate::ids::ExecutorId;
use crate::kernel::state::executor_state::CellState;
use crate::kernel::state::executors::Allocation;
use crate::time::Timestamp;

/// An executor with its cell's state and allocation, and when it was placed.
pub(super) type Row = (ExecutorId, CellState, Allocation, Timestamp);
