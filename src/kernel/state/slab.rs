//! A slab: a growing table of cells that never move, with lists of the free ones.
//!
//! Cells live in segments, so that an index finds its cell in a few instructions and growing moves nothing. Each
//! segment is twice as long as the one before, up to 65 536 cells of a line (4 MiB), or fewer that are
//! [larger](SlabCell::LINES_BITS); all further ones have that length. Cells are
//! reused and never deallocated: the table is as large as the most cells that were in use at a time, plus at most one
//! segment.
//!
//! Free cells form stacks, linked through words beside the cells, 16 to a cache line: a claim that goes down a stack
//! waits for each link before the next one, and so for as few lines as possible. There are several stacks, each on its
//! own line. A claim names the stack that it prefers, and the cells that it gets return there, so that threads with
//! different preferences don't contend. A claim takes all it needs from a stack at once, and tries the other stacks
//! before the table grows.
//!
//! | word | thread | operation | ordering | pairs with |
//! |---|---|---|---|---|
//! | `head` of a stack | any that frees a cell | push: compare-exchange | Release | `claim` |
//! | `head` of a stack | handler | claim: compare-exchange | Acquire | pushes: the cells' last users are done |
//! | `link` of a free cell | the thread that frees it | store | Relaxed | published by `head` |
//! | `link` of a claimed cell | the thread that claimed it | store: its stack | Relaxed | published by what publishes the cell's use |
//! | `cell_count` | handler | compare-exchange | Relaxed | nothing: the numbers are unique |
//! | `next_stack` | a new handler | fetch-add | Relaxed | nothing: a preference |
//!
//! The upper half of `head` counts its changes, so that a claim fails if the cells were reused while it was going down
//! the stack, whatever it read there. Every change of `head` is a read-modify-write, so the Acquire of a claim pairs
//! with all pushes below, not only with the last one.
//!
//! A claim allocates only if no free cell is left and the next cell is the first of a segment that is not allocated
//! yet; other claims that need the same segment wait for it. [`Slab::grow_ahead`], which the kernel's tick calls,
//! allocates the next segment when three quarters of the last one are in use, so that a claim allocates only if the
//! table grows by a quarter of its last segment between two ticks. Nothing else waits.

use std::fmt;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU32, AtomicU64, Ordering, UntrackedOnceLock};

/// The length of the first segment in lines, as a power of two.
const FIRST_BITS: u32 = crate::sync::SLAB_FIRST_BITS;
/// The length of the longest segments in lines, as a power of two.
const LONGEST_BITS: u32 = crate::sync::SLAB_LONGEST_BITS;
/// The number of segments whose lengths double, up to the first of the longest.
const DOUBLING: usize = (LONGEST_BITS - FIRST_BITS) as usize + 1;
/// The maximum number of further segments: room for at least 2²⁶ cells of a line.
const FURTHER: usize = 1 << (crate::sync::SLAB_CELLS_BITS - LONGEST_BITS);
/// The maximum number of segments.
pub(super) const SEGMENTS: usize = DOUBLING + FURTHER;
/// The number of stacks of free cells.
pub(super) const STACKS: usize = if cfg!(all(loom, test)) { 2 } else { 8 };
pub(super) const NONE: u32 = u32::MAX;
pub(super) const TAG_ONE: u64 = 1 << 32;

/// A cell of a slab.
pub(crate) trait SlabCell: Default {
    /// What is kept of a cell in an array of its own, so that a search through all cells reads little memory; `()` if
    /// there is nothing.
    type Hint: Default;

    /// What else lies beside the cells of a segment, at the same offsets; `()` if there is nothing.
    type Beside: Beside;

    /// The size of a cell in cache lines, as a power of two, rounded up.
    const LINES_BITS: u32 = 0;

    /// Called before the cell is freed: clears what its last user left.
    fn reset(&self) {}
}

/// Memory beside the cells of a segment.
pub(crate) trait Beside {
    /// Makes it for this number of cells.
    fn new(cells: usize) -> Self;
}

impl Beside for () {
    fn new(_: usize) {}
}

