//! The cells of executors by their sequence numbers, for ids that don't contain their slot.
//!
//! Numbers are handed out densely. So a table leads from a number to a cell, in pages of 256 entries: the lowest byte
//! of the number is the place in a page of cells, the next byte the place in the page above, whose entries are pages,
//! and so on. Numbers of one byte have a root of their own, and so have those of two bytes and of each further
//! length: small numbers take few steps, and the table never grows at its root.
//!
//! ```text
//!             root of three bytes        page              page of cells
//! 0x020103:   [02] ───────────────────► [01] ───────────► [03] ───────────► the executor's cell
//! ```
//!
//! **Entries are hints.** The cell that is found says which executor it holds. A number whose executor has ended, or
//! that was never handed out, leads to no cell, or to any. To look up a number allocates nothing, however large it is.
//!
//! **Pages are given back.** Each number is *retired* once, when its executor has ended or wasn't admitted. A page of
//! cells counts its retired numbers, a page above those of its pages that were given back. The thread that completes
//! the count removes the page from the one above, and gives it back for other numbers. Nobody enters a number in it
//! any more, because each of its numbers was. So the table takes about 4 bytes for each number between the oldest live
//! executor and the newest, and at most 1088 for an executor that outlives its neighbours, and as much for each page
//! above that no other executor needs. As in a [`Slab`], what was needed at the peak is reused and not deallocated.
//!
//! | word | thread | operation | ordering | pairs with |
//! |---|---|---|---|---|
//! | entry of a page above | handler, adoption | links a page: compare-exchange | AcqRel | walks, so that they find the page as it was given back, or later |
//! | entry of a page above | any that walks | load | Acquire | links |
//! | entry of a page above | the thread that completed the page below | removes it: store | Relaxed | published by the count of this page |
//! | entry of a page of cells | handler | store | Relaxed | published by the executor's state |
//! | entry of a page of cells | update, report | load | Relaxed | a thread that knows of the executor's launch finds its cell; any other cell is recognised by its state |
//! | `retired` | the thread that ended the executor, or withdrew it | fetch-add | AcqRel | each other: the thread that completes the count resets the page after all others have left it |
//!
//! A number that isn't retired keeps all pages on its way where they are. So a walk that is about a live executor meets
//! no page that is being given back, and an entry that is being linked can't have been removed meanwhile.
//!
//! If the table is full (2²¹ pages) the next executors are not placed. Numbers that found no page aren't retired, and
//! pages that share their bytes stay.

use std::fmt;

use super::slab::{Slab, SlabCell};
use crate::sync::{AtomicU32, Ordering};

/// The number of bits that choose an entry of a page.
const PAGE_BITS: u32 = crate::sync::NUMBER_PAGE_BITS;
/// The number of entries in a page.
const PAGE_LENGTH: usize = 1 << PAGE_BITS;
/// The number of roots: enough for all sequence numbers.
const ROOTS: usize = crate::sync::NUMBER_ROOTS;
const NONE: u32 = u32::MAX;

/// How many of a page's numbers, or of the pages below, are retired. It is written whenever an executor ends, so it has
/// a line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Retired(AtomicU32);

/// A page: the indices of cells, or of pages below.
#[repr(align(64))]
pub(crate) struct Page {
    entries: [AtomicU32; PAGE_LENGTH],
    retired: Retired,
}

impl Default for Page {
    fn default() -> Page {
        Page {
            entries: std::array::from_fn(|_| AtomicU32::new(NONE)),
            retired: Retired(AtomicU32::new(0)),
        }
    }
}

impl SlabCell for Page {
    type Hint = ();
    type Beside = ();

    /// Four bytes an entry, and the line of what is retired.
    const LINES_BITS: u32 = PAGE_BITS.saturating_sub(3);

    fn reset(&self) {
        // Relaxed: all threads that have used the page were counted, and the free list publishes it.
        self.entries.iter().for_each(|entry| entry.store(NONE, Ordering::Relaxed));
        self.retired.0.store(0, Ordering::Relaxed);
    }
}

