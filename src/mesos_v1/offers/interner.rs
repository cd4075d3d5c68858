//! [`Interner`]: storage for a batch's resources or attributes, which shares identical runs of entries between offers.
//!
//! Agents of one kind send the same resources and attributes, byte for byte. Therefore the encoded bytes of recent runs
//! are remembered, and an offer that repeats a run shares the decoded entries. A few are kept for the batches after it:
//! see [`kept_runs`](super::kept_runs).

use bumpalo::Bump;
use bumpalo::collections::Vec;

use super::cursor::WireCursor;
use super::kept_runs::{KeptRun, RunEntry, SetAside};

/// The number of runs that are remembered. It is above one because agents of several kinds send offers in turn.
const RUNS: usize = 4;

/// The number of consecutive new runs after which no more are looked up in this batch.
const PATIENCE: u8 = 16;

/// The entries of an offer: there are [`ENTRIES_MAX`](super::ENTRIES_MAX) at most.
#[derive(Clone, Copy, Debug)]
pub(super) enum Share {
    /// Consecutive ones of this batch.
    Own { start: usize, length: u16 },
    /// The kept run at this place.
    Kept(u8),
}

/// A run of entries that was decoded before.
#[derive(Clone, Copy)]
struct Run<'a> {
    /// The encoded bytes after the key of the first entry. Empty if there is no run.
    bytes: &'a [u8],
    share: Share,
    /// The number of entries that it counts for, including intervals and the like.
    count: usize,
}

pub(super) struct Interner<'a, T: RunEntry<'a>> {
    all: Vec<'a, T>,
    /// Runs of earlier batches.
    kept: &'a [KeptRun],
    /// A bit for each of those that occurred in this batch.
    used: u8,
    /// The first run that was decoded in this batch.
    fresh: Run<'a>,
    runs: [Run<'a>; RUNS],
    /// The index, modulo [`RUNS`], of the run to replace next.
    oldest: usize,
    patience: u8,
    /// The entries of the current offer.
    share: Share,
    /// The entries of the previous offer.
    before: Share,
}

impl<'a, T: RunEntry<'a>> Interner<'a, T> {
    pub(super) fn new(arena: &'a Bump, expected: usize, kept: &'a [KeptRun]) -> Interner<'a, T> {
        Interner {
            all: Vec::with_capacity_in(expected, arena),
            kept,
            used: 0,
            fresh: Run::NONE,
            runs: [Run::NONE; RUNS],
            oldest: 0,
            patience: PATIENCE,
            share: Share::NONE,
            before: Share::NONE,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether the current offer has no entries yet.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        matches!(self.share, Share::Own { length: 0, .. })
    }

    /// Begins the next offer.
    #[inline(always)]
    pub(super) fn begin(&mut self) {
        let start = self.all.len();
        (self.before, self.share) = (self.share, Share::Own { start, length: 0 });
    }

    /// Returns the entries of the current offer.
    #[inline(always)]
    pub(super) fn share(&self) -> Share {
        self.share
    }

    #[inline(always)]
    pub(super) fn push(&mut self, entry: T) {
        let (start, length) = match self.share {
            Share::Own { start, length } if start + usize::from(length) == self.all.len() => {
                (start, length)
            }
            _ => self.own(),
        };
        self.all.push(entry);
        self.share = Share::Own { start, length: length.saturating_add(1) };
    }

    /// Copies the entries of the current offer to the end, because a shared run can only be extended there. Returns
    /// where they start, and how many they are.
    #[cold]
    fn own(&mut self) -> (usize, u16) {
        let start = self.all.len();
        match self.share {
            Share::Own { start, length } => {
                for at in start..start + usize::from(length) {
                    self.all.extend(self.all.get(at).copied());
                }
            }
            Share::Kept(run) => self.all.extend(entries_of::<T>(self.kept, run).iter().copied()),
        }
        (start, u16::try_from(self.all.len() - start).unwrap_or(u16::MAX))
    }

    /// Returns the entry that probably comes next: the previous offer's entry at the same position.
    #[inline(always)]
    pub(super) fn guess(&self) -> Option<&T> {
        let Share::Own { length, .. } = self.share else { return None };
        let at = usize::from(length);
        match self.before {
            Share::Own { start, .. } => self.all.get(start + at),
            Share::Kept(run) => entries_of::<T>(self.kept, run).get(at),
        }
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
        let mut kept = self.kept.iter().zip(0u8..);
        let mut is_it = |run: &KeptRun| !run.bytes().is_empty() && message.strip(run.bytes());
        let (run, at) = kept.find(|(run, _)| is_it(run))?;
        self.used |= 1 << at;
        (self.share, self.patience) = (Share::Kept(at), PATIENCE);
        self.replace_oldest(Run { bytes: run.bytes(), share: self.share, count: run.count });
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
            if matches!(run.share, Share::Own { start, length: own } if start + usize::from(own) > length)
            {
                *run = Run::NONE;
            }
        }
    }

    /// Returns the entries of all offers.
    pub(super) fn into_entries(self) -> Entries<'a, T> {
        Entries { decoded: self.all.into_bump_slice(), kept: self.kept }
    }

    /// Sets a run aside for the next batch.
    #[inline]
    pub(super) fn set_aside(&self, aside: &mut SetAside) {
        let Run { bytes, count, .. } = self.fresh;
        if aside.end_batch(self.used, !bytes.is_empty()) {
            aside.set(bytes, count);
        }
    }
}

impl Run<'_> {
    const NONE: Self = Run { bytes: &[], share: Share::NONE, count: 0 };
}

impl Share {
    const NONE: Share = Share::Own { start: 0, length: 0 };
}

/// The entries of all offers of a batch.
pub(super) struct Entries<'a, T> {
    /// Those that were decoded in this batch.
    pub(super) decoded: &'a [T],
    kept: &'a [KeptRun],
}

impl<'a, T: RunEntry<'a>> Entries<'a, T> {
    /// Returns those of an offer.
    #[inline(always)]
    pub(super) fn of(&self, share: Share) -> &'a [T] {
        match share {
            Share::Own { start, length } => {
                self.decoded.get(start..start + usize::from(length)).unwrap_or_default()
            }
            Share::Kept(run) => entries_of(self.kept, run),
        }
    }
}

#[inline]
fn entries_of<'a, T: RunEntry<'a>>(kept: &'a [KeptRun], run: u8) -> &'a [T] {
    kept.get(usize::from(run)).map_or(&[], KeptRun::entries)
}
