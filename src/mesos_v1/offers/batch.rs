//! The arena-backed buffers in which a batch of decoded offers is built.

use bumpalo::Bump;
use bumpalo::collections::Vec;

use super::cursor::{MalformedOffer, Result};
use super::interner::{Interner, Share};
use super::kept_runs::{KeptRun, SetAside};
use super::unavailability::Unavailability;
use crate::offer::{Attribute, Offer, Resource};
use crate::resources::PortRange;

/// The maximum number of resources, attributes, intervals, items, reservations and labels of one offer in total. (An
/// agent with every other one of 1000 ports taken has 500 intervals.)
pub const ENTRIES_MAX: usize = 8192;

/// Buffers for a batch, and scratch for the resource or attribute that is being decoded.
pub(super) struct OfferBatch<'a> {
    pub(super) arena: &'a Bump,
    /// The offers that were decoded successfully.
    pub(super) offers: Vec<'a, Offer<'a>>,
    /// For each offer, its resources and attributes.
    shares: Vec<'a, (Share, Share)>,
    /// Positions in `offers` of those whose agents have planned maintenance, and when it is.
    pub(super) unavailable: Vec<'a, (usize, Unavailability)>,
    pub(super) resources: Interner<'a, Resource<'a>>,
    pub(super) attributes: Interner<'a, Attribute<'a>>,
    /// Scratch: the intervals of the current value.
    pub(super) ranges: Vec<'a, PortRange>,
    /// Scratch: the items of the current value.
    pub(super) items: Vec<'a, &'a str>,
    /// The number of entries that the current offer may still have.
    room: usize,
}

/// The numbers of entries that a batch held.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    pub(super) resources: usize,
    pub(super) attributes: usize,
}

impl<'a> OfferBatch<'a> {
    /// Creates the buffers of a batch of `offers` offers. Always inlined, as [`OfferBatch::hand_out`] is, so that they
    /// aren't copied.
    #[inline(always)]
    pub(super) fn new(
        arena: &'a Bump,
        offers: usize,
        expected: Extent,
        kept: (&'a [KeptRun], &'a [KeptRun]),
    ) -> OfferBatch<'a> {
        OfferBatch {
            arena,
            offers: Vec::with_capacity_in(offers, arena),
            shares: Vec::with_capacity_in(offers, arena),
            unavailable: Vec::new_in(arena),
            resources: Interner::new(arena, expected.resources, kept.0),
            attributes: Interner::new(arena, expected.attributes, kept.1),
            ranges: Vec::new_in(arena),
            items: Vec::new_in(arena),
            room: 0,
        }
    }

    /// Begins the next offer.
    #[inline(always)]
    pub(super) fn begin(&mut self) {
        self.room = ENTRIES_MAX;
        self.resources.begin();
        self.attributes.begin();
    }

    pub(super) fn extent(&self) -> Extent {
        Extent { resources: self.resources.len(), attributes: self.attributes.len() }
    }

    /// Ends the current offer, whose resources and attributes are set later.
    #[inline(always)]
    pub(super) fn end(&mut self, offer: Offer<'a>) {
        self.offers.push(offer);
        self.shares.push((self.resources.share(), self.attributes.share()));
    }

    /// Drops the current offer. `before` is the extent at its beginning.
    #[cold]
    pub(super) fn drop_since(&mut self, before: Extent) {
        self.resources.cut(before.resources);
        self.attributes.cut(before.attributes);
    }

    /// Counts an entry. Fails if the offer has too many.
    #[inline(always)]
    pub(super) fn count(&mut self) -> Result<()> {
        self.count_all(1)
    }

    /// Counts several entries. Fails if the offer has too many.
    #[inline(always)]
    pub(super) fn count_all(&mut self, count: usize) -> Result<()> {
        self.room = self.room.checked_sub(count).ok_or(MalformedOffer::TooMany)?;
        Ok(())
    }

    /// Returns the number of entries that the current offer may still have.
    #[inline(always)]
    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// Begins the next value.
    #[inline(always)]
    pub(super) fn begin_value(&mut self) {
        self.ranges.clear();
        self.items.clear();
    }

    /// Copies the intervals of the current value to the arena.
    pub(super) fn take_ranges(&self) -> &'a [PortRange] {
        self.arena.alloc_slice_copy(&self.ranges)
    }

    /// Copies the items of the current value to the arena.
    pub(super) fn take_items(&self) -> &'a [&'a str] {
        self.arena.alloc_slice_copy(&self.items)
    }

    /// Returns the entries of all offers that were decoded here.
    pub(super) fn into_entries(self) -> (&'a [Resource<'a>], &'a [Attribute<'a>]) {
        (self.resources.into_entries().decoded, self.attributes.into_entries().decoded)
    }

    /// Sets the resources and attributes of all offers. Returns the offers, and the planned maintenance of their
    /// agents. Sets runs aside for the next batch.
    #[inline(always)]
    pub(super) fn hand_out(
        mut self,
        aside: (&mut SetAside, &mut SetAside),
    ) -> (&'a [Offer<'a>], &'a [(usize, Unavailability)]) {
        self.resources.set_aside(aside.0);
        self.attributes.set_aside(aside.1);
        let resources = self.resources.into_entries();
        let attributes = self.attributes.into_entries();
        for (offer, (of_resources, of_attributes)) in self.offers.iter_mut().zip(&self.shares) {
            offer.resources = resources.of(*of_resources);
            offer.attributes = attributes.of(*of_attributes);
        }
        (self.offers.into_bump_slice(), self.unavailable.into_bump_slice())
    }
}