impl Page {
    /// The entry of a number in a page that is `level` above those of cells.
    #[inline]
    fn entry(&self, number: u64, level: u32) -> &AtomicU32 {
        &self.entries[(number >> (level * PAGE_BITS)) as usize % PAGE_LENGTH]
    }
}

/// The table of all numbers whose executors are alive, or being placed.
pub(crate) struct NumberTable {
    /// The root of numbers that take one byte, two, and so on. They are never given back.
    roots: [Page; ROOTS],
    pages: Slab<Page>,
}

impl fmt::Debug for NumberTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NumberTable").field("pages", &self.pages).finish_non_exhaustive()
    }
}

/// The level of the root under which a number is.
#[inline]
fn root_level(number: u64) -> u32 {
    (number | 1).ilog2() / PAGE_BITS
}

/// Numbers of one page of cells that are to be retired together.
#[derive(Debug)]
pub(crate) struct NumberRun {
    /// One of them.
    number: u64,
    count: u32,
}

impl NumberRun {
    pub(crate) const EMPTY: NumberRun = NumberRun { number: 0, count: 0 };
}

/// How many numbers are in the page of cells that `number` is in, from this one on.
fn left_in_page(number: u64) -> usize {
    PAGE_LENGTH - number as usize % PAGE_LENGTH
}

impl NumberTable {
    pub(crate) fn new() -> NumberTable {
        NumberTable { roots: std::array::from_fn(|_| Page::default()), pages: Slab::new() }
    }

    /// See [`Slab::grow_ahead`].
    pub(crate) fn grow_ahead(&self) {
        self.pages.grow_ahead();
    }

    /// All pages, in use or not, and the words of their table.
    #[cfg(all(counting, test))]
    pub(crate) fn words(&self) -> (impl Iterator<Item = &Page>, &Slab<Page>) {
        (self.roots.iter().chain(self.pages.iter().map(|(_, page)| page)), &self.pages)
    }

    /// Returns the index of the cell that `number` leads to. It is that of its executor if that is alive and the caller
    /// knows of its launch; otherwise it may be any.
    #[inline]
    pub(crate) fn find(&self, number: u64) -> Option<u32> {
        self.find_with_page(number).map(|(cell, _)| cell)
    }

    /// Like [`NumberTable::find`]. Returns the page in which the number is, too.
    #[inline]
    pub(crate) fn find_with_page(&self, number: u64) -> Option<(u32, &Page)> {
        let page = self.page(number, 0)?;
        // Relaxed: published by the state of the cell, if it is the right one.
        let cell = page.entry(number, 0).load(Ordering::Relaxed);
        (cell != NONE).then_some((cell, page))
    }

    /// The page of a number that is `level` above those of cells, if there is one.
    #[inline]
    fn page(&self, number: u64, level: u32) -> Option<&Page> {
        let top = root_level(number);
        let mut page = self.roots.get(top as usize)?;
        for above in (level + 1..=top).rev() {
            // There is no page with the index `NONE`.
            page = self.pages.get(page.entry(number, above).load(Ordering::Acquire))?;
        }
        Some(page)
    }

    /// Enters the cells of executors whose numbers are `first` and those that follow. Returns `false` if the table is
    /// full; then some may be entered. `spare` is scratch memory.
    pub(crate) fn insert(&self, first: u64, cells: &[u32], spare: &mut Vec<u32>) -> bool {
        let (mut number, mut rest) = (first, cells);
        while !rest.is_empty() {
            let (here, further) = rest.split_at(left_in_page(number).min(rest.len()));
            let Some(page) = self.make_page(number, spare) else { return false };
            for (number, cell) in (number..).zip(here) {
                // Relaxed: published by the executor's state.
                page.entry(number, 0).store(*cell, Ordering::Relaxed);
            }
            (number, rest) = (number + here.len() as u64, further);
        }
        true
    }

    /// Enters a number that leads to no cell, so that it can be retired. Returns `false` if the table is full.
    pub(crate) fn insert_unfound(&self, number: u64) -> bool {
        self.make_page(number, &mut Vec::with_capacity(1)).is_some()
    }

