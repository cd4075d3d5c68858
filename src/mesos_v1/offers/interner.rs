//! [`Interner`]: storage for a batch's resources or attributes, which shares identical runs of entries between offers.
//!
//! Agents of one kind send the same resources and attributes, byte for byte. Therefore the encoded bytes of recent runs
//! are remembered, and an offer that repeats a run shares the decoded entries.

use bumpalo::Bump;
use bumpalo::collections::Vec;

use super::cursor::WireCursor;

/// The number of runs that are remembered. It is above one because agents of several kinds send offers in turn.
const RUNS: usize = 4;

/// The number of consecutive new runs after which no more are looked up in this batch.
const PATIENCE: u8 = 16;

/// A range of consecutive entries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    start: usize,
    end: usize,
}

/// A run of entries that was decoded before.
#[derive(Clone, Copy, Default)]
struct Run<'a> {
    /// The encoded bytes after the key of the first entry. Empty if there is no run.
    bytes: &'a [u8],
    share: Span,
    /// The number of entries that it counts for, including intervals and the like.
    count: usize,
}

pub(super) struct Interner<'a, T> {
    all: Vec<'a, T>,
    runs: [Run<'a>; RUNS],
    /// The index, modulo [`RUNS`], of the run to replace next.
    oldest: usize,
    patience: u8,
    /// The entries of the current offer.
    share: Span,
    /// The entries of the previous offer.
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

    /// Whether the current offer has no entries yet.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.share.start == self.share.end
    }

    /// Begins the next offer.
    #[inline(always)]
    pub(super) fn begin(&mut self) {
        let end = self.all.len();
        (self.before, self.share) = (self.share, Span { start: end, end });
    }

    /// Returns the entries of the current offer.
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

    /// Copies the entries of the current offer to the end, because a shared run can only be extended there.
    #[cold]
    fn own(&mut self) {
        let start = self.all.len();
        for at in self.share.start..self.share.end {
            self.all.extend(self.all.get(at).copied());
        }
        self.share = Span { start, end: self.all.len() };
    }

    /// Returns the entry that probably comes next: the previous offer's entry at the same position.
    #[inline(always)]
    pub(super) fn guess(&self) -> Option<&T> {
        self.all.get(self.before.start + (self.share.end - self.share.start))
    }

    /// Skips a remembered run, whose entries become those of the offer. Returns the number of entries that it counts
    /// for.
    #[inline(always)]
    pub(super) fn recall(&mut self, message: &mut WireCursor<'a>) -> Option<usize> {
        if self.patience == 0 || !self.is_empty() {
            return None;
        }
        let run = self.runs.iter().find(|run| !run.bytes.is_empty() && message.strip(run.bytes))?;
        (self.share, self.patience) = (run.share, PATIENCE);
        Some(run.count)
    }

    /// Remembers `bytes` as the encoding of all entries of the offer so far.
    #[inline(always)]
    pub(super) fn remember(&mut self, bytes: &'a [u8], count: usize) {
        if self.patience > 0 {
            self.patience -= 1;
            self.runs[self.oldest % RUNS] = Run { bytes, share: self.share, count };
            self.oldest += 1;
        }
    }

    /// Drops the entries from `length` on, which belong to an offer that can't be decoded.
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
    /// Returns the entries of this range.
    #[inline(always)]
    pub(super) fn of<'a, T>(&self, all: &'a [T]) -> &'a [T] {
        all.get(self.start..self.end).unwrap_or_default()
    }
}
