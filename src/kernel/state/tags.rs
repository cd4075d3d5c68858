//! The marks of executors, by their cells: the tags of tasks, and the queues that executors are booked in. The table is
//! made for the first mark of a kernel, and a segment of it for the first one in a segment of cells: kernels without
//! tasks and queues pay nothing.
//!
//! | word | thread | operation | ordering | pairs with |
//! |---|---|---|---|---|
//! | tag, then sequence and kind | the handler that claimed the cell, between [`ExecutorCell::before_reserving`] and [`ExecutorCell::reserve`] | store | Relaxed | `reserve` publishes them |
//! | sequence and kind, then tag | any, between two looks at the state of the cell, with an Acquire fence before the second | load | Relaxed | the first look: the tag is the executor's, or that of a later one; the fence of `before_reserving`: then the second look shows that the executor has ended |
//!
//! An executor without a mark leaves the entry of its cell as it is: the sequence number says whose mark it is.

use super::executor_state::SEQUENCE_MAX;
use super::executors::ExecutorCell;
use super::slab::{SEGMENTS, first, length, place};
use crate::config::QueueId;
use crate::ids::ExecutorId;
use crate::limits::QUEUES_MAX;
use crate::sync::{AtomicU64, Ordering, UntrackedOnceLock, prefetch};

/// Above the sequence number: whether there is a tag, and above that the number of the queue plus 1, or 0.
const TAG_SHIFT: u32 = 55;
const QUEUE_SHIFT: u32 = TAG_SHIFT + 1;
const SEQUENCE_MASK: u64 = (1 << TAG_SHIFT) - 1;
const _: () = assert!(SEQUENCE_MAX < SEQUENCE_MASK && QUEUES_MAX < 1 << (64 - QUEUE_SHIFT));

/// What is known of an executor beside its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExecutorMark {
    /// Its tag, if it is a task.
    pub(crate) tag: Option<u64>,
    /// The queue that it is booked in.
    pub(crate) queue: Option<QueueId>,
}

impl ExecutorMark {
    /// The word for the executor with this sequence number.
    fn word(self, sequence: u64) -> u64 {
        let queue = self.queue.map_or(0, |queue| u64::from(queue.number()) + 1);
        sequence | u64::from(self.tag.is_some()) << TAG_SHIFT | queue << QUEUE_SHIFT
    }

    fn of(word: u64, tag: u64) -> ExecutorMark {
        let queue = (word >> QUEUE_SHIFT).checked_sub(1).map(|number| QueueId::new(number as u8));
        ExecutorMark { tag: (word >> TAG_SHIFT & 1 != 0).then_some(tag), queue }
    }
}

/// The mark of the last executor in a cell that had one.
#[derive(Debug)]
struct TagEntry {
    /// Its sequence number, and what kind of mark it is.
    sequence: AtomicU64,
    tag: AtomicU64,
}

impl Default for TagEntry {
    fn default() -> TagEntry {
        TagEntry { sequence: AtomicU64::new(u64::MAX), tag: AtomicU64::new(0) }
    }
}

/// Sets marks of one thread's executors, whose entries mostly lie in one segment: it looks there first.
#[derive(Debug)]
pub(crate) struct TagCursor<'a> {
    table: &'a TagTable,
    /// The cell of the first entry of the segment found last.
    first: u32,
    entries: &'a [TagEntry],
}

impl TagCursor<'_> {
    /// Sets the mark of an executor that is about to be reserved in a cell of this thread's.
    #[inline]
    pub(crate) fn set(&mut self, id: ExecutorId, mark: ExecutorMark) {
        let near = self.entries.get(id.slot.wrapping_sub(self.first) as usize);
        let Some(entry) = near.or_else(|| self.find(id.slot)) else { return };
        // Relaxed: the store of the executor's state publishes them.
        entry.tag.store(mark.tag.unwrap_or_default(), Ordering::Relaxed);
        entry.sequence.store(mark.word(id.sequence), Ordering::Relaxed);
    }
}

impl<'a> TagCursor<'a> {
    #[inline(never)]
    fn find(&mut self, slot: u32) -> Option<&'a TagEntry> {
        let (segment, offset) = place::<ExecutorCell>(slot);
        let made = || {
            let entries = std::iter::repeat_with(TagEntry::default);
            entries.take(length::<ExecutorCell>(segment)).collect()
        };
        let entries = self.table.0.get(segment)?.get_or_init(made);
        (self.first, self.entries) = (first::<ExecutorCell>(segment), entries);
        self.entries.get(offset)
    }
}

/// Entries in segments like those of the executors' cells.
#[derive(Debug)]
pub(crate) struct TagTable(Box<[UntrackedOnceLock<Box<[TagEntry]>>]>);

impl TagTable {
    pub(crate) fn new() -> TagTable {
        TagTable(std::iter::repeat_with(UntrackedOnceLock::new).take(SEGMENTS).collect())
    }

    /// For setting the marks of executors that are about to be reserved.
    #[inline]
    pub(crate) fn cursor(&self) -> TagCursor<'_> {
        TagCursor { table: self, first: 0, entries: &[] }
    }

    /// The entry of the cell with this index, if there is a mark in its segment.
    #[inline]
    fn entry(&self, slot: u32) -> Option<&TagEntry> {
        let (segment, offset) = place::<ExecutorCell>(slot);
        self.0.get(segment)?.get()?.get(offset)
    }

    /// Asks memory for the mark of the executor in the cell with this index.
    #[inline]
    pub(crate) fn prefetch(&self, slot: u32) {
        if let Some(entry) = self.entry(slot) {
            prefetch(entry);
        }
    }

    /// The mark of the executor, if it has one. See the module's head for when that holds.
    #[cold]
    pub(crate) fn get(&self, id: ExecutorId) -> Option<ExecutorMark> {
        let entry = self.entry(id.slot)?;
        // Relaxed: see the module's head.
        let word = entry.sequence.load(Ordering::Relaxed);
        let is_own = word & SEQUENCE_MASK == id.sequence;
        is_own.then(|| ExecutorMark::of(word, entry.tag.load(Ordering::Relaxed)))
    }
}
