//! A growing table of cells that never move, and the list of those that are free.
//!
//! Cells live in segments, each twice as long as the one before, so that an index finds its cell in a few
//! instructions and growing moves nothing. Cells are reused and never given back: the table is as large as the
//! most cells that were in use at a time.
//!
//! Free cells form a stack linked through the cells themselves.
//!
//! | word | who | does | ordering | pairs with |
//! |---|---|---|---|---|
//! | `head` | whoever frees a cell | push: compare-exchange | Release | `claim` |
//! | `head` | handler | claim: compare-exchange | Acquire | push: the cell's last user is done |
//! | `next` of a cell | whoever frees it | store | Relaxed | published by `head` |
//! | `grown` | handler | fetch-add | Relaxed | nothing: a number nobody else gets |
//!
//! `head` counts its changes in its upper half, so that a claim that slept through a cell's reuse fails. Growing may
//! wait for another thread that is allocating the same segment; nothing else waits.

use std::sync::OnceLock;

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The first segment's length, as a power of two.
const FIRST_BITS: u32 = crate::sync::SLAB_FIRST_BITS;
/// So many segments hold 2³² cells or nearly.
const SEGMENTS: usize = 27;
const NONE: u32 = u32::MAX;
const TAG_ONE: u64 = 1 << 32;

/// A cell that can be linked into the list of free ones.
pub(crate) trait Cell: Default {
    /// Where the cell keeps the index of the next free one. Its value is the list's own while the cell is free.
    fn next_free(&self) -> &AtomicU32;
}

#[derive(Debug)]
pub(crate) struct Slab<T> {
    segments: [OnceLock<Box<[T]>>; SEGMENTS],
    grown: AtomicU32,
    head: AtomicU64,
}

impl<T: Cell> Slab<T> {
    pub(crate) fn new() -> Slab<T> {
        Slab {
            segments: [const { OnceLock::new() }; SEGMENTS],
            grown: AtomicU32::new(0),
            head: AtomicU64::new(u64::from(NONE)),
        }
    }

    /// The cell at `index`, if there ever was one.
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let (segment, offset) = place(index);
        self.segments.get(segment)?.get()?.get(offset)
    }

    /// All cells that were ever in use, with their indices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        // Relaxed: a cell that comes into use meanwhile may be missed; its words say whether it is in use.
        let grown = self.grown.load(Ordering::Relaxed);
        (0..grown).filter_map(|index| Some((index, self.get(index)?)))
    }

    /// Takes `count` cells into use and appends their indices to `indices`. Returns `false`, with nothing taken, when
    /// the table is full.
    pub(crate) fn claim(&self, count: usize, indices: &mut Vec<u32>) -> bool {
        let wanted = indices.len() + count;
        while indices.len() < wanted {
            match self.pop() {
                Some(index) => indices.push(index),
                None => break,
            }
        }
        let missing = wanted - indices.len();
        if missing == 0 {
            return true;
        }
        match self.grow(missing) {
            Some(fresh) => {
                indices.extend(fresh);
                true
            }
            None => {
                for index in indices.drain(wanted - count..) {
                    self.free(index);
                }
                false
            }
        }
    }

    /// Puts a cell back that nobody uses any more.
    pub(crate) fn free(&self, index: u32) {
        let Some(cell) = self.get(index) else { return };
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // Relaxed: the exchange below publishes it.
            cell.next_free().store(head as u32, Ordering::Relaxed);
            let next = (head & !u64::from(NONE)).wrapping_add(TAG_ONE) | u64::from(index);
            // Release: pairs with the Acquire in `pop`.
            match self.head.compare_exchange_weak(head, next, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(current) => head = current,
            }
        }
    }

    fn pop(&self) -> Option<u32> {
        // Acquire: pairs with the Release in `free`, for the cell's `next` and for its last user's accesses.
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let index = head as u32;
            if index == NONE {
                return None;
            }
            // Relaxed: should the cell have been reused meanwhile, the tag differs and the exchange fails.
            let below = self.get(index)?.next_free().load(Ordering::Relaxed);
            let next = (head & !u64::from(NONE)).wrapping_add(TAG_ONE) | u64::from(below);
            match self.head.compare_exchange_weak(head, next, Ordering::Acquire, Ordering::Acquire)
            {
                Ok(_) => return Some(index),
                Err(current) => head = current,
            }
        }
    }

    fn grow(&self, count: usize) -> Option<std::ops::Range<u32>> {
        let count = u32::try_from(count).ok()?;
        let room = |grown: u32| grown.checked_add(count).filter(|end| place(*end).0 < SEGMENTS);
        let mut start = self.grown.load(Ordering::Relaxed);
        loop {
            let end = room(start)?;
            // Relaxed: the indices are nobody else's; the segments are published by their own locks.
            match self.grown.compare_exchange_weak(start, end, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(current) => start = current,
            }
        }
        let end = start + count;
        for segment in place(start).0..=place(end.saturating_sub(1)).0 {
            self.segments[segment].get_or_init(|| {
                let length = 1usize << (FIRST_BITS + segment as u32);
                std::iter::repeat_with(T::default).take(length).collect()
            });
        }
        Some(start..end)
    }
}

/// Which segment an index lies in, and where in it.
fn place(index: u32) -> (usize, usize) {
    let shifted = u64::from(index) + (1 << FIRST_BITS);
    let segment = shifted.ilog2() - FIRST_BITS;
    (segment as usize, (shifted - (1 << (segment + FIRST_BITS))) as usize)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Plain(AtomicU32);

    impl Cell for Plain {
        fn next_free(&self) -> &AtomicU32 {
            &self.0
        }
    }

    /// Goal: every index has a place of its own. Method: walk over the borders of segments.
    #[test]
    fn places_follow_each_other() {
        let mut expected = (0, 0);
        for index in 0..100_000u32 {
            assert_eq!(place(index), expected, "{index}");
            expected.1 += 1;
            if expected.1 == 1 << (FIRST_BITS + expected.0 as u32) {
                expected = (expected.0 + 1, 0);
            }
        }
    }

    /// Goal: cells are reused before the table grows. Method: claim, free and claim again.
    #[test]
    fn freed_cells_come_back_first() {
        let slab = Slab::<Plain>::new();
        let mut indices = Vec::new();
        assert!(slab.claim(1000, &mut indices));
        assert_eq!(indices, (0..1000).collect::<Vec<_>>());
        for index in [7, 900, 3] {
            slab.free(index);
        }
        let mut again = Vec::new();
        assert!(slab.claim(4, &mut again));
        assert_eq!(again, [3, 900, 7, 1000]);
        assert_eq!(slab.iter().count(), 1001);
    }
}