/// The cells of a segment and, at the same offsets, their hints and links.
pub(super) struct Cells<T: SlabCell> {
    pub(super) cells: Box<[T]>,
    pub(super) hints: Box<[T::Hint]>,
    /// The index of the next free cell or, while the cell is in use, the stack that it returns to.
    pub(super) links: Box<[AtomicU32]>,
    beside: T::Beside,
}

type Segment<T> = UntrackedOnceLock<Cells<T>>;

/// Cells that are to be freed to one stack, linked as free ones are.
#[derive(Debug)]
struct FreedChain {
    stack: u32,
    bottom: u32,
    top: u32,
    len: u32,
}

impl FreedChain {
    const EMPTY: FreedChain = FreedChain { stack: 0, bottom: NONE, top: NONE, len: 0 };
}

pub(crate) struct Slab<T: SlabCell> {
    segments: [Segment<T>; DOUBLING],
    further: UntrackedOnceLock<Box<[Segment<T>]>>,
    /// The number of cells ever in use. Not beside the segments, which are read with each access.
    cell_count: CachePadded<AtomicU32>,
    next_stack: AtomicU32,
    pub(super) heads: [CachePadded<AtomicU64>; STACKS],
}

impl<T: SlabCell> fmt::Debug for Slab<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab").field("cell_count", &self.cell_count).finish_non_exhaustive()
    }
}

impl<T: SlabCell> Slab<T> {
    pub(crate) fn new() -> Slab<T> {
        Slab {
            segments: std::array::from_fn(|_| Segment::new()),
            further: UntrackedOnceLock::new(),
            cell_count: CachePadded::new(AtomicU32::new(0)),
            next_stack: AtomicU32::new(0),
            heads: std::array::from_fn(|_| CachePadded::new(AtomicU64::new(u64::from(NONE)))),
        }
    }

    /// Returns a stack that a new handler should prefer.
    pub(crate) fn assign_stack(&self) -> u32 {
        self.next_stack.fetch_add(1, Ordering::Relaxed) % STACKS as u32
    }