    /// Returns the page of cells of a number that isn't retired; links the pages that are missing on its way. None if
    /// the table is full.
    fn make_page(&self, number: u64, spare: &mut Vec<u32>) -> Option<&Page> {
        let top = root_level(number);
        let mut page = self.roots.get(top as usize)?;
        for above in (1..=top).rev() {
            let entry = page.entry(number, above);
            let index = match entry.load(Ordering::Acquire) {
                NONE => self.link(entry, spare)?,
                index => index,
            };
            page = self.pages.get(index)?;
        }
        Some(page)
    }

    /// Links a page to an entry without one. Returns its index, or that of the page that another thread linked.
    #[cold]
    fn link(&self, entry: &AtomicU32, spare: &mut Vec<u32>) -> Option<u32> {
        spare.clear();
        if !self.pages.claim(1, spare) {
            return None;
        }
        let index = *spare.first()?;
        match entry.compare_exchange(NONE, index, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Some(index),
            Err(winner) => {
                self.pages.free(index);
                Some(winner)
            }
        }
    }

    /// Retires `count` numbers of one page, of which `number` is one: their executors have ended, or were not admitted.
    /// Must be called once for each number that was handed out.
    #[inline]
    pub(crate) fn retire(&self, number: u64, count: u32) {
        // It is missing if the table was full.
        let Some(page) = self.page(number, 0) else { return };
        self.retire_in(page, number, count);
    }

    /// Like [`NumberTable::retire`], for a caller that has found the number in `page`. The page is still the number's:
    /// it is not given back before the number is retired.
    #[inline]
    pub(crate) fn retire_in(&self, page: &Page, number: u64, count: u32) {
        if page.retire(count) && root_level(number) > 0 {
            self.give_back(number);
        }
    }

    /// Adds a number to those to be retired. Retires the others first if they are in another page. Not inlined: ids
    /// that contain their slot don't pay for it.
    #[inline(never)]
    pub(crate) fn retire_later(&self, number: u64, run: &mut NumberRun) {
        if run.number >> PAGE_BITS != number >> PAGE_BITS {
            self.retire_all(run);
            *run = NumberRun::EMPTY;
        }
        *run = NumberRun { number, count: run.count + 1 };
    }

    /// Retires these numbers.
    #[inline(never)]
    pub(crate) fn retire_all(&self, run: &NumberRun) {
        if run.count > 0 {
            self.retire(run.number, run.count);
        }
    }

    /// Gives back the page of cells of a number, all of which are retired, and the pages above of which it was the
    /// last.
    #[cold]
    fn give_back(&self, number: u64) {
        // The root stays, though numbers that take fewer bytes never complete it.
        for above in 1..=root_level(number) {
            let Some(page) = self.page(number, above) else { return };
            let entry = page.entry(number, above);
            // Relaxed: this thread alone changes the entry now. It does so before it counts: afterwards another thread
            // may give back this page, too.
            let below = entry.load(Ordering::Relaxed);
            entry.store(NONE, Ordering::Relaxed);
            self.pages.free(below);
            if !page.retire(1) {
                return;
            }
        }
    }

    /// How many of the numbers below `next`, the next one to be handed out, are not retired. Valid only while no other
    /// call is in progress.
    pub(crate) fn live(&self, next: u64) -> u64 {
        let all = (0..).zip(&self.roots).map(|(level, root)| self.live_in(root, level));
        // Those that the last page has left for the future. The page of a number that was handed out is there.
        let is_begun = !next.is_multiple_of(PAGE_LENGTH as u64) || next == 0;
        let left = if is_begun { left_in_page(next) as u64 } else { 0 };
        all.sum::<u64>().saturating_sub(left)
    }

    /// How many numbers in a page and below are not retired, used or not.
    fn live_in(&self, page: &Page, level: u32) -> u64 {
        if level == 0 {
            return PAGE_LENGTH as u64 - u64::from(page.retired.0.load(Ordering::Relaxed));
        }
        let below = |entry: &AtomicU32| self.pages.get(entry.load(Ordering::Acquire));
        page.entries.iter().filter_map(below).map(|page| self.live_in(page, level - 1)).sum()
    }
}

