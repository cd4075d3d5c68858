//! [`KeptRuns`]: runs of entries that are remembered from batch to batch, so that small batches gain by them as well.
//!
//! A kept run has its encoded bytes and its entries, which borrow from them and from an arena of its own: an offer that
//! repeats the run gets these entries themselves. While a batch borrows, nothing changes but the run that is set aside
//! for the next batch: the first one that this batch had to decode. The next batch puts it in the place of one that was
//! of no use lately.

use bumpalo::Bump;
use self_cell::self_cell;

use super::cursor::Result;
use crate::offer::{Attribute, Resource};

/// The number of runs that are kept.
const RUNS: usize = 4;
/// The maximum length of a kept run, in encoded bytes: some thirty resources.
const BYTES_MAX: usize = 1024;
/// How many runs are set aside, one after the other, while no kept run is of use. After that only every [`PAUSE`]th
/// batch that decodes a run sets one aside.
const PATIENCE: u8 = 16;
/// The number of such batches from one that sets a run aside to the next, once [`PATIENCE`] is used up.
const PAUSE: u8 = 64;

/// A run's encoded bytes, and memory for its entries.
#[derive(Debug)]
struct EncodedRun {
    /// What follows the key of the first entry.
    bytes: Vec<u8>,
    arena: Bump,
}

/// The entries of a run: it has either resources or attributes.
#[derive(Debug)]
pub(super) struct RunEntries<'a> {
    pub(super) resources: &'a [Resource<'a>],
    pub(super) attributes: &'a [Attribute<'a>],
}

self_cell!(
    /// A run and its entries, which borrow from it.
    struct DecodedRun {
        owner: EncodedRun,
        #[covariant]
        dependent: RunEntries,
    }
    impl {Debug}
);

/// An entry of a run: a resource or an attribute.
pub(super) trait RunEntry<'a>: Copy + 'a {
    /// Those of a kept run.
    fn of(entries: &RunEntries<'a>) -> &'a [Self];
}

impl<'a> RunEntry<'a> for Resource<'a> {
    #[inline]
    fn of(entries: &RunEntries<'a>) -> &'a [Resource<'a>] {
        entries.resources
    }
}

impl<'a> RunEntry<'a> for Attribute<'a> {
    #[inline]
    fn of(entries: &RunEntries<'a>) -> &'a [Attribute<'a>] {
        entries.attributes
    }
}

/// Decodes a run's bytes once more, for entries that outlive the batch.
pub(super) type DecodeRun = for<'a> fn(&'a [u8], &'a Bump) -> Result<RunEntries<'a>>;

/// A run of entries, or none.
#[derive(Debug, Default)]
pub(super) struct KeptRun {
    run: Option<DecodedRun>,
    /// The number of entries that it counts for, including intervals.
    pub(super) count: usize,
}

impl KeptRun {
    /// The encoded bytes after the key of the first entry; none if there is no run.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.run.as_ref().map_or(&[], |run| &run.borrow_owner().bytes)
    }

    /// The entries.
    #[inline]
    pub(super) fn entries<'a, T: RunEntry<'a>>(&'a self) -> &'a [T] {
        self.run.as_ref().map_or(&[], |run| T::of(run.borrow_dependent()))
    }

    /// Keeps the run that was decoded from these bytes, in the memory of the former one. Returns `false`, and leaves
    /// that as it is, if they are too many.
    fn set(&mut self, decode: DecodeRun, bytes: &[u8], count: usize) -> bool {
        if bytes.len() > BYTES_MAX {
            return false;
        }
        let new = || EncodedRun { bytes: Vec::new(), arena: Bump::new() };
        let mut encoded = self.run.take().map_or_else(new, DecodedRun::into_owner);
        encoded.bytes.clear();
        encoded.bytes.extend_from_slice(bytes);
        encoded.arena.reset();
        self.count = count;
        self.run = DecodedRun::try_new(encoded, |run| decode(&run.bytes, &run.arena)).ok();
        self.run.is_some()
    }
}

/// The run that is set aside for the next batch, and how useful the kept ones are.
#[derive(Debug)]
pub(super) struct SetAside {
    /// If none is set aside, the memory of one that was kept.
    run: KeptRun,
    is_set: bool,
    decode: DecodeRun,
    /// A bit for each kept run that was of use since it was last passed over.
    used: u8,
    /// The kept run that is looked at next when one has to make room.
    next: usize,
    patience: u8,
    /// The number of batches since a run was set aside.
    pause: u8,
}

/// The kept runs of resources or of attributes.
#[derive(Debug)]
pub(super) struct KeptRuns {
    pub(super) runs: [KeptRun; RUNS],
    pub(super) aside: SetAside,
}

impl KeptRuns {
    pub(super) fn new(decode: DecodeRun) -> KeptRuns {
        let run = KeptRun::default();
        let aside =
            SetAside { run, is_set: false, decode, used: 0, next: 0, patience: PATIENCE, pause: 0 };
        KeptRuns { runs: std::array::from_fn(|_| KeptRun::default()), aside }
    }

    /// Called between two batches: keeps the run that the last one has set aside.
    #[inline]
    pub(super) fn renew(&mut self) {
        if self.aside.is_set {
            self.replace();
        }
    }

    #[cold]
    fn replace(&mut self) {
        let SetAside { run, used, next, is_set, .. } = &mut self.aside;
        // One that was of use stays for another round.
        while *used >> (*next % RUNS) & 1 != 0 {
            *used &= !(1 << (*next % RUNS));
            *next += 1;
        }
        if let Some(replaced) = self.runs.get_mut(*next % RUNS) {
            std::mem::swap(replaced, run);
        }
        *next = (*next + 1) % RUNS;
        *is_set = false;
    }
}

impl SetAside {
    /// Called at the end of a batch. `used` has a bit for each kept run that was of use in it; `is_any_new` says
    /// whether it had to decode a run. Returns whether that is to be set aside.
    #[inline]
    pub(super) fn end_batch(&mut self, used: u8, is_any_new: bool) -> bool {
        if used != 0 {
            self.used |= used;
            self.patience = PATIENCE;
        }
        if !is_any_new {
            return false;
        }
        self.pause = self.pause.saturating_add(1);
        self.patience > 0 || self.pause >= PAUSE
    }

    /// Sets a run aside, unless it is too long.
    #[cold]
    pub(super) fn set(&mut self, bytes: &[u8], count: usize) {
        self.patience = self.patience.saturating_sub(1);
        self.pause = 0;
        self.is_set = self.run.set(self.decode, bytes, count);
    }
}
