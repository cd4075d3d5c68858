//! Where a batch is put together: an arena that is used again for each.

use bumpalo::Bump;
use bumpalo::collections::Vec;

use super::cursor::{Malformed, Result, text};
use crate::offer::{Attribute, Resource};
use crate::resources::PortRange;

/// The most resources, attributes, intervals, items, reservations and labels of one offer together. (An agent whose
/// every other port of a thousand is taken has 500 intervals.)
pub const ENTRIES_MAX: usize = 8192;

/// Room for a batch, and scratch for the resource or attribute that is read.
pub(super) struct Desk<'a> {
    pub(super) arena: &'a Bump,
    /// Of all offers of the batch, one after the other.
    pub(super) resources: Vec<'a, Resource<'a>>,
    /// Of all offers of the batch, one after the other.
    pub(super) attributes: Vec<'a, Attribute<'a>>,
    /// Of the value that is read.
    pub(super) ranges: Vec<'a, PortRange>,
    /// Of the value that is read.
    pub(super) items: Vec<'a, &'a str>,
    /// How many attributes the last offer had, if it is there.
    before: usize,
    /// So many entries more may the offer have.
    room: usize,
}

/// How much a desk had to hold.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    pub(super) resources: usize,
    pub(super) attributes: usize,
}

impl<'a> Desk<'a> {
    pub(super) fn new(arena: &'a Bump, expected: Extent) -> Desk<'a> {
        Desk {
            arena,
            resources: Vec::with_capacity_in(expected.resources, arena),
            attributes: Vec::with_capacity_in(expected.attributes, arena),
            ranges: Vec::new_in(arena),
            items: Vec::new_in(arena),
            before: 0,
            room: 0,
        }
    }

    /// The next offer begins. Returns what there was before it.
    pub(super) fn begin(&mut self) -> Extent {
        self.room = ENTRIES_MAX;
        self.extent()
    }

    pub(super) fn extent(&self) -> Extent {
        Extent { resources: self.resources.len(), attributes: self.attributes.len() }
    }

    /// The offer that began at `before` is whole. Returns what there is now.
    pub(super) fn end(&mut self, before: Extent) -> Extent {
        self.before = self.attributes.len() - before.attributes;
        self.extent()
    }

    /// Drops the offer that began at `before`.
    pub(super) fn drop_since(&mut self, before: Extent) {
        self.resources.truncate(before.resources);
        self.attributes.truncate(before.attributes);
    }

    /// The name of an attribute. Most likely the last offer's had it at the same place: then there is no need to look
    /// at its letters.
    #[inline(always)]
    pub(super) fn attribute_name(&self, bytes: &'a [u8]) -> Result<&'a str> {
        let at = self.attributes.len().checked_sub(self.before);
        match at.and_then(|at| self.attributes.get(at)) {
            Some(last) if last.name.as_bytes() == bytes => Ok(last.name),
            _ => text(bytes),
        }
    }

    /// An entry comes.
    #[inline(always)]
    pub(super) fn count(&mut self) -> Result<()> {
        self.room = self.room.checked_sub(1).ok_or(Malformed::TooMany)?;
        Ok(())
    }

    /// The next value begins.
    #[inline(always)]
    pub(super) fn begin_value(&mut self) {
        self.ranges.clear();
        self.items.clear();
    }

    /// The intervals of the value that was read.
    pub(super) fn take_ranges(&self) -> &'a [PortRange] {
        self.arena.alloc_slice_copy(&self.ranges)
    }

    /// The items of the value that was read.
    pub(super) fn take_items(&self) -> &'a [&'a str] {
        self.arena.alloc_slice_copy(&self.items)
    }
}
