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
    /// The entry with copies of what it borrows.
    type Kept: 'a;

    /// Copies the entry. Returns `None` if such an entry isn't kept.
    fn keep(&self) -> Option<Self::Kept>;

    /// Returns the entry, which borrows from the copy.
    fn lend(kept: &'a Self::Kept) -> Self;
}

/// A run of entries. It has no bytes if there is none.
#[derive(Debug)]
pub(super) struct KeptRun<K> {
    /// The encoded bytes after the key of the first entry.
    pub(super) bytes: Vec<u8>,
    /// The number of entries that it counts for, including intervals.
    pub(super) count: usize,
    entries: Vec<K>,
}

impl<K> Default for KeptRun<K> {
    fn default() -> KeptRun<K> {
        KeptRun { bytes: Vec::new(), count: 0, entries: Vec::new() }
    }
}

impl<K> KeptRun<K> {
    /// The entries.
    #[inline]
    pub(super) fn lend<'a, T: KeptEntry<'a, Kept = K>>(&'a self) -> impl Iterator<Item = T> {
        self.entries.iter().map(T::lend)
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
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
        run.clear();
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
        let kept = &mut self.run.entries;
        let all_kept = bytes.len() <= BYTES_MAX
            && entries.iter().all(|entry| {
                let entry = entry.keep();
                entry.map(|entry| kept.push(entry)).is_some()
            });
        if all_kept {
            self.run.bytes.extend_from_slice(bytes);
            self.run.count = count;
        } else {
            self.run.clear();
        }
    }
}

/// A resource with copies of what it borrows.
#[derive(Debug)]
pub(super) struct KeptResource {
    name: Box<str>,
    kind: ResourceKind,
    revocability: Revocability,
    /// The role of a static reservation outside of a stack; `None` is an empty stack.
    role: Option<Box<str>>,
    value: KeptValue,
}

#[derive(Debug)]
enum KeptValue {
    Scalar(Scalar),
    Ranges(Box<[PortRange]>),
}

impl<'a> KeptEntry<'a> for Resource<'a> {
    type Kept = KeptResource;

    /// Neither sets nor dynamic or refined reservations are kept.
    fn keep(&self) -> Option<KeptResource> {
        let Resource { name, kind, revocability, reservations, value } = *self;
        let role = match reservations {
            Reservations::PostRefinement([]) => None,
            Reservations::PreRefinement { role, dynamic: None } => Some(role.into()),
            _ => return None,
        };
        let value = match value {
            Value::Scalar(scalar) => KeptValue::Scalar(scalar),
            Value::Ranges(ranges) => KeptValue::Ranges(ranges.into()),
            Value::Set(_) => return None,
        };
        Some(KeptResource { name: name.into(), kind, revocability, role, value })
    }

    #[inline]
    fn lend(kept: &'a KeptResource) -> Resource<'a> {
        let KeptResource { name, kind, revocability, role, value } = kept;
        let reservations = match role {
            None => Reservations::PostRefinement(&[]),
            Some(role) => Reservations::PreRefinement { role, dynamic: None },
        };
        let value = match value {
            KeptValue::Scalar(scalar) => Value::Scalar(*scalar),
            KeptValue::Ranges(ranges) => Value::Ranges(ranges),
        };
        Resource { name, kind: *kind, revocability: *revocability, reservations, value }
    }
}

/// An attribute with copies of what it borrows.
#[derive(Debug)]
pub(super) struct KeptAttribute {
    name: Box<str>,
    value: KeptAttributeValue,
}

#[derive(Debug)]
enum KeptAttributeValue {
    Text(Box<str>),
    Scalar(f64),
    Ranges(Box<[PortRange]>),
}

impl<'a> KeptEntry<'a> for Attribute<'a> {
    type Kept = KeptAttribute;

    /// Sets aren't kept.
    fn keep(&self) -> Option<KeptAttribute> {
        let value = match self.value {
            AttributeValue::Text(text) => KeptAttributeValue::Text(text.into()),
            AttributeValue::Scalar(scalar) => KeptAttributeValue::Scalar(scalar),
            AttributeValue::Ranges(ranges) => KeptAttributeValue::Ranges(ranges.into()),
            AttributeValue::Set(_) => return None,
        };
        Some(KeptAttribute { name: self.name.into(), value })
    }

    #[inline]
    fn lend(kept: &'a KeptAttribute) -> Attribute<'a> {
        let value = match &kept.value {
            KeptAttributeValue::Text(text) => AttributeValue::Text(text),
            KeptAttributeValue::Scalar(scalar) => AttributeValue::Scalar(*scalar),
            KeptAttributeValue::Ranges(ranges) => AttributeValue::Ranges(ranges),
        };
        Attribute { name: &kept.name, value }
    }
}
