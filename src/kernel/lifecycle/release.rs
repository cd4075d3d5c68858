//! Release of what ended executors held: [at once](AtOnce), at once [but for their cells](KeptCells), or up to `N`
//! executors at a time, which are subtracted from the shared sums with one change.
//!
//! The thread that moves an executor to `Vacant` records it in a batch and [flushes](Release::flush) that when it is
//! full or before a decision that depends on the room there is. In between, the sums count too much, never too
//! little, so that no cap is exceeded and no drain ends early. Instead of four words per executor, this changes two
//! (the executor's and its agent's), and two more per batch. With plain ids, it changes one more for each run of
//! executors whose numbers are in the same page.

use crate::config::QueueId;
use crate::ids::ExecutorId;
use crate::kernel::Core;
use crate::kernel::state::admission::ReleaseCounter;
use crate::kernel::state::executor_state::Before;
use crate::kernel::state::executors::{Allocation, ExecutorCell};
use crate::kernel::state::numbers::{NumberRun, Page};
use crate::kernel::state::slab::SlabCell;
use crate::resources::MilliCpus;
use crate::sync::Ordering;

/// What ended executors change in the shared sums.
#[derive(Debug)]
struct Sums {
    /// How many of them were counted, and what those held.
    counted: u32,
    cores: MilliCpus,
    gpus: u64,
    /// By how much to lower the executor limit.
    lower_limit_by: u32,
    /// Whether an agent was excluded that plans may have been made for.
    invalidates_plans: bool,
}

/// Up to `N` ended executors.
#[derive(Debug)]
pub(crate) struct ReleaseBatch<const N: usize> {
    /// The cells, and those of their agents.
    slots: [u32; N],
    agents: [u32; N],
    len: usize,
    sums: Sums,
    /// Used if the kernel has a table of numbers.
    numbers: NumberRun,
}

/// An executor that has ended, and what else its end changes.
pub(crate) struct Ended<'k> {
    pub(crate) id: ExecutorId,
    pub(crate) cell: &'k ExecutorCell,
    pub(crate) allocation: Allocation,
    pub(crate) before: Before,
    /// The queue that it is booked in.
    pub(crate) queue: Option<QueueId>,
    /// Whether it lowers the executor limit.
    pub(crate) lowers_limit: bool,
    /// Whether its agent was excluded, and plans may have been made for it.
    pub(crate) invalidates_plans: bool,
}

impl<'k> Ended<'k> {
    /// An executor in no queue, whose end changes nothing else; `allocation` is
    /// [what it held](ExecutorCell::ended_allocation).
    #[inline]
    pub(crate) fn alone(
        id: ExecutorId,
        cell: &'k ExecutorCell,
        before: Before,
        allocation: Allocation,
    ) -> Ended<'k> {
        let (lowers_limit, invalidates_plans) = (false, false);
        Ended { id, cell, allocation, before, queue: None, lowers_limit, invalidates_plans }
    }
}

/// When the resources of ended executors are released.
pub(crate) trait Release {
    /// Whether an end asks memory for the line of its agent. In a batch that was done before, and an updater's end
    /// doesn't change it.
    const PREFETCHES_AGENT: bool;

    /// Releases what an executor held, or records it until [`Release::flush`]. Only the thread that moved the executor
    /// to `Vacant` may call this, and it has to flush afterwards.
    fn release(&mut self, core: &Core, ended: Ended<'_>);

    /// Releases what was recorded.
    fn flush(&mut self, core: &Core);
}

/// Each end is released on its own.
pub(crate) struct AtOnce<'k> {
    /// The page of its number, if it was found by that.
    pub(crate) page: Option<&'k Page>,
}

