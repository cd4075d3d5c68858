//! [`Interner`]: storage for a batch's resources or attributes, which shares identical runs of entries between offers.
//!
//! Agents of one kind send the same resources and attributes, byte for byte. Therefore the encoded bytes of recent runs
//! are remembered, and an offer that repeats a run shares the decoded entries. A few are kept for the batches after it:
//! see [`kept_runs`](super::kept_runs).

use bumpalo::Bump;
use bumpalo::collections::Vec;

use super::cursor::WireCursor;
use super::kept_runs::{KeptEntry, KeptRun, SetAside};

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

pub(super) struct Interner<'a, T: KeptEntry<'a>> {
    all: Vec<'a, T>,
    /// Runs of earlier batches.
    kept: &'a [KeptRun<T::Kept>],
    /// A bit for each of those that occurred in this batch.
    used: u8,
    /// The first run that was decoded in this batch.
    fresh: Run<'a>,
    runs: [Run<'a>; RUNS],
    /// The index, modulo [`RUNS`], of the run to replace next.
    oldest: usize,
    patience: u8,
    /// The entries of the current offer.
    share: Span,
    /// The entries of the previous offer.
    before: Span,
}

impl<'a, T: KeptEntry<'a>> Interner<'a, T> {
    pub(super) fn new(
        arena: &'a Bump,
        expected: usize,
        kept: &'a [KeptRun<T::Kept>],
    ) -> Interner<'a, T> {
        Interner {
            all: Vec::with_capacity_in(expected, arena),
            kept,
            used: 0,
            fresh: Run::default(),
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
        let run = self.runs.iter().find(|run| !run.bytes.is_empty() && message.strip(run.bytes));
        let Some(run) = run else { return self.recall_kept(message) };
        (self.share, self.patience) = (run.share, PATIENCE);
        Some(run.count)
    }

    /// The same for a run of an earlier batch, which is then one of this batch.
    #[inline(never)]
    fn recall_kept(&mut self, message: &mut WireCursor<'a>) -> Option<usize> {
        let mut kept = self.kept.iter().zip(0u32..);
        let (run, at) = kept.find(|(run, _)| !run.bytes.is_empty() && message.strip(&run.bytes))?;
        self.used |= 1 << at;
        let start = self.all.len();
        self.all.extend(run.lend::<T>());
        self.share = Span { start, end: self.all.len() };
        self.patience = PATIENCE;
        self.replace_oldest(Run { bytes: &run.bytes, share: self.share, count: run.count });
        Some(run.count)
    }

    fn replace_oldest(&mut self, run: Run<'a>) {
        self.runs[self.oldest % RUNS] = run;
        self.oldest += 1;
    }

    /// Remembers `bytes` as the encoding of all entries of the offer so far.
    #[inline(always)]
    pub(super) fn remember(&mut self, bytes: &'a [u8], count: usize) {
        if self.patience > 0 {
            self.patience -= 1;
            let run = Run { bytes, share: self.share, count };
            if self.fresh.bytes.is_empty() {
                self.fresh = run;
            }
            self.replace_oldest(run);
        }
    }

    /// Drops the entries from `length` on, which belong to an offer that can't be decoded.
    #[cold]
    pub(super) fn cut(&mut self, length: usize) {
        self.all.truncate(length);
        for run in self.runs.iter_mut().chain([&mut self.fresh]) {
            if run.share.end > length {
                *run = Run::default();
            }
        }
    }

    /// Returns all entries. Sets a run aside for the next batch.
    pub(super) fn into_slice(self, aside: &mut SetAside<T::Kept>) -> &'a [T] {
        let Run { bytes, share, count } = self.fresh;
        let all = self.all.into_bump_slice();
        if aside.end_batch(self.used, !bytes.is_empty()) {
            aside.set(bytes, count, share.of(all));
        }
        all
    }
}

impl Span {
    /// Returns the entries of this range.
    #[inline(always)]
    pub(super) fn of<'a, T>(&self, all: &'a [T]) -> &'a [T] {
        all.get(self.start..self.end).unwrap_or_default()
    }
}