    /// Returns the cell at `index`, if its segment is allocated.
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let (segment, offset) = place::<T>(index);
        self.segment(segment)?.cells.get(offset)
    }

    /// Returns the cell at `index` and its hint, if their segment is allocated.
    pub(crate) fn get_with_hint(&self, index: u32) -> Option<(&T, &T::Hint)> {
        let (segment, offset) = place::<T>(index);
        let segment = self.segment(segment)?;
        Some((segment.cells.get(offset)?, segment.hints.get(offset)?))
    }

    /// Returns the cell at `index`, what lies beside its segment, and its offset there, if the segment is allocated.
    #[inline]
    pub(crate) fn get_with_beside(&self, index: u32) -> Option<(&T, &T::Beside, usize)> {
        let (segment, offset) = place::<T>(index);
        let segment = self.segment(segment)?;
        Some((segment.cells.get(offset)?, &segment.beside, offset))
    }

    /// Returns the cell at `index` and its link, if their segment is allocated.
    #[inline]
    fn get_with_link(&self, index: u32) -> Option<(&T, &AtomicU32)> {
        let (segment, offset) = place::<T>(index);
        let segment = self.segment(segment)?;
        Some((segment.cells.get(offset)?, segment.links.get(offset)?))
    }

    /// The link of the cell at `index`, likewise.
    #[inline]
    fn link(&self, index: u32) -> Option<&AtomicU32> {
        let (segment, offset) = place::<T>(index);
        self.segment(segment)?.links.get(offset)
    }

    pub(super) fn segment(&self, segment: usize) -> Option<&Cells<T>> {
        let segment = match self.segments.get(segment) {
            Some(segment) => segment,
            None => self.further.get()?.get(segment - DOUBLING)?,
        };
        segment.get()
    }

    /// The cells that were ever in use and whose hints `is_wanted` accepts, with their indices.
    pub(crate) fn search(
        &self,
        is_wanted: impl Fn(&T::Hint) -> bool + Copy,
    ) -> impl Iterator<Item = (u32, &T)> {
        // Relaxed: as in `iter`.
        let cell_count = self.cell_count.load(Ordering::Relaxed);
        let last = place::<T>(cell_count.saturating_sub(1)).0;
        let segments = (0..=last).filter_map(|segment| Some((segment, self.segment(segment)?)));
        let found = segments.flat_map(move |(segment, Cells { cells, hints, .. })| {
            let hints = hints.iter().enumerate().filter(move |(_, hint)| is_wanted(hint));
            hints.filter_map(move |(at, _)| Some((first::<T>(segment) + at as u32, cells.get(at)?)))
        });
        found.filter(move |(index, _)| *index < cell_count)
    }

    /// Allocates the next segment if little of the last one is unused, so that claims needn't.
    pub(crate) fn grow_ahead(&self) {
        // Relaxed: a hint; claims allocate what is missing.
        let cell_count = self.cell_count.load(Ordering::Relaxed);
        let (segment, offset) = place::<T>(cell_count);
        if offset == 0 && cell_count > 0 {
            // The last segment is exactly full: this one is next.
            self.allocate(segment);
        }
        if length::<T>(segment) - offset <= length::<T>(segment) / 4 {
            self.allocate(segment + 1);
        }
    }

    /// The words beside the cells: the heads of the stacks and the number of cells.
    #[cfg(all(counting, test))]
    pub(crate) fn words(&self) -> (impl Iterator<Item = &AtomicU64>, &AtomicU32) {
        (self.heads.iter().map(|head| &**head), &self.cell_count)
    }

    /// The segments' pointers, which are read with each access.
    #[cfg(all(counting, test))]
    pub(crate) fn segments(&self) -> &impl Sized {
        &self.segments
    }

    /// The links of all cells, in use or not.
    #[cfg(all(counting, test))]
    pub(crate) fn links(&self) -> impl Iterator<Item = &AtomicU32> {
        let segments = (0..).map_while(|segment| self.segment(segment));
        segments.flat_map(|segment| &segment.links)
    }

    /// The hints of all cells, in use or not.
    #[cfg(all(counting, test))]
    pub(crate) fn hints(&self) -> impl Iterator<Item = &T::Hint> {
        let segments = (0..).map_while(|segment| self.segment(segment));
        segments.flat_map(|segment| &segment.hints)
    }

    /// What lies beside all segments.
    #[cfg(all(counting, test))]
    pub(crate) fn beside(&self) -> impl Iterator<Item = &T::Beside> {
        let segments = (0..).map_while(|segment| self.segment(segment));
        segments.map(|segment| &segment.beside)
    }

    /// All cells that were ever in use, with their indices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.iter_segments().flat_map(|(indices, Cells { cells, .. })| indices.zip(cells))
    }

    /// All segments, with the indices of their cells that were ever in use and of those that follow.
    fn iter_segments(&self) -> impl Iterator<Item = (std::ops::Range<u32>, &Cells<T>)> {
        // Relaxed: cells that come into use meanwhile may be missed; a cell's words say whether it is in use.
        let cell_count = self.cell_count.load(Ordering::Relaxed);
        let last = place::<T>(cell_count.saturating_sub(1)).0;
        (0..=last).filter_map(move |segment| {
            Some((first::<T>(segment)..cell_count, self.segment(segment)?))
        })
    }

    /// [`Slab::iter`], with what [`Slab::get_with_beside`] returns.
    pub(crate) fn iter_with_beside(&self) -> impl Iterator<Item = (u32, (&T, &T::Beside, usize))> {
        self.iter_segments().flat_map(|(indices, Cells { cells, beside, .. })| {
            let cells = cells.iter().enumerate();
            indices.zip(cells).map(move |(index, (offset, cell))| (index, (cell, beside, offset)))
        })
    }

    /// All cells that were ever in use, with their hints and what [`Slab::get_with_beside`] returns, in the order of
    /// their indices. None for a cell whose segment is being allocated.
    pub(crate) fn iter_with_hints_and_beside(
        &self,
    ) -> impl Iterator<Item = Option<(&T, &T::Hint, &T::Beside, usize)>> {
        // Relaxed: as in `iter`.
        let cell_count = self.cell_count.load(Ordering::Relaxed);
        let (mut segment, mut start, mut end) = (None, 0, 0);
        (0..cell_count).map(move |index| {
            if index == end {
                let (number, _) = place::<T>(index);
                (segment, start, end) = (self.segment(number), index, first::<T>(number + 1));
            }
            let Cells { cells, hints, beside, .. } = segment?;
            let offset = (index - start) as usize;
            Some((cells.get(offset)?, hints.get(offset)?, beside, offset))
        })
    }

    /// Frees a cell.
    pub(crate) fn free(&self, index: u32) {
        if let Some(cell) = self.get(index) {
            self.free_cell(cell, index);
        }
    }

    /// Frees `cell`, which is the one at `index`.
    #[inline]
    pub(crate) fn free_cell(&self, cell: &T, index: u32) {
        cell.reset();
        let Some(link) = self.link(index) else { return };
        // Relaxed: written by the thread that claimed the cell.
        self.push(link.load(Ordering::Relaxed), link, index);
    }

    /// Frees cells, each to its stack. Successive cells of one stack are pushed together; the last one ends up on top.
    pub(crate) fn free_all(&self, indices: &[u32]) {
        let mut chain = FreedChain::EMPTY;
        for index in indices {
            if let Some((cell, link)) = self.get_with_link(*index) {
                self.chain(cell, link, *index, &mut chain);
            }
        }
        self.free_chain(&mut chain);
    }

    /// Puts `cell`, which is the one at `index` and has this link, on top of a chain of cells that are to be freed.
    /// Frees what is in the chain first, if the cell returns to another stack.
    #[inline]
    fn chain(&self, cell: &T, link: &AtomicU32, index: u32, chain: &mut FreedChain) {
        cell.reset();
        // Relaxed: written by the thread that claimed the cell.
        let stack = link.load(Ordering::Relaxed);
        if chain.len > 0 && chain.stack != stack {
            self.free_chain(chain);
        }
        if chain.len > 0 {
            // Relaxed: the exchange in `push` publishes it.
            link.store(chain.top, Ordering::Relaxed);
        } else {
            (chain.stack, chain.bottom) = (stack, index);
        }
        chain.top = index;
        chain.len += 1;
    }

    /// Frees the cells of a chain, with one exchange.
    fn free_chain(&self, chain: &mut FreedChain) {
        let FreedChain { stack, bottom, top, len } = std::mem::replace(chain, FreedChain::EMPTY);
        if len > 0
            && let Some(bottom) = self.link(bottom)
        {
            self.push(stack, bottom, top);
        }
    }

    /// Pushes a chain of cells onto a stack; `bottom` is the link of the lowest of them.
    #[inline]
    fn push(&self, stack: u32, bottom: &AtomicU32, top: u32) {
        let head = &self.heads[stack as usize % STACKS];
        let mut word = head.load(Ordering::Relaxed);
        loop {
            // Relaxed: the exchange below publishes it.
            bottom.store(word as u32, Ordering::Relaxed);
            let next = (word & !u64::from(NONE)).wrapping_add(TAG_ONE) | u64::from(top);
            // Release: pairs with the Acquire in the cursor's `pop`.
            match head.compare_exchange_weak(word, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(current) => word = current,
            }
        }
    }

    pub(super) fn grow(&self, count: usize) -> Option<std::ops::Range<u32>> {
        let count = u32::try_from(count).ok()?;
        let is_room = |end: &u32| place::<T>(*end).0 < DOUBLING + FURTHER;
        let room = |cell_count: u32| cell_count.checked_add(count).filter(is_room);
        let mut start = self.cell_count.load(Ordering::Relaxed);
        loop {
            let end = room(start)?;
            // Relaxed: the indices are unique; the segments are published by their own locks.
            match self.cell_count.compare_exchange_weak(
                start,
                end,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(current) => start = current,
            }
        }
        let end = start + count;
        (place::<T>(start).0..=place::<T>(end.saturating_sub(1)).0)
            .for_each(|at| self.allocate(at));
        Some(start..end)
    }

    /// Allocates the segment with this number, unless it is allocated or beyond the maximum.
    fn allocate(&self, segment: usize) {
        let place = match self.segments.get(segment) {
            Some(segment) => Some(segment),
            None => {
                let all = || std::iter::repeat_with(Segment::new).take(FURTHER).collect();
                self.further.get_or_init(all).get(segment - DOUBLING)
            }
        };
        if let Some(place) = place {
            let length = length::<T>(segment);
            place.get_or_init(|| Cells {
                cells: std::iter::repeat_with(T::default).take(length).collect(),
                hints: std::iter::repeat_with(T::Hint::default).take(length).collect(),
                links: std::iter::repeat_with(|| AtomicU32::new(0)).take(length).collect(),
                beside: T::Beside::new(length),
            });
        }
    }
}

