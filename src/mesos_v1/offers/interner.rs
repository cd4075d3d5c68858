//! Where entries of one kind, resources or attributes, are put, those of a whole batch.
//!
//! Agents of one make say the same of themselves, byte for byte. So runs of entries are remembered by their bytes, and
//! an offer that brings a run again shares the entries that the run became.

use bumpalo::Bump;
use bumpalo::collections::Vec;

use super::cursor::WireCursor;

/// So many runs are remembered: agents of several makes offer in turn.
const RUNS: usize = 4;

/// After so many runs in a row that weren't there before, no more are looked for in this batch.
const PATIENCE: u8 = 16;

/// Some entries on a shelf, one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    start: usize,
    end: usize,
}

/// A run of entries that was read before.
#[derive(Clone, Copy, Default)]
struct Run<'a> {
    /// From behind the key of the first entry; empty if there is none.
    bytes: &'a [u8],
    share: Span,
    /// How many entries it counts for, intervals and the like included.
    count: usize,
}

pub(super) struct Interner<'a, T> {
    all: Vec<'a, T>,
    runs: [Run<'a>; RUNS],
    /// Which run is forgotten next.
    oldest: usize,
    patience: u8,
    /// What the offer has that is read.
    share: Span,
    /// What the offer before it had.
    before: Span,
}

impl<'a, T: Copy> Interner<'a, T> {
    pub(super) fn new(arena: &'a Bump, expected: usize) -> Interner<'a, T> {
        Interner {
            all: Vec::with_capacity_in(expected, arena),
            runs: [Run::default(); RUNS],
            oldest: 0,
            patience: PATIENCE,
            share: Span::default(),
            before: Span::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether the offer has none so far.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.share.start == self.share.end
    }

    /// The next offer begins.
    #[inline(always)]
    pub(super) fn begin(&mut self) {
        let end = self.all.len();
        (self.before, self.share) = (self.share, Span { start: end, end });
    }

    /// What the offer has that was read.
    #[inline(always)]
    pub(super) fn share(&self) -> Span {
        self.share
    }

    #[inline(always)]
    pub(super) fn push(&mut self, entry: T) {
        if self.share.end != self.all.len() {
            self.own();
        }
        self.all.push(entry);
        self.share.end = self.all.len();
    }

    /// Entries are to come behind a run that isn't the last on the shelf: the offer gets a copy of that.
    #[cold]
    fn own(&mut self) {
        let start = self.all.len();
        for at in self.share.start..self.share.end {
            self.all.extend(self.all.get(at).copied());
        }
        self.share = Span { start, end: self.all.len() };
    }

    /// Most likely what comes next: what the offer before had at the same place.
    #[inline(always)]
    pub(super) fn guess(&self) -> Option<&T> {
        self.all.get(self.before.start + (self.share.end - self.share.start))
    }

    /// Reads past a run that is remembered; returns for how many entries it counts.
    #[inline(always)]
    pub(super) fn recall(&mut self, message: &mut WireCursor<'a>) -> Option<usize> {
        if self.patience == 0 || !self.is_empty() {
            return None;
        }
        let run = self.runs.iter().find(|run| !run.bytes.is_empty() && message.strip(run.bytes))?;
        (self.share, self.patience) = (run.share, PATIENCE);
        Some(run.count)
    }

    /// All entries of the offer so far are the run that these bytes are.
    #[inline(always)]
    pub(super) fn remember(&mut self, bytes: &'a [u8], count: usize) {
        if self.patience > 0 {
            self.patience -= 1;
            self.runs[self.oldest % RUNS] = Run { bytes, share: self.share, count };
            self.oldest += 1;
        }
    }

    /// Drops the entries of an offer that can't be read: those from `length` on.
    #[cold]
    pub(super) fn cut(&mut self, length: usize) {
        self.all.truncate(length);
        for run in &mut self.runs {
            if run.share.end > length {
                *run = Run::default();
            }
        }
    }

    pub(super) fn into_slice(self) -> &'a [T] {
        self.all.into_bump_slice()
    }
}

impl Span {
    /// These of all entries.
    #[inline(always)]
    pub(super) fn of<'a, T>(&self, all: &'a [T]) -> &'a [T] {
        all.get(self.start..self.end).unwrap_or_default()
    }
}