#[cfg(all(loom, test))]
impl NumberTable {
    /// The number of pages that are linked; fails if a page is linked twice.
    pub(crate) fn linked(&self) -> usize {
        let mut found = Vec::new();
        let roots = (0..).zip(&self.roots);
        roots.for_each(|(level, root)| self.find_linked(root, level, &mut found));
        let linked = found.len();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), linked, "a page with two owners");
        linked
    }

    fn find_linked(&self, page: &Page, level: u32, found: &mut Vec<u32>) {
        for entry in page.entries.iter().filter(|_| level > 0) {
            let index = entry.load(Ordering::Acquire);
            if let Some(page) = self.pages.get(index) {
                found.push(index);
                self.find_linked(page, level - 1, found);
            }
        }
    }
}

impl Page {
    /// Counts numbers or pages below that are retired. Returns whether they were the last ones of this page.
    #[inline]
    fn retire(&self, count: u32) -> bool {
        // AcqRel: the thread that completes the count comes after all others.
        let before = self.retired.0.fetch_add(count, Ordering::AcqRel);
        before + count == PAGE_LENGTH as u32
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    fn insert(numbers: &NumberTable, first: u64, cells: &[u32]) {
        assert!(numbers.insert(first, cells, &mut Vec::new()));
    }

    /// How many pages were ever in use.
    fn pages(numbers: &NumberTable) -> usize {
        numbers.pages.iter().count()
    }

    /// Goal: each number leads to its cell until it is retired, whichever root it has. Method: numbers on both sides of
    /// each border of roots and pages, up to the largest.
    #[test]
    fn numbers_lead_to_their_cells() {
        let numbers = NumberTable::new();
        let borders = (1..6).map(|byte| 1u64 << (8 * byte)).chain([512, 0x0203_0000]);
        let firsts: Vec<u64> = borders.map(|border| border - 2).collect();
        for (first, cell) in firsts.iter().zip((0..).step_by(10)) {
            insert(&numbers, *first, &[cell, cell + 1, cell + 2, cell + 3]);
        }
        let last = super::super::executor_state::SEQUENCE_MAX;
        insert(&numbers, last, &[99]);
        for (first, cell) in firsts.iter().zip((0..).step_by(10)) {
            let found: Vec<_> = (0..4).map(|more| numbers.find(first + more)).collect();
            assert_eq!(found, (0..4).map(|more| Some(cell + more)).collect::<Vec<_>>(), "{first}");
        }
        assert_eq!(numbers.find(last), Some(99));
    }

    /// Goal: a lookup of any number allocates nothing. Method: numbers that were never handed out, of each length.
    #[test]
    fn unknown_numbers_lead_nowhere_and_allocate_nothing() {
        let numbers = NumberTable::new();
        insert(&numbers, 0, &[7; 300]);
        let before = pages(&numbers);
        for bits in 9..64 {
            for number in [1 << bits, (1 << bits) + 1, u64::MAX >> (63 - bits)] {
                assert_eq!(numbers.find(number), None, "{number}");
                numbers.retire(number, 1);
            }
        }
        assert_eq!(pages(&numbers), before);
    }

    /// Goal: numbers that no sequence reaches are refused. Method: the first that is too large.
    #[test]
    fn numbers_have_48_bits() {
        let numbers = NumberTable::new();
        assert!(
            !numbers.insert(1 << 48, &[1], &mut Vec::new()) && !numbers.insert_unfound(1 << 48)
        );
        assert_eq!(pages(&numbers), 0);
    }

    /// Goal: pages are given back, those above them, too, and are empty when they are reused. Method: a window of live
    /// numbers wanders through a million; a few old ones stay, and are found.
    #[test]
    fn pages_are_given_back() {
        const ALIVE: u64 = 1000;
        let numbers = NumberTable::new();
        let stays = |number: u64| number % 100_000 == 77;
        let (mut peak, mut old) = (0, 0);
        for number in 0..1_000_000u64 {
            insert(&numbers, number, &[number as u32]);
            if let Some(ended) = number.checked_sub(ALIVE) {
                if stays(ended) { old += 1 } else { numbers.retire(ended, 1) }
            }
            if number % 10_000 == 0 {
                let alive = number.min(ALIVE) + old + u64::from(number < ALIVE);
                assert_eq!(numbers.live(number + 1), alive, "at {number}");
            }
            if number == 200_000 {
                peak = pages(&numbers);
            }
        }
        for old in (77..998_000).step_by(100_000) {
            assert_eq!(numbers.find(old), Some(old as u32));
        }
        // A page for each old number, and those that were on the way to a new one.
        assert!(pages(&numbers) < peak + 24, "{} pages, {peak} at first", pages(&numbers));
        (999_000..1_000_000)
            .chain((77..998_000).step_by(100_000))
            .for_each(|it| numbers.retire(it, 1));
        assert_eq!(numbers.live(1_000_000), 0);
        let before = pages(&numbers);
        insert(&numbers, 1_000_000, &[5; 2560]);
        assert_eq!(pages(&numbers), before, "given back for others");
        assert_eq!((numbers.find(100_077), numbers.find(1_000_007)), (None, Some(5)));
    }

    /// Goal: numbers of one page may be retired together. Method: all of two pages, in runs.
    #[test]
    fn numbers_are_retired_in_runs() {
        let numbers = NumberTable::new();
        insert(&numbers, 256, &[1; 512]);
        [(300, 56), (256, 200), (600, 255)]
            .iter()
            .for_each(|(at, count)| numbers.retire(*at, *count));
        assert_eq!((numbers.find(256), numbers.find(512)), (None, Some(1)), "the second has one");
        numbers.retire(512, 1);
        assert_eq!(numbers.find(512), None);
    }

    /// Goal: what readers of entries wait for isn't written at each end. Method: the line of the count.
    #[test]
    fn counts_have_lines_of_their_own() {
        assert_eq!(std::mem::offset_of!(Page, retired) % 64, 0);
        assert_eq!(size_of::<Page>(), PAGE_LENGTH * 4 + 64);
        assert!(size_of::<Page>() <= 64 << Page::LINES_BITS);
    }

    /// Goal: numbers that are retired later are those of one page. Method: pairs of numbers of one page and of two,
    /// also such that one is the other, shifted by pages; what was retired isn't found any more once its page is
    /// complete.
    #[test]
    fn numbers_are_collected_by_page() {
        for (one, other) in
            [(256, 511), (256, 512), (512, 256), (1 << 8, 1 << 24), (1 << 24, 1 << 8)]
        {
            let numbers = NumberTable::new();
            let first = |number: u64| number / 256 * 256;
            for page in std::collections::BTreeSet::from([first(one), first(other)]) {
                insert(&numbers, page, &[5; 256]);
                for number in (page..page + 256).filter(|it| ![one, other].contains(it)) {
                    numbers.retire(number, 1);
                }
            }
            let mut run = NumberRun::EMPTY;
            for number in [one, other] {
                numbers.retire_later(number, &mut run);
            }
            let is_same = first(one) == first(other);
            assert_eq!(numbers.find(one).is_some(), is_same, "{one} is retired before {other}");
            assert_eq!(numbers.find(other), Some(5));
            numbers.retire_all(&run);
            assert_eq!([one, other].map(|number| numbers.find(number)), [None; 2]);
        }
    }

    /// Goal: a page above stays while one below is in use. Method: the numbers of one page of two are retired, and
    /// those of the other are found; then these, too, and nothing is left but the root.
    #[test]
    fn a_page_above_outlasts_those_below() {
        let numbers = NumberTable::new();
        let first = 1 << 16;
        insert(&numbers, first, &[5; 512]);
        numbers.retire(first, 256);
        let found = |number| numbers.find(first + number);
        assert_eq!([0, 255, 256, 511].map(found), [None, None, Some(5), Some(5)]);
        numbers.retire(first + 256, 256);
        assert_eq!([256, 511].map(found), [None; 2]);
        let before = pages(&numbers);
        insert(&numbers, first + 512, &[6; 256]);
        assert_eq!((pages(&numbers), found(512)), (before, Some(6)));
    }
}
