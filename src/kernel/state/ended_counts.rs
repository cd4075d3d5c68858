//! How many executors have ended on each agent, as updaters count them, beside the agents' cells.
//!
//! An agent's cell counts the executors that were started there. A thread with an
//! [`Updater`](crate::kernel::Updater) counts those that end in a word of its own for each agent, 32 of which lie in a
//! line. So it writes no line that handlers write, nor, if its [`ReleaseCounter`] is its own, one that another updater
//! writes. What lives on the agent is the difference, modulo 2¹⁶. No word is ever reset: the next agent in the cell
//! begins with the sum that it finds.
//!
//! | thread | operation | ordering | pairs with |
//! |---|---|---|---|
//! | updater that ends an executor | [`AgentEnds::add`]: to the word of its counter, a fetch-add if that is the shared one; otherwise a load (Relaxed) and a store, because it is the only one that writes the word | Release | `sum`; the next updater with this counter: see [`Admission::take_counter`](super::admission::Admission::take_counter) |
//! | any that counts the agent's executors | the cell's word, [`AgentEnds::sum`], and the word again until it is the same ([`AgentCell::count`](super::agent::AgentCell::count)) | Acquire | `add`: who sees an end sees its executor counted in the cell; a thread that finds the agent without executors sees what was done before their ends |
//! | the thread that inserts the agent | [`AgentEnds::sum_of_all`] | Acquire | the same; all executors of the cell's last agent have ended |
//!
//! The words only grow. While the cell's word is the same, executors only end, so that the difference is a number
//! between those that lived at the first and at the last of these loads. A thread that then exchanges the cell's word,
//! to start an executor or to forget the agent, knows that no more live. It would be wrong only if the word was the
//! same after exactly a multiple of 2¹⁶ executors had been placed on the agent and had ended.

use super::admission::{COUNTERS, ReleaseCounter};
use super::slab::Beside;
use crate::sync::{AtomicU16, AtomicU32, Ordering};

/// A line's worth of unused words follows each list, so that no word of another list is in a line with one of this.
const APART: usize = if cfg!(any(shuttle, all(loom, test))) { 0 } else { 32 };

type CountList = Box<[AtomicU16]>;

/// Executors that have ended on the agents of a segment.
#[derive(Debug)]
pub(crate) struct EndedCounts {
    /// By the counter of the first updater: mostly there is one.
    first: CountList,
    /// By the others.
    others: [CountList; COUNTERS - 1],
}

impl Beside for EndedCounts {
    fn new(cells: usize) -> EndedCounts {
        let words = || std::iter::repeat_with(|| AtomicU16::new(0)).take(cells + APART).collect();
        EndedCounts { first: words(), others: std::array::from_fn(|_| words()) }
    }
}

impl EndedCounts {
    /// Those of the agent whose cell is at this offset of the segment, as far as counters are `used`.
    #[inline]
    pub(super) fn at<'a>(&'a self, offset: usize, used: &'a UsedCounters) -> AgentEnds<'a> {
        AgentEnds { counts: self, offset, used }
    }

    /// All words.
    #[cfg(all(counting, test))]
    pub(crate) fn words(&self) -> impl Iterator<Item = &AtomicU16> {
        self.first.iter().chain(self.others.iter().flatten())
    }
}

/// Whether updaters have more than the first counter. Nobody looks at the words of the others before.
#[derive(Debug, Default)]
pub(crate) struct UsedCounters(AtomicU32);

impl UsedCounters {
    /// An updater uses this counter from now on.
    pub(crate) fn add(&self, counter: ReleaseCounter) {
        // Relaxed: a thread that sees what such an end made room for sees this as well, because it is read after the
        // cell's word. Others take agents for fuller than they are.
        self.0.fetch_max(counter.index() as u32, Ordering::Relaxed);
    }

    #[inline]
    fn has_others(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// The executors that have ended on one agent, as updaters have counted them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgentEnds<'a> {
    counts: &'a EndedCounts,
    offset: usize,
    used: &'a UsedCounters,
}

impl<'a> AgentEnds<'a> {
    #[inline]
    fn word(self, counter: ReleaseCounter) -> Option<&'a AtomicU16> {
        match counter.index().checked_sub(1) {
            None => self.first(),
            Some(other) => self.counts.others.get(other)?.get(self.offset),
        }
    }

    #[inline]
    fn first(self) -> Option<&'a AtomicU16> {
        self.counts.first.get(self.offset)
    }

    /// Counts an executor that has ended. Only an updater with this counter may call this, once for each executor.
    #[inline]
    pub(crate) fn add(self, counter: ReleaseCounter) {
        if let Some(word) = self.word(counter) {
            // Release: the executor was counted in the cell, and has left its own.
            if counter == ReleaseCounter::SHARED {
                word.fetch_add(1, Ordering::Release);
            } else {
                // Relaxed: no other thread writes it. A read-modify-write would take a tenth of an end.
                let ended = word.load(Ordering::Relaxed);
                word.store(ended.wrapping_add(1), Ordering::Release);
            }
        }
    }

    /// How many have ended, modulo 2¹⁶.
    #[inline]
    pub(super) fn sum(self) -> u16 {
        if self.used.has_others() { self.sum_of_all() } else { self.sum_of_first() }
    }

    /// The same for the thread that inserts an agent, whose cell's count begins with this: it doesn't depend on whether
    /// the thread knows of other counters.
    #[inline(never)]
    pub(super) fn sum_of_all(self) -> u16 {
        let others = self.counts.others.iter().filter_map(|words| words.get(self.offset));
        let loaded = others.map(|word| word.load(Ordering::Acquire));
        loaded.fold(self.sum_of_first(), u16::wrapping_add)
    }

    #[inline]
    fn sum_of_first(self) -> u16 {
        self.first().map_or(0, |word| word.load(Ordering::Acquire))
    }
}
