//! The marks of executors, by their cells: the tags of tasks, and the queues that executors are booked in. The table is
//! made for the first mark of a kernel, and a segment of it for the first one in a segment of cells: kernels without
//! tasks and queues pay nothing.
//!
//! | word | thread | operation | ordering | pairs with |
//! |---|---|---|---|---|
//! | tag and kind, then sequence | the handler that claimed the cell, between [`ExecutorCell::before_reserving`] and [`ExecutorCell::reserve`] | store | Relaxed | `reserve` publishes them |
//! | sequence, then tag and kind | any, between two looks at the state of the cell, with an Acquire fence before the second | load | Relaxed | the first look: the tag is the executor's, or that of a later one; the fence of `before_reserving`: then the second look shows that the executor has ended |
//!
//! An executor without a mark leaves the entry of its cell as it is: the sequence number says whose mark it is.

use super::executors::ExecutorCell;
use super::slab::{SEGMENTS, length, place};
use crate::config::QueueId;
use crate::ids::ExecutorId;
use crate::sync::{AtomicU32, AtomicU64, Ordering, UntrackedOnceLock};

/// In `kind`: whether there is a tag, and above it the number of the queue plus 1, or 0.
const HAS_TAG: u32 = 1;
const QUEUE_SHIFT: u32 = 1;

/// What is known of an executor beside its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExecutorMark {
    /// Its tag, if it is a task.
    pub(crate) tag: Option<u64>,
    /// The queue that it is booked in.
    pub(crate) queue: Option<QueueId>,
}

impl ExecutorMark {
    fn kind(self) -> u32 {
        let queue = self.queue.map_or(0, |queue| u32::from(queue.number()) + 1);
        u32::from(self.tag.is_some()) * HAS_TAG | queue << QUEUE_SHIFT
    }

    fn of(kind: u32, tag: u64) -> ExecutorMark {
        let queue = (kind >> QUEUE_SHIFT).checked_sub(1).map(|number| QueueId::new(number as u8));
        ExecutorMark { tag: (kind & HAS_TAG != 0).then_some(tag), queue }
    }
}

/// The mark of the last executor in a cell that had one.
#[derive(Debug)]
struct TagEntry {
    sequence: AtomicU64,
    tag: AtomicU64,
    kind: AtomicU32,
}

impl Default for TagEntry {
    fn default() -> TagEntry {
        let (sequence, tag) = (AtomicU64::new(u64::MAX), AtomicU64::new(0));
        TagEntry { sequence, tag, kind: AtomicU32::new(0) }
    }
}

/// Entries in segments like those of the executors' cells.
#[derive(Debug)]
pub(crate) struct TagTable(Box<[UntrackedOnceLock<Box<[TagEntry]>>]>);

impl TagTable {
    pub(crate) fn new() -> TagTable {
        TagTable(std::iter::repeat_with(UntrackedOnceLock::new).take(SEGMENTS).collect())
    }

    /// Sets the mark of the executor that is about to be reserved.
    pub(crate) fn set(&self, id: ExecutorId, mark: ExecutorMark) {
        let (segment, offset) = place::<ExecutorCell>(id.slot);
        let made = || {
            let entries = std::iter::repeat_with(TagEntry::default);
            entries.take(length::<ExecutorCell>(segment)).collect()
        };
        let entry = self.0.get(segment).and_then(|segment| segment.get_or_init(made).get(offset));
        if let Some(entry) = entry {
            // Relaxed: the store of the executor's state publishes them.
            entry.tag.store(mark.tag.unwrap_or_default(), Ordering::Relaxed);
            entry.kind.store(mark.kind(), Ordering::Relaxed);
            entry.sequence.store(id.sequence, Ordering::Relaxed);
        }
    }

    /// The mark of the executor, if it has one. See the module's head for when that holds.
    #[cold]
    pub(crate) fn get(&self, id: ExecutorId) -> Option<ExecutorMark> {
        let (segment, offset) = place::<ExecutorCell>(id.slot);
        let entry = self.0.get(segment)?.get()?.get(offset)?;
        // Relaxed: see the module's head.
        let is_own = entry.sequence.load(Ordering::Relaxed) == id.sequence;
        is_own.then(|| {
            let tag = entry.tag.load(Ordering::Relaxed);
            ExecutorMark::of(entry.kind.load(Ordering::Relaxed), tag)
        })
    }
}