impl Release for AtOnce<'_> {
    const PREFETCHES_AGENT: bool = true;

    #[inline(always)]
    fn release(&mut self, core: &Core, ended: Ended<'_>) {
        let is_closed = core.release(&Sums::of(core, &ended), ReleaseCounter::SHARED);
        if !is_closed {
            core.executors.free_cell(ended.cell, ended.id.slot);
        }
        core.retire_number_in(self.page, ended.id.sequence);
        core.agents.release(ended.allocation.agent, 1);
    }

    #[inline]
    fn flush(&mut self, _: &Core) {}
}

/// The most cells that wait to be freed.
const FREED_MAX: usize = if cfg!(all(loom, test)) { 2 } else { 64 };

/// The slots of cells that wait to be freed.
#[derive(Debug)]
pub(crate) struct FreedCells {
    slots: [u32; FREED_MAX],
    len: usize,
}

impl FreedCells {
    pub(crate) const EMPTY: FreedCells = FreedCells { slots: [0; FREED_MAX], len: 0 };

    #[inline]
    fn push(&mut self, slot: u32, core: &Core) {
        if let Some(place) = self.slots.get_mut(self.len) {
            *place = slot;
            self.len += 1;
        }
        if self.len == FREED_MAX {
            self.free(core);
        }
    }

    /// Frees all cells.
    #[inline(never)]
    pub(crate) fn free(&mut self, core: &Core) {
        core.executors.free_all(self.slots.get(..self.len).unwrap_or_default());
        self.len = 0;
    }
}

/// Each end is released on its own, but for its cell. The cells are freed together: they say nothing of their executors
/// any more, and what those held is released, so it doesn't matter when, be it after a close.
pub(crate) struct KeptCells<'k, 'f> {
    /// The page of its number, if it was found by that.
    pub(crate) page: Option<&'k Page>,
    /// The updater's.
    pub(crate) counter: ReleaseCounter,
    pub(crate) freed: &'f mut FreedCells,
}

impl Release for KeptCells<'_, '_> {
    const PREFETCHES_AGENT: bool = false;

    #[inline(always)]
    fn release(&mut self, core: &Core, ended: Ended<'_>) {
        let is_closed = core.release(&Sums::of(core, &ended), self.counter);
        if !is_closed {
            // At once: to a later close, the cell must not say how its executor ended.
            ended.cell.reset();
            self.freed.push(ended.id.slot, core);
        }
        core.retire_number_in(self.page, ended.id.sequence);
        core.agents.count_ended(ended.allocation.agent, self.counter);
    }

    #[inline]
    fn flush(&mut self, _: &Core) {}
}

impl<const N: usize> ReleaseBatch<N> {
    pub(crate) const fn new() -> ReleaseBatch<N> {
        ReleaseBatch {
            slots: [0; N],
            agents: [0; N],
            len: 0,
            sums: Sums::ZERO,
            numbers: NumberRun::EMPTY,
        }
    }
}

impl<const N: usize> Release for ReleaseBatch<N> {
    const PREFETCHES_AGENT: bool = false;

    #[inline(always)]
    fn release(&mut self, core: &Core, ended: Ended<'_>) {
        if self.len == N {
            // Callers flush before a batch is full; this is a safeguard.
            self.flush(core);
        }
        self.slots[self.len] = ended.id.slot;
        self.agents[self.len] = ended.allocation.agent;
        self.len += 1;
        if let Some(numbers) = &core.numbers {
            numbers.retire_later(ended.id.sequence, &mut self.numbers);
        }
        self.sums.add(core, &ended);
    }

    fn flush(&mut self, core: &Core) {
        if self.len > 0 {
            let is_closed = core.release(&self.sums, ReleaseCounter::SHARED);
            if !is_closed {
                core.executors.free_all(&self.slots[..self.len]);
            }
            if let Some(numbers) = &core.numbers {
                numbers.retire_all(&self.numbers);
            }
            for agent in &self.agents[..self.len] {
                core.agents.release(*agent, 1);
            }
            *self = ReleaseBatch::new();
        }
    }
}

impl Sums {
    const ZERO: Sums = Sums {
        counted: 0,
        cores: MilliCpus::ZERO,
        gpus: 0,
        lower_limit_by: 0,
        invalidates_plans: false,
    };

