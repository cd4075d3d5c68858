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
    /// The entry without what it borrows.
    type Kept;

    /// Copies what the entry borrows to `own`. Returns `None` if such an entry isn't kept.
    fn keep(&self, own: &mut OwnParts) -> Option<Self::Kept>;

    /// Returns the entry, which borrows from `own`.
    fn lend(kept: &Self::Kept, own: &'a OwnParts) -> Self;
}

/// What the entries of a kept run borrow.
#[derive(Debug, Default)]
pub(super) struct OwnParts {
    texts: String,
    ranges: Vec<PortRange>,
}

/// Where a text or some intervals lie in [`OwnParts`].
#[derive(Clone, Copy, Debug)]
pub(super) struct PartSpan {
    start: u32,
    end: u32,
}

impl OwnParts {
    fn keep_text(&mut self, text: &str) -> PartSpan {
        let start = self.texts.len() as u32;
        self.texts.push_str(text);
        PartSpan { start, end: self.texts.len() as u32 }
    }

    fn keep_ranges(&mut self, ranges: &[PortRange]) -> PartSpan {
        let start = self.ranges.len() as u32;
        self.ranges.extend_from_slice(ranges);
        PartSpan { start, end: self.ranges.len() as u32 }
    }

    #[inline]
    fn text(&self, PartSpan { start, end }: PartSpan) -> &str {
        self.texts.get(start as usize..end as usize).unwrap_or_default()
    }

    #[inline]
    fn ranges(&self, PartSpan { start, end }: PartSpan) -> &[PortRange] {
        self.ranges.get(start as usize..end as usize).unwrap_or_default()
    }
}

/// A run of entries. It has no bytes if there is none.
#[derive(Debug)]
pub(super) struct KeptRun<K> {
    /// The encoded bytes after the key of the first entry.
    pub(super) bytes: Vec<u8>,
    /// The number of entries that it counts for, including intervals.
    pub(super) count: usize,
    entries: Vec<K>,
    own: OwnParts,
}

impl<K> Default for KeptRun<K> {
    fn default() -> KeptRun<K> {
        let (bytes, entries) = (Vec::new(), Vec::new());
        KeptRun { bytes, count: 0, entries, own: OwnParts::default() }
    }
}

impl<K> KeptRun<K> {
    /// The entries.
    #[inline]
    pub(super) fn lend<'a, T: KeptEntry<'a, Kept = K>>(&'a self) -> impl Iterator<Item = T> {
        self.entries.iter().map(|kept| T::lend(kept, &self.own))
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.own.texts.clear();
        self.own.ranges.clear();
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
        let KeptRun { entries: kept, own, .. } = &mut self.run;
        let all_kept = bytes.len() <= BYTES_MAX
            && entries.iter().all(|entry| {
                let entry = entry.keep(own);
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

/// A resource without what it borrows.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeptResource {
    name: PartSpan,
    kind: ResourceKind,
    revocability: Revocability,
    /// The role of a static reservation outside of a stack; `None` is an empty stack.
    role: Option<PartSpan>,
    value: KeptValue,
}

#[derive(Clone, Copy, Debug)]
enum KeptValue {
    Scalar(Scalar),
    Ranges(PartSpan),
}

impl<'a> KeptEntry<'a> for Resource<'a> {
    type Kept = KeptResource;

    /// Neither sets nor dynamic or refined reservations are kept.
    fn keep(&self, own: &mut OwnParts) -> Option<KeptResource> {
        let Resource { name, kind, revocability, reservations, value } = *self;
        let role = match reservations {
            Reservations::PostRefinement([]) => None,
            Reservations::PreRefinement { role, dynamic: None } => Some(own.keep_text(role)),
            _ => return None,
        };
        let value = match value {
            Value::Scalar(scalar) => KeptValue::Scalar(scalar),
            Value::Ranges(ranges) => KeptValue::Ranges(own.keep_ranges(ranges)),
            Value::Set(_) => return None,
        };
        Some(KeptResource { name: own.keep_text(name), kind, revocability, role, value })
    }

    #[inline]
    fn lend(kept: &KeptResource, own: &'a OwnParts) -> Resource<'a> {
        let KeptResource { name, kind, revocability, role, value } = *kept;
        let reservations = match role {
            None => Reservations::PostRefinement(&[]),
            Some(role) => Reservations::PreRefinement { role: own.text(role), dynamic: None },
        };
        let value = match value {
            KeptValue::Scalar(scalar) => Value::Scalar(scalar),
            KeptValue::Ranges(ranges) => Value::Ranges(own.ranges(ranges)),
        };
        Resource { name: own.text(name), kind, revocability, reservations, value }
    }
}

/// An attribute without what it borrows.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeptAttribute {
    name: PartSpan,
    value: KeptAttributeValue,
}

#[derive(Clone, Copy, Debug)]
enum KeptAttributeValue {
    Text(PartSpan),
    Scalar(f64),
    Ranges(PartSpan),
}

impl<'a> KeptEntry<'a> for Attribute<'a> {
    type Kept = KeptAttribute;

    /// Sets aren't kept.
    fn keep(&self, own: &mut OwnParts) -> Option<KeptAttribute> {
        let value = match self.value {
            AttributeValue::Text(text) => KeptAttributeValue::Text(own.keep_text(text)),
            AttributeValue::Scalar(scalar) => KeptAttributeValue::Scalar(scalar),
            AttributeValue::Ranges(ranges) => KeptAttributeValue::Ranges(own.keep_ranges(ranges)),
            AttributeValue::Set(_) => return None,
        };
        Some(KeptAttribute { name: own.keep_text(self.name), value })
    }

    #[inline]
    fn lend(kept: &KeptAttribute, own: &'a OwnParts) -> Attribute<'a> {
        let value = match kept.value {
            KeptAttributeValue::Text(text) => AttributeValue::Text(own.text(text)),
            KeptAttributeValue::Scalar(scalar) => AttributeValue::Scalar(scalar),
            KeptAttributeValue::Ranges(ranges) => AttributeValue::Ranges(own.ranges(ranges)),
        };
        Attribute { name: own.text(kept.name), value }
    }
}
