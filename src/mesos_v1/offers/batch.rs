//! Where a batch is put together: an arena that is used again for each.

use bumpalo::Bump;
use bumpalo::collections::Vec;

use super::cursor::{MalformedOffer, Result};
use super::interner::{Interner, Span};
use super::unavailability::Unavailability;
use crate::offer::{Attribute, Offer, Resource};
use crate::resources::PortRange;

/// The most resources, attributes, intervals, items, reservations and labels of one offer together. (An agent whose
/// every other port of a thousand is taken has 500 intervals.)
pub const ENTRIES_MAX: usize = 8192;

/// Room for a batch, and scratch for the resource or attribute that is read.
pub(super) struct OfferBatch<'a> {
    pub(super) arena: &'a Bump,
    /// Those that could be read.
    pub(super) offers: Vec<'a, Offer<'a>>,
    /// What of `resources` and `attributes` each of the offers has.
    shares: Vec<'a, (Span, Span)>,
    /// Places in `offers`, and when their agents are away.
    pub(super) unavailable: Vec<'a, (usize, Unavailability)>,
    pub(super) resources: Interner<'a, Resource<'a>>,
    pub(super) attributes: Interner<'a, Attribute<'a>>,
    /// Of the value that is read.
    pub(super) ranges: Vec<'a, PortRange>,
    /// Of the value that is read.
    pub(super) items: Vec<'a, &'a str>,
    /// So many entries more may the offer have.
    room: usize,
}

/// How much a desk had to hold.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    pub(super) resources: usize,
    pub(super) attributes: usize,
}

impl<'a> OfferBatch<'a> {
    pub(super) fn new(arena: &'a Bump, offers: usize, expected: Extent) -> OfferBatch<'a> {
        OfferBatch {
            arena,
            offers: Vec::with_capacity_in(offers, arena),
            shares: Vec::with_capacity_in(offers, arena),
            unavailable: Vec::new_in(arena),
            resources: Interner::new(arena, expected.resources),
            attributes: Interner::new(arena, expected.attributes),
            ranges: Vec::new_in(arena),
            items: Vec::new_in(arena),
            room: 0,
        }
    }

    /// The next offer begins.
    #[inline(always)]
    pub(super) fn begin(&mut self) {
        self.room = ENTRIES_MAX;
        self.resources.begin();
        self.attributes.begin();
    }

    pub(super) fn extent(&self) -> Extent {
        Extent { resources: self.resources.len(), attributes: self.attributes.len() }
    }

    /// The offer that is read is this, but for its resources and attributes.
    #[inline(always)]
    pub(super) fn end(&mut self, offer: Offer<'a>) {
        self.offers.push(offer);
        self.shares.push((self.resources.share(), self.attributes.share()));
    }

    /// Drops the offer that began when there was as much as `before`.
    #[cold]
    pub(super) fn drop_since(&mut self, before: Extent) {
        self.resources.cut(before.resources);
        self.attributes.cut(before.attributes);
    }

    /// An entry comes.
    #[inline(always)]
    pub(super) fn count(&mut self) -> Result<()> {
        self.count_all(1)
    }

    /// So many entries come.
    #[inline(always)]
    pub(super) fn count_all(&mut self, count: usize) -> Result<()> {
        self.room = self.room.checked_sub(count).ok_or(MalformedOffer::TooMany)?;
        Ok(())
    }

    /// So many entries more may the offer have.
    #[inline(always)]
    pub(super) fn room(&self) -> usize {
        self.room
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

    /// Gives each offer its resources and attributes. Returns the offers, and those whose agents are away.
    pub(super) fn hand_out(mut self) -> (&'a [Offer<'a>], &'a [(usize, Unavailability)]) {
        let (resources, attributes) = (self.resources.into_slice(), self.attributes.into_slice());
        for (offer, (of_resources, of_attributes)) in self.offers.iter_mut().zip(&self.shares) {
            offer.resources = of_resources.of(resources);
            offer.attributes = of_attributes.of(attributes);
        }
        (self.offers.into_bump_slice(), self.unavailable.into_bump_slice())
    }
}
