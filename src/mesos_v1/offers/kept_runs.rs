//! [`KeptRuns`]: runs of entries that are remembered from batch to batch, so that small batches gain by them as well.
//!
//! A kept run has its encoded bytes and its entries, with texts and intervals of its own: what an offer that repeats it
//! gets borrows from here. While a batch borrows, nothing changes but the run that is set aside for the next batch: the
//! first one that this batch had to decode. The next batch puts it in the place of one that was of no use lately.

use crate::offer::{
    Attribute, AttributeValue, Reservations, Resource, ResourceKind, Revocability, Value,
};
use crate::resources::{PortRange, Scalar};

/// The number of runs that are kept.
const RUNS: usize = 4;
/// The maximum length of a kept run, in encoded bytes: some thirty resources.
const BYTES_MAX: usize = 1024;
/// How many runs are set aside, one after the other, while no kept run is of use. After that only every [`PAUSE`]th
/// batch that decodes a run sets one aside.
const PATIENCE: u8 = 16;
/// The number of such batches from one that sets a run aside to the next, once [`PATIENCE`] is used up.
const PAUSE: u8 = 64;

/// An entry of a run that can be kept.
pub(super) trait KeptEntry<'a>: Copy {
    /// The entry with texts and intervals of its own.
    type Kept;

    /// Returns memory for an entry.
    fn empty() -> Self::Kept;

    /// Copies the entry to `kept`, whose memory is used again. Returns `false` if such an entry isn't kept.
    fn keep(&self, kept: &mut Self::Kept) -> bool;

    /// Returns the entry, which borrows from `kept`.
    fn lend(kept: &'a Self::Kept) -> Self;
}

/// A run of entries. It has no bytes if there is none.
#[derive(Debug)]
pub(super) struct KeptRun<K> {
    /// The encoded bytes after the key of the first entry.
    pub(super) bytes: Vec<u8>,
    /// The number of entries that it counts for, including intervals.
    pub(super) count: usize,
    /// The entries, and memory for more.
    entries: Vec<K>,
    length: usize,
}

impl<K> Default for KeptRun<K> {
    fn default() -> KeptRun<K> {
        KeptRun { bytes: Vec::new(), count: 0, entries: Vec::new(), length: 0 }
    }
}

impl<K> KeptRun<K> {
    /// The entries.
    #[inline]
    pub(super) fn lend<'a, T: KeptEntry<'a, Kept = K>>(&'a self) -> impl Iterator<Item = T> {
        self.entries.get(..self.length).unwrap_or_default().iter().map(T::lend)
    }

    /// Copies a run. If it is too long or has entries that aren't kept, there is none then.
    fn set<'a, T: KeptEntry<'a, Kept = K>>(&mut self, bytes: &[u8], count: usize, entries: &[T]) {
        self.bytes.clear();
        if bytes.len() > BYTES_MAX {
            return;
        }
        (self.length, self.count) = (entries.len(), count);
        if self.entries.len() < self.length {
            self.entries.resize_with(self.length, T::empty);
        }
        let all_kept = entries.iter().zip(&mut self.entries).all(|(entry, kept)| entry.keep(kept));
        if all_kept {
            self.bytes.extend_from_slice(bytes);
        }
    }
}

/// The run that is set aside for the next batch, and how useful the kept ones are.
#[derive(Debug)]
pub(super) struct SetAside<K> {
    run: KeptRun<K>,
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
pub(super) struct KeptRuns<K> {
    pub(super) runs: [KeptRun<K>; RUNS],
    pub(super) aside: SetAside<K>,
}

impl<K> Default for KeptRuns<K> {
    fn default() -> KeptRuns<K> {
        let run = KeptRun::default();
        let aside = SetAside { run, used: 0, next: 0, patience: PATIENCE, pause: 0 };
        KeptRuns { runs: std::array::from_fn(|_| KeptRun::default()), aside }
    }
}

impl<K> KeptRuns<K> {
    /// Called between two batches: keeps the run that the last one has set aside.
    #[inline]
    pub(super) fn renew(&mut self) {
        if !self.aside.run.bytes.is_empty() {
            self.replace();
        }
    }

    #[cold]
    fn replace(&mut self) {
        let SetAside { run, used, next, .. } = &mut self.aside;
        // One that was of use stays for another round.
        while *used >> (*next % RUNS) & 1 != 0 {
            *used &= !(1 << (*next % RUNS));
            *next += 1;
        }
        if let Some(replaced) = self.runs.get_mut(*next % RUNS) {
            std::mem::swap(replaced, run);
        }
        *next = (*next + 1) % RUNS;
        run.bytes.clear();
    }
}

impl<K> SetAside<K> {
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

