//! Claims and finds cells of a [slab](super::slab), which has the table of orderings.

use super::slab::{Cells, NONE, STACKS, Slab, SlabCell, TAG_ONE, first, place};
use crate::sync::{AtomicU32, AtomicU64, Ordering, prefetch};

/// Claims and finds the cells of one thread's batch, which mostly lie in one segment: it looks there first, which takes
/// fewer instructions than [`Slab::get`], and more if the cell lies elsewhere.
#[derive(Debug)]
pub(crate) struct SlabCursor<'a, T: SlabCell> {
    slab: &'a Slab<T>,
    /// The index of the first cell of the segment found last.
    first: u32,
    cells: &'a [T],
    hints: &'a [T::Hint],
    links: &'a [AtomicU32],
}

impl<T: SlabCell> Slab<T> {
    /// For finding and claiming several cells.
    #[inline]
    pub(crate) fn cursor(&self) -> SlabCursor<'_, T> {
        SlabCursor { slab: self, first: 0, cells: &[], hints: &[], links: &[] }
    }

    /// [`Slab::claim_from`] without a preference.
    pub(crate) fn claim(&self, count: usize, indices: &mut Vec<u32>) -> bool {
        self.claim_from(0, count, indices)
    }

    /// [`SlabCursor::claim_from`].
    pub(crate) fn claim_from(&self, stack: u32, count: usize, indices: &mut Vec<u32>) -> bool {
        self.cursor().claim_from(stack, count, indices)
    }
}

impl<'a, T: SlabCell> SlabCursor<'a, T> {
    /// [`Slab::get`].
    #[inline]
    pub(crate) fn get(&mut self, index: u32) -> Option<&'a T> {
        match self.cells.get(self.offset(index)) {
            Some(cell) => Some(cell),
            None => {
                let offset = self.find(index)?;
                self.cells.get(offset)
            }
        }
    }

    /// [`Slab::get_with_hint`].
    #[inline]
    pub(crate) fn get_with_hint(&mut self, index: u32) -> Option<(&'a T, &'a T::Hint)> {
        let offset = self.offset(index);
        match (self.cells.get(offset), self.hints.get(offset)) {
            (Some(cell), Some(hint)) => Some((cell, hint)),
            _ => {
                let offset = self.find(index)?;
                Some((self.cells.get(offset)?, self.hints.get(offset)?))
            }
        }
    }

    /// Returns the cell at `index` and its link, if their segment is allocated.
    #[inline]
    fn get_with_link(&mut self, index: u32) -> Option<(&'a T, &'a AtomicU32)> {
        let offset = self.offset(index);
        match (self.cells.get(offset), self.links.get(offset)) {
            (Some(cell), Some(link)) => Some((cell, link)),
            _ => {
                let offset = self.find(index)?;
                Some((self.cells.get(offset)?, self.links.get(offset)?))
            }
        }
    }

    /// Claims `count` cells and appends their indices to `indices`. If the table is full, returns `false` and claims
    /// nothing.
    pub(crate) fn claim_from(&mut self, stack: u32, count: usize, indices: &mut Vec<u32>) -> bool {
        let start = indices.len();
        let wanted = start + count;
        for step in 0..STACKS {
            let head = &self.slab.heads[(stack as usize + step) % STACKS];
            while indices.len() < wanted && self.pop(head, wanted, indices) {}
            if indices.len() == wanted {
                break;
            }
        }
        let whole = indices.len() == wanted || self.claim_fresh(wanted, indices);
        for index in &indices[start..] {
            if let Some((cell, link)) = self.get_with_link(*index) {
                // Relaxed: a thread that frees the cell has seen it in use.
                link.store(stack, Ordering::Relaxed);
                // It will be written soon.
                prefetch(cell);
            }
        }
        if !whole {
            indices.drain(start..).for_each(|index| self.slab.free(index));
        }
        whole
    }

    /// Claims cells that were never used until there are `wanted` indices. Returns `false` if the table is full.
    #[cold]
    fn claim_fresh(&self, wanted: usize, indices: &mut Vec<u32>) -> bool {
        let fresh = self.slab.grow(wanted - indices.len());
        let whole = fresh.is_some();
        indices.extend(fresh.unwrap_or_default());
        whole
    }

    /// Pops cells off a stack until there are `wanted` indices. Returns whether there was any. Pops fewer if other
    /// threads use the stack: the more cells it reads, the more likely is a change meanwhile.
    fn pop(&mut self, head: &AtomicU64, wanted: usize, indices: &mut Vec<u32>) -> bool {
        let start = indices.len();
        let mut most = wanted - start;
        // Acquire: pairs with the Release in `push`, for the cells' links and for their last users' accesses.
        let mut word = head.load(Ordering::Acquire);
        loop {
            let mut below = word as u32;
            while below != NONE && indices.len() - start < most {
                // If cells were reused meanwhile, this may be any number; then the exchange fails.
                let Some((_, link)) = self.get_with_link(below) else { break };
                indices.push(below);
                below = link.load(Ordering::Relaxed);
            }
            if indices.len() == start {
                return false;
            }
            let next = (word & !u64::from(NONE)).wrapping_add(TAG_ONE) | u64::from(below);
            match head.compare_exchange_weak(word, next, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return true,
                Err(current) => word = current,
            }
            indices.truncate(start);
            most = most.div_ceil(2);
        }
    }

    /// Where a cell is in the segment, if it is there.
    #[inline]
    fn offset(&self, index: u32) -> usize {
        index.wrapping_sub(self.first) as usize
    }

    /// Looks into the segment of a cell from now on, if that is allocated. Returns where the cell is there.
    #[inline(never)]
    fn find(&mut self, index: u32) -> Option<usize> {
        let (segment, offset) = place::<T>(index);
        let Cells { cells, hints, links, .. } = self.slab.segment(segment)?;
        (self.first, self.cells, self.hints, self.links) =
            (first::<T>(segment), cells, hints, links);
        Some(offset)
    }
}
