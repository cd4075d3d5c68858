//! Executors that have ended and left their cells, until the books know of it: up to `N` are taken out of them at once.
//!
//! Whoever moves an executor to `Vacant` writes it down here, and [settles](Core::settle) when it has a good number or
//! has to know what there is room for. In between the books count more than there is, never less: so no cap is
//! exceeded, and no drain ends early. What would be four words an executor that others want, too, is two (the
//! executor's and its agent's), and two more for all of them together.

use crate::ids::ExecutorId;
use crate::kernel::Core;
use crate::kernel::state::admission::AdmissionState;
use crate::kernel::state::executors::{Allocation, Stage, State};
use crate::resources::MilliCpus;
use crate::sync::Ordering;

/// What `N` executors leave.
#[derive(Debug)]
pub(crate) struct ReleaseBatch<const N: usize> {
    /// The cells, and those of their agents.
    slots: [u32; N],
    agents: [u32; N],
    left: usize,
    /// How many of them were counted, and what they held.
    counted: u32,
    cores: MilliCpus,
    gpus: u64,
    /// How many lower the executor limit when they leave.
    count_down: u32,
    /// Whether plans were made for an agent that is excluded now.
    invalidate_plans: bool,
}

impl<const N: usize> ReleaseBatch<N> {
    pub(crate) const fn new() -> ReleaseBatch<N> {
        ReleaseBatch {
            slots: [0; N],
            agents: [0; N],
            left: 0,
            counted: 0,
            cores: MilliCpus::ZERO,
            gpus: 0,
            count_down: 0,
            invalidate_plans: false,
        }
    }

    /// The executor that was written down last lowers the executor limit.
    pub(crate) fn count_down(&mut self) {
        self.count_down += 1;
    }

    /// The end that was written down last has excluded its agent, on which others are placed perhaps.
    pub(crate) fn invalidate_plans(&mut self) {
        self.invalidate_plans = true;
    }
}

impl Core {
    /// Writes down what an executor leaves. Only who moved it from `before` to `Vacant` may call this, and has
    /// to [settle](Core::settle).
    #[inline]
    pub(crate) fn record_release<const N: usize>(
        &self,
        id: ExecutorId,
        allocation: &Allocation,
        before: State,
        batch: &mut ReleaseBatch<N>,
    ) {
        if matches!(before.stage, Stage::Unreachable | Stage::GivenUp) {
            self.unreachable.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(index) = &self.by_sequence {
            index.remove(&id.sequence);
        }
        if batch.left == N {
            // Who has so many to write down settles before; this is for who forgets.
            self.flush_releases(batch);
        }
        batch.slots[batch.left] = id.slot;
        batch.agents[batch.left] = allocation.agent;
        batch.left += 1;
        if before.stage.counted() {
            batch.counted += 1;
            batch.cores = MilliCpus::from_millis(batch.cores.millis() + allocation.cores.millis());
            batch.gpus += u64::from(allocation.gpus.get());
        }
    }

    /// Takes what was written down out of the books, and frees the cells. The executor limit is lowered before: who
    /// sees the places free must see the limit too, or would fill them.
    #[inline]
    pub(crate) fn flush_releases<const N: usize>(&self, batch: &mut ReleaseBatch<N>) {
        if batch.left == 0 {
            return;
        }
        if batch.invalidate_plans {
            self.policy.invalidate_plans(&self.admission);
        }
        if batch.count_down > 0 {
            self.policy.lower_limit(batch.count_down, &self.admission);
        }
        let admission = match batch.counted {
            0 => self.admission.load_latest(),
            executors => self.release(executors, batch.cores, batch.gpus),
        };
        // A closed kernel's cells stay as they are: they say how the executors on the roll have ended. The word is
        // changed by a read-modify-write, so that whoever sees the kernel open here is seen as vacant by the roll.
        if !admission.closed() {
            match batch.slots[..batch.left] {
                [slot] => self.executors.free(slot),
                ref slots => self.executors.free_all(slots),
            }
        }
        // Last: whoever finds the agent without executors, and forgets it, knows that none of them is listed by a drain
        // of a kernel that is open still: they are out of the books, and their cells don't say how they ended.
        for agent in &batch.agents[..batch.left] {
            self.agents.release(*agent, 1);
        }
        *batch = ReleaseBatch::new();
    }

    /// Takes a hold out of the books; wakes the drain if it was the last.
    pub(crate) fn release_allocation(&self, allocation: &Allocation) -> AdmissionState {
        self.release(1, allocation.cores, u64::from(allocation.gpus.get()))
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