    /// Sets a run aside, unless it is too long or has entries that aren't kept.
    #[cold]
    pub(super) fn set<'a, T: KeptEntry<'a, Kept = K>>(
        &mut self,
        bytes: &[u8],
        count: usize,
        entries: &[T],
    ) {
        self.patience = self.patience.saturating_sub(1);
        self.pause = 0;
        self.run.set(bytes, count, entries);
    }
}

/// Replaces what `own` holds by a copy, in the same memory.
fn copy(text: &str, own: &mut String) {
    own.clear();
    own.push_str(text);
}

/// A resource with texts and intervals of its own.
#[derive(Debug)]
pub(super) struct KeptResource {
    name: String,
    kind: ResourceKind,
    revocability: Revocability,
    /// Whether it has a static reservation outside of a stack; if not, the stack is empty.
    has_role: bool,
    /// The role of that reservation.
    role: String,
    /// None if it has intervals.
    scalar: Option<Scalar>,
    ranges: Vec<PortRange>,
}

impl<'a> KeptEntry<'a> for Resource<'a> {
    type Kept = KeptResource;

    fn empty() -> KeptResource {
        KeptResource {
            name: String::new(),
            kind: ResourceKind::Other,
            revocability: Revocability::NonRevocable,
            has_role: false,
            role: String::new(),
            scalar: None,
            ranges: Vec::new(),
        }
    }

    /// Neither sets nor dynamic or refined reservations are kept.
    fn keep(&self, kept: &mut KeptResource) -> bool {
        kept.has_role = match self.reservations {
            Reservations::PostRefinement([]) => false,
            Reservations::PreRefinement { role, dynamic: None } => {
                copy(role, &mut kept.role);
                true
            }
            _ => return false,
        };
        kept.ranges.clear();
        kept.scalar = match self.value {
            Value::Scalar(scalar) => Some(scalar),
            Value::Ranges(ranges) => {
                kept.ranges.extend_from_slice(ranges);
                None
            }
            Value::Set(_) => return false,
        };
        copy(self.name, &mut kept.name);
        (kept.kind, kept.revocability) = (self.kind, self.revocability);
        true
    }

    #[inline]
    fn lend(kept: &'a KeptResource) -> Resource<'a> {
        let KeptResource { name, kind, revocability, has_role, role, scalar, ranges } = kept;
        Resource {
            name,
            kind: *kind,
            revocability: *revocability,
            reservations: match has_role {
                false => Reservations::PostRefinement(&[]),
                true => Reservations::PreRefinement { role, dynamic: None },
            },
            value: match scalar {
                Some(scalar) => Value::Scalar(*scalar),
                None => Value::Ranges(ranges),
            },
        }
    }
}

/// An attribute with texts and intervals of its own.
#[derive(Debug)]
pub(super) struct KeptAttribute {
    name: String,
    kind: KeptKind,
    text: String,
    ranges: Vec<PortRange>,
}

/// What an attribute's value is.
#[derive(Clone, Copy, Debug)]
enum KeptKind {
    Text,
    Scalar(f64),
    Ranges,
}

impl<'a> KeptEntry<'a> for Attribute<'a> {
    type Kept = KeptAttribute;

    fn empty() -> KeptAttribute {
        let (name, text, ranges) = (String::new(), String::new(), Vec::new());
        KeptAttribute { name, kind: KeptKind::Text, text, ranges }
    }

    /// Sets aren't kept.
    fn keep(&self, kept: &mut KeptAttribute) -> bool {
        kept.ranges.clear();
        kept.kind = match self.value {
            AttributeValue::Text(text) => {
                copy(text, &mut kept.text);
                KeptKind::Text
            }
            AttributeValue::Scalar(scalar) => KeptKind::Scalar(scalar),
            AttributeValue::Ranges(ranges) => {
                kept.ranges.extend_from_slice(ranges);
                KeptKind::Ranges
            }
            AttributeValue::Set(_) => return false,
        };
        copy(self.name, &mut kept.name);
        true
    }

    #[inline]
    fn lend(kept: &'a KeptAttribute) -> Attribute<'a> {
        let value = match kept.kind {
            KeptKind::Text => AttributeValue::Text(&kept.text),
            KeptKind::Scalar(scalar) => AttributeValue::Scalar(scalar),
            KeptKind::Ranges => AttributeValue::Ranges(&kept.ranges),
        };
        Attribute { name: &kept.name, value }
    }
}