/// The number of cells in the first segment, as a power of two.
const fn first_bits<T: SlabCell>() -> u32 {
    FIRST_BITS - T::LINES_BITS
}

/// The number of cells in the longest segments, as a power of two.
const fn longest_bits<T: SlabCell>() -> u32 {
    LONGEST_BITS - T::LINES_BITS
}

/// The number of cells in a segment.
pub(super) fn length<T: SlabCell>(segment: usize) -> usize {
    1 << (first_bits::<T>() + segment as u32).min(longest_bits::<T>())
}

/// The index of the first cell in a segment.
pub(super) fn first<T: SlabCell>(segment: usize) -> u32 {
    let shortest = 1 << first_bits::<T>();
    let doubled = (1u32 << (first_bits::<T>() + segment.min(DOUBLING) as u32)) - shortest;
    doubled + ((segment.saturating_sub(DOUBLING) as u32) << longest_bits::<T>())
}

/// The segment of an index and its offset in the segment.
#[inline]
pub(super) fn place<T: SlabCell>(index: u32) -> (usize, usize) {
    let shifted = u64::from(index) + (1 << first_bits::<T>());
    let beyond = shifted.checked_sub(2 << longest_bits::<T>());
    match beyond {
        None => {
            let segment = shifted.ilog2() - first_bits::<T>();
            (segment as usize, (shifted - (1 << (segment + first_bits::<T>()))) as usize)
        }
        Some(beyond) => {
            let segment = DOUBLING + (beyond >> longest_bits::<T>()) as usize;
            (segment, (beyond & ((1 << longest_bits::<T>()) - 1)) as usize)
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Plain;

    impl SlabCell for Plain {
        type Hint = ();
        type Beside = ();
    }

    /// Goal: the next segment is allocated before it is needed. Method: claim cells one by one and call `grow_ahead`
    /// after each: no claim finds its segment missing, except the first. Nothing is allocated while much is left.
    #[test]
    fn a_table_that_looks_ahead_is_never_short() {
        let slab = Slab::<Plain>::new();
        let mut indices = Vec::new();
        for claimed in 0..300_000u32 {
            let (segment, offset) = place::<Plain>(claimed);
            assert!(claimed == 0 || slab.get(claimed).is_some(), "{claimed} is not there");
            assert!(slab.claim(1, &mut indices));
            slab.grow_ahead();
            let next = slab.get(claimed + (length::<Plain>(segment) - offset) as u32).is_some();
            assert_eq!(next, offset + 1 >= length::<Plain>(segment) / 4 * 3, "after {claimed}");
        }
    }

    /// Goal: a segment that was filled between two calls of `grow_ahead` is followed by the next. Method: claim all its
    /// cells at once.
    #[test]
    fn a_full_segment_is_followed() {
        let slab = Slab::<Plain>::new();
        slab.grow_ahead();
        assert!(slab.get(0).is_none(), "nothing is allocated for nobody");
        assert!(slab.claim(1 << FIRST_BITS, &mut Vec::new()));
        slab.grow_ahead();
        assert!(slab.get(1 << FIRST_BITS).is_some());
    }

    /// A cell of more than 16 lines.
    #[derive(Default)]
    struct Large;

    impl SlabCell for Large {
        type Hint = ();
        type Beside = ();
        const LINES_BITS: u32 = 5;
    }

    fn walk<T: SlabCell>(cells: u32) {
        let mut expected = (0, 0);
        for index in 0..cells {
            assert_eq!(place::<T>(index), expected, "{index}");
            assert_eq!(first::<T>(expected.0) + expected.1 as u32, index);
            expected.1 += 1;
            if expected.1 == length::<T>(expected.0) {
                expected = (expected.0 + 1, 0);
            }
        }
    }

    /// Goal: every index has its own place. Method: walk over the borders of segments, of cells of a line and of larger
    /// ones.
    #[test]
    fn places_follow_each_other() {
        walk::<Plain>(500_000);
        walk::<Large>(20_000);
    }

    /// Goal: cells that are freed together are claimed one by one, each from the stack that it came from. Method: free
    /// the cells of two stacks in one call, in runs of different lengths; claim with both preferences.
    #[test]
    fn cells_freed_together_lie_as_if_freed_one_by_one() {
        let slab = Slab::<Plain>::new();
        let (mut mine, mut yours) = (Vec::new(), Vec::new());
        assert!(slab.claim_from(0, 5, &mut mine) && slab.claim_from(1, 5, &mut yours));
        slab.free_all(&[0, 1, 2, 5, 3, 6, 7, 8, 9, 4, 1_000_000]);
        let claimed = |stack, count| {
            let mut indices = Vec::new();
            assert!(slab.claim_from(stack, count, &mut indices));
            indices
        };
        assert_eq!(claimed(1, 5), [9, 8, 7, 6, 5]);
        assert_eq!(claimed(0, 6), [4, 3, 2, 1, 0, 10]);
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

    /// Goal: a search finds the cells that were ever in use, and no other. Method: one that wants all, after claims of
    /// different lengths.
    #[test]
    fn a_search_ends_where_the_cells_do() {
        let slab = Slab::<Plain>::new();
        assert_eq!(slab.search(|()| true).count(), 0);
        for claimed in [1, 2, (1 << FIRST_BITS) - 1, 1 << FIRST_BITS, (1 << FIRST_BITS) + 1] {
            let missing = claimed - slab.iter().count();
            assert!(slab.claim(missing, &mut Vec::new()));
            let found: Vec<u32> = slab.search(|()| true).map(|(index, _)| index).collect();
            assert_eq!(found, (0..claimed as u32).collect::<Vec<_>>());
        }
    }

    /// Goal: free cells are claimed before others, also behind what the list has. Method: free ones of two stacks are
    /// claimed with indices of other tables in the list.
    #[test]
    fn free_cells_are_claimed_behind_others() {
        let slab = Slab::<Plain>::new();
        let (mut mine, mut yours) = (Vec::new(), Vec::new());
        assert!(slab.claim_from(0, 5, &mut mine) && slab.claim_from(1, 5, &mut yours));
        slab.free_all(&[mine, yours].concat());
        let mut indices = vec![77; 100];
        assert!(slab.claim_from(0, 9, &mut indices));
        assert_eq!(indices.len(), 109);
        assert!(indices[..100].iter().all(|index| *index == 77));
        assert!(indices[100..].iter().all(|index| *index < 10), "{:?}", &indices[100..]);
        assert_eq!(slab.iter().count(), 10);
    }

    /// Goal: each change of a stack is counted beside it, so that a claim that began before fails. Method: the words of
    /// a stack whose top is the same after a claim and a release.
    #[test]
    fn each_change_of_a_stack_is_counted() {
        let slab = Slab::<Plain>::new();
        assert!(slab.claim(2, &mut Vec::new()));
        slab.free(0);
        let mut last = slab.heads[0].load(Ordering::Relaxed);
        for _ in 0..3 {
            assert!(slab.claim(1, &mut Vec::new()));
            slab.free(0);
            let now = slab.heads[0].load(Ordering::Relaxed);
            assert_eq!((now as u32, now >> 32), (0, (last >> 32) + 2));
            last = now;
        }
    }

    /// Goal: a table that is full says so, and is as it was. Method: a table of which all cells but two are counted as
    /// claimed.
    #[test]
    fn a_full_table_grows_no_more() {
        let slab = Slab::<Large>::new();
        let all = first::<Large>(SEGMENTS);
        assert_eq!(place::<Large>(all), (SEGMENTS, 0));
        // The last cell is never claimed.
        slab.cell_count.store(all - 3, Ordering::Relaxed);
        for count in [3, 4, u32::MAX as usize, usize::MAX] {
            assert!(!slab.claim(count, &mut Vec::new()), "{count}");
        }
        assert_eq!(slab.cell_count.load(Ordering::Relaxed), all - 3);
        let mut indices = Vec::new();
        assert!(slab.claim(2, &mut indices));
        assert_eq!(indices, [all - 3, all - 2]);
        assert!(!slab.claim(1, &mut indices));
        assert_eq!(indices.len(), 2);
    }
}
