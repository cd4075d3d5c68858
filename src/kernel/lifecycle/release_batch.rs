//! Batched release: collects up to `N` executors that have ended, and subtracts them from the shared sums with one
//! change.
//!
//! The thread that moves an executor to `Vacant` records it here and [flushes](Core::flush_releases) the batch when it
//! is full or before a decision that depends on the room there is. In between, the sums count too much, never too
//! little, so that no cap is exceeded and no drain ends early. Instead of four contended words per executor, this
//! changes two (the executor's and its agent's), and two more per batch. With plain ids, it changes one more for each
//! run of executors whose numbers are in the same page.

use crate::ids::ExecutorId;
use crate::kernel::Core;
use crate::kernel::state::admission::AdmissionState;
use crate::kernel::state::executors::{Allocation, CellStage, CellState};
use crate::kernel::state::numbers::NumberRun;
use crate::resources::MilliCpus;
use crate::sync::Ordering;

/// What up to `N` ended executors held.
#[derive(Debug)]
pub(crate) struct ReleaseBatch<const N: usize> {
    /// The cells, and those of their agents.
    slots: [u32; N],
    agents: [u32; N],
    len: usize,
    /// How many of them were counted, and what those held.
    counted: u32,
    cores: MilliCpus,
    gpus: u64,
    /// Used if the kernel has a table of numbers.
    numbers: NumberRun,
    /// By how much to lower the executor limit.
    lower_limit_by: u32,
    /// Whether an agent was excluded that plans may have been made for.
    invalidates_plans: bool,
}

impl<const N: usize> ReleaseBatch<N> {
    pub(crate) const fn new() -> ReleaseBatch<N> {
        ReleaseBatch {
            slots: [0; N],
            agents: [0; N],
            len: 0,
            counted: 0,
            cores: MilliCpus::ZERO,
            gpus: 0,
            numbers: NumberRun::EMPTY,
            lower_limit_by: 0,
            invalidates_plans: false,
        }
    }

    /// The executor that is recorded next has finished and lowers the executor limit.
    pub(crate) fn record_finished(&mut self) {
        self.lower_limit_by += 1;
    }

    /// The end that was recorded last excluded its agent, on which other executors may be being placed.
    pub(crate) fn record_exclusion(&mut self) {
        self.invalidates_plans = true;
    }
}

impl Core {
    /// Records what an executor releases. Only the thread that moved it from `before` to `Vacant` may call this, and it
    /// has to [flush](Core::flush_releases) the batch.
    #[inline]
    pub(crate) fn record_release<const N: usize>(
        &self,
        id: ExecutorId,
        allocation: &Allocation,
        before: CellState,
        batch: &mut ReleaseBatch<N>,
    ) {
        if matches!(before.stage, CellStage::Unreachable | CellStage::GivenUp) {
            self.unreachable.fetch_sub(1, Ordering::Relaxed);
        }
        if batch.len == N {
            // Callers flush before a batch is full; this is a safeguard.
            self.flush_releases(batch);
        }
        if let Some(numbers) = &self.numbers {
            numbers.retire_later(id.sequence, &mut batch.numbers);
        }
        batch.slots[batch.len] = id.slot;
        batch.agents[batch.len] = allocation.agent;
        batch.len += 1;
        if before.stage.counted() {
            batch.counted += 1;
            batch.cores =
                MilliCpus::from_millis(batch.cores.millis() + allocation.resources.cores.millis());
            batch.gpus += u64::from(allocation.resources.gpus.get());
        }
    }

    /// Subtracts what was recorded from the shared sums and frees the cells. The executor limit is lowered first: a
    /// thread that sees the freed capacity must see the new limit, or it would fill it.
    #[inline]
    pub(crate) fn flush_releases<const N: usize>(&self, batch: &mut ReleaseBatch<N>) {
        if batch.len == 0 {
            return;
        }
        if batch.invalidates_plans {
            self.policy.invalidate_plans(&self.admission);
        }
        if batch.lower_limit_by > 0 {
            self.policy.lower_limit(batch.lower_limit_by, &self.admission);
        }
        let admission = match batch.counted {
            0 => self.admission.load_latest(),
            executors => self.release(executors, batch.cores, batch.gpus),
        };
        // The cells of a closed kernel are kept, because they say how the listed executors ended. The word is changed
        // by a read-modify-write: if the kernel is still open here, the list of a later close sees these executors as
        // vacant.
        if !admission.closed() {
            match batch.slots[..batch.len] {
                [slot] => self.executors.free(slot),
                ref slots => self.executors.free_all(slots),
            }
        }
        if let Some(numbers) = &self.numbers {
            numbers.retire_all(&batch.numbers);
        }
        // This is last: a thread that finds the agent without executors and forgets it knows that no drain of a kernel
        // that is still open lists any of them. They are not counted, and their cells don't say how they ended.
        for agent in &batch.agents[..batch.len] {
            self.agents.release(*agent, 1);
        }
        *batch = ReleaseBatch::new();
    }

    /// A number that was handed out is of no use any more: its executor has ended, or was not admitted.
    pub(crate) fn retire_number(&self, sequence: u64) {
        if let Some(numbers) = &self.numbers {
            numbers.retire(sequence, 1);
        }
    }

    /// Subtracts one allocation from the shared sums. Wakes the drain if it was the last one.
    pub(crate) fn release_allocation(&self, allocation: &Allocation) -> AdmissionState {
        self.release(1, allocation.resources.cores, u64::from(allocation.resources.gpus.get()))
    }

    #[inline]
    fn release(&self, executors: u32, cores: MilliCpus, gpus: u64) -> AdmissionState {
        self.gpus.release(gpus);
        let admission = self.admission.release(executors, cores);
        if admission.closed() && admission.executors() == 0 {
            self.drain.wake();
        }
        admission
    }
}
