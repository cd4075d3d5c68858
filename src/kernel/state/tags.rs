//! The tags of tasks, by the cells of their executors. The table is made for the first task of a kernel, and a segment
//! of it for the first task in a segment of cells: kernels without tasks pay nothing.
//!
//! | word | thread | operation | ordering | pairs with |
//! |---|---|---|---|---|
//! | tag, then sequence | the handler that claimed the cell, between [`ExecutorCell::before_reserving`] and [`ExecutorCell::reserve`] | store | Relaxed | `reserve` publishes them |
//! | sequence, then tag | any, between two looks at the state of the cell, with an Acquire fence before the second | load | Relaxed | the first look: the tag is the executor's, or that of a later one; the fence of `before_reserving`: then the second look shows that the executor has ended |
//!
//! An executor without a tag leaves the entry of its cell as it is: the sequence number says whose tag it is.

use super::executors::ExecutorCell;
use super::slab::{SEGMENTS, length, place};
use crate::ids::ExecutorId;
use crate::sync::{AtomicU64, Ordering, UntrackedOnceLock};

/// The tag of the last task in a cell.
#[derive(Debug)]
struct TagEntry {
    sequence: AtomicU64,
    tag: AtomicU64,
}

impl Default for TagEntry {
    fn default() -> TagEntry {
        TagEntry { sequence: AtomicU64::new(u64::MAX), tag: AtomicU64::new(0) }
    }
}

/// Entries in segments like those of the executors' cells.
#[derive(Debug)]
pub(crate) struct TagTable(Box<[UntrackedOnceLock<Box<[TagEntry]>>]>);

impl TagTable {
    pub(crate) fn new() -> TagTable {
        TagTable(std::iter::repeat_with(UntrackedOnceLock::new).take(SEGMENTS).collect())
    }

    /// Sets the tag of the executor that is about to be reserved.
    pub(crate) fn set(&self, id: ExecutorId, tag: u64) {
        let (segment, offset) = place::<ExecutorCell>(id.slot);
        let made = || {
            let entries = std::iter::repeat_with(TagEntry::default);
            entries.take(length::<ExecutorCell>(segment)).collect()
        };
        let entry = self.0.get(segment).and_then(|segment| segment.get_or_init(made).get(offset));
        if let Some(entry) = entry {
            // Relaxed: the store of the executor's state publishes them.
            entry.tag.store(tag, Ordering::Relaxed);
            entry.sequence.store(id.sequence, Ordering::Relaxed);
        }
    }

    /// The tag of the executor, if it has one. See the module's head for when that holds.
    #[cold]
    pub(crate) fn get(&self, id: ExecutorId) -> Option<u64> {
        let (segment, offset) = place::<ExecutorCell>(id.slot);
        let entry = self.0.get(segment)?.get()?.get(offset)?;
        // Relaxed: see the module's head.
        let is_own = entry.sequence.load(Ordering::Relaxed) == id.sequence;
        is_own.then(|| entry.tag.load(Ordering::Relaxed))
    }
}
