//! Launches that the cluster manager has not been told of yet, so that no question and no kill overtakes one.
//!
//! An executor is in the kernel's books as soon as its batch is committed; its ACCEPT is made later, on the handler's
//! thread: commands are built before it, and each call may take long (a manager may write to a disk first). A cluster
//! that is asked by name in between doesn't know the executor and answers that it is gone; a kill does nothing. No
//! fixed time is enough for that, so the batches themselves are counted:
//!
//! | who | does | and then |
//! |---|---|---|
//! | handler | [`Launches::begin`]: no executor from the next number on is to be named | commits the batch in the kernel |
//! | | [`Batch::placed`]: of those numbers, only the batch's own | makes the ACCEPT calls |
//! | | drops the [`Batch`] when the last of them has returned | |
//! | control thread | finds executors in the kernel, *then* asks [`Launches::under_way`] about each | names the others in a call |
//!
//! An executor that the control thread has found was committed before, and so its batch had begun. Either the batch is
//! still here, and the executor waits; or all its ACCEPTs have returned before the question is asked. With a manager
//! that carries out calls in the order in which they were made, which the [seam](super::seam) demands, the guarantee is
//! exact, however slow the manager is. What waits is looked at again at each tick; a call that never returns holds up
//! the questions about its own batch alone.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::sync::{Mutex, MutexGuard, lock};
use crate::ids::ExecutorId;
use crate::kernel::{Decisions, Kernel};

/// The batches that are being answered. A clone is another handle on the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Launches(Arc<Mutex<Batches>>);

#[derive(Debug, Default)]
struct Batches {
    /// The number of the next batch.
    next: u64,
    /// By the batch's number: the sequence numbers that its executors have or may have.
    sequences: BTreeMap<u64, Range<u64>>,
}

/// A batch that is being answered, until it is dropped.
#[derive(Debug)]
pub(crate) struct Batch {
    launches: Launches,
    number: u64,
}

impl Launches {
    fn batches(&self) -> MutexGuard<'_, Batches> {
        lock(&self.0)
    }

    /// A batch is about to be committed.
    pub(crate) fn begin(&self, kernel: &Kernel) -> Batch {
        let mut batches = self.batches();
        let number = batches.next;
        batches.next += 1;
        batches.sequences.insert(number, kernel.next_sequence()..u64::MAX);
        Batch { launches: self.clone(), number }
    }

    /// Whether the call that launches this executor may still be to come. Ask after the executor was found in the
    /// kernel, and not before.
    pub(crate) fn under_way(&self, id: ExecutorId) -> bool {
        self.batches().sequences.values().any(|batch| batch.contains(&id.sequence()))
    }
}

impl Batch {
    /// The batch was committed: these are its executors.
    pub(crate) fn placed(&self, decisions: &Decisions) {
        let placed = || decisions.accepts().flat_map(|accepted| accepted.executors);
        let numbers = || placed().map(|executor| executor.id.sequence());
        let first = numbers().min().unwrap_or_default();
        let end = numbers().max().map_or(first, |last| last + 1);
        self.launches.batches().sequences.insert(self.number, first..end);
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.launches.batches().sequences.remove(&self.number);
    }
}