    /// What one executor changes.
    #[inline(always)]
    fn of(core: &Core, ended: &Ended<'_>) -> Sums {
        let mut sums = Sums::ZERO;
        sums.add(core, ended);
        sums
    }

    /// Adds an executor. If it was counted as unreachable, it is no longer.
    #[inline(always)]
    fn add(&mut self, core: &Core, ended: &Ended<'_>) {
        let Ended { allocation, before, lowers_limit, invalidates_plans, .. } = ended;
        if before.counted_as_unreachable() {
            core.unreachable.fetch_sub(1, Ordering::Relaxed);
        }
        if before.counted() {
            let cores = allocation.resources.cores.millis();
            self.counted += 1;
            self.cores = MilliCpus::from_millis(self.cores.millis() + cores);
            self.gpus += u64::from(allocation.resources.gpus.get());
            // At once, and so before the counter: until that is changed, the caps leave less than the queue.
            core.release_queue(ended.queue, allocation.booked());
        }
        self.lower_limit_by += u32::from(*lowers_limit);
        self.invalidates_plans |= invalidates_plans;
    }
}

impl Core {
    /// Takes executors out of the shared sums. The executor limit is lowered first: a thread that sees the freed
    /// capacity must see the new limit, or it would fill it.
    ///
    /// Returns whether the kernel is closed. If not, the caller frees their cells, and the list of a later close sees
    /// these executors as vacant. Those of a closed kernel are kept, because they say how the listed executors ended.
    ///
    /// Then the caller retires their numbers, and last it counts them off their agents: a thread that finds an agent
    /// without executors and forgets it knows that no drain of a kernel that is still open lists any of them. They are
    /// not counted, and their cells don't say how they ended.
    #[must_use]
    #[inline(always)]
    fn release(&self, sums: &Sums, counter: ReleaseCounter) -> bool {
        if sums.invalidates_plans {
            self.policy.invalidate_plans(&self.admission);
        }
        if sums.lower_limit_by > 0 {
            self.policy.lower_limit(sums.lower_limit_by, &self.admission);
        }
        match sums.counted {
            0 => self.admission.is_closed_latest(),
            executors => self.subtract(counter, executors, sums.cores, sums.gpus),
        }
    }

    /// As [`Core::retire_number`]; `page` is that of the number, if it is known.
    #[inline(always)]
    fn retire_number_in(&self, page: Option<&Page>, sequence: u64) {
        match (&self.numbers, page) {
            (Some(numbers), Some(page)) => numbers.retire_in(page, sequence, 1),
            (Some(_), None) => self.retire_number(sequence),
            (None, _) => {}
        }
    }

    /// A number that was handed out is of no use any more: its executor has ended, or was not admitted.
    pub(crate) fn retire_number(&self, sequence: u64) {
        if let Some(numbers) = &self.numbers {
            numbers.retire(sequence, 1);
        }
    }

    /// Subtracts one allocation from the shared sums. Wakes the drain if it was the last one. Returns whether the
    /// kernel is closed.
    pub(crate) fn release_allocation(&self, allocation: &Allocation) -> bool {
        let gpus = u64::from(allocation.resources.gpus.get());
        self.subtract(ReleaseCounter::SHARED, 1, allocation.resources.cores, gpus)
    }

    #[inline]
    fn subtract(
        &self,
        counter: ReleaseCounter,
        executors: u32,
        cores: MilliCpus,
        gpus: u64,
    ) -> bool {
        self.gpus.release(gpus);
        let is_closed = self.admission.release(counter, executors, cores);
        if is_closed {
            self.wake_if_drained();
        }
        is_closed
    }

    /// Wakes the drain of a closed kernel if it counts no executor any more.
    #[cold]
    fn wake_if_drained(&self) {
        if self.admission.load().executors() == 0 {
            self.drain.wake();
        }
    }
}
