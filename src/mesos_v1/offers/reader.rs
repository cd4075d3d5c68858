//! A batch of offers from their bytes.

use std::time::SystemTime;

use bumpalo::Bump;
use bumpalo::collections::Vec;

use super::batch::{Extent, OfferBatch};
use super::cursor::Malformed;
use super::offer::read_offer;
use super::unavailability::Unavailability;
use crate::engine::cluster_manager::{EncodedOffer, ReadOffers, UseOffers};
use crate::offer::{DEFAULT_ROLE, Offer};

/// An arena that has grown beyond this is given back.
const ARENA_BYTES_KEPT: usize = 8 << 20;

/// Reads offers in the form of the wire, a batch at a time, into memory that it uses again: in the steady state it
/// allocates nothing.
#[derive(Debug)]
pub struct OfferReader {
    arena: Bump,
    default_role: Box<str>,
    /// What the last batch held.
    expected: Extent,
}

/// What a batch of encoded offers says.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Those that could be read, in their order.
    pub offers: &'a [Offer<'a>],
    /// Those that couldn't: their places in the batch, and why.
    pub unreadable: &'a [(usize, Malformed)],
    /// Places in `offers` of those whose agents will be under maintenance, and when.
    pub unavailable: &'a [(usize, Unavailability)],
}

impl Default for OfferReader {
    fn default() -> OfferReader {
        OfferReader::new(DEFAULT_ROLE)
    }
}

impl OfferReader {
    /// A reader for a framework with this role: offers that don't say their own have it. [`DEFAULT_ROLE`] leaves open
    /// whose resources are taken, see [`Offer::role`].
    #[must_use]
    pub fn new(default_role: &str) -> OfferReader {
        OfferReader {
            arena: Bump::new(),
            default_role: default_role.into(),
            expected: Extent::default(),
        }
    }

    /// Reads offers, each the bytes of an `Offer` message, and hands them to `use_them`.
    ///
    /// An offer that can't be read spoils none of the others.
    pub fn read<'r, R>(
        &'r mut self,
        offers: impl ExactSizeIterator<Item = &'r [u8]>,
        use_them: impl FnOnce(&Batch<'r>) -> R,
    ) -> R {
        if self.arena.allocated_bytes() > ARENA_BYTES_KEPT {
            (self.arena, self.expected) = (Bump::new(), Extent::default());
        }
        self.arena.reset();
        let OfferReader { arena, default_role, expected } = self;
        let arena: &'r Bump = arena;
        let mut unreadable = Vec::new_in(arena);
        let mut desk = OfferBatch::new(arena, offers.len(), *expected);
        for (place, bytes) in offers.enumerate() {
            let before = desk.extent();
            desk.begin();
            if let Err(why) = read_offer(bytes, default_role, &mut desk) {
                desk.drop_since(before);
                unreadable.push((place, why));
            }
        }
        *expected = desk.extent();
        if !desk.unavailable.is_empty() {
            plan_around(&mut desk.offers, &desk.unavailable);
        }
        let (offers, unavailable) = desk.hand_out();
        use_them(&Batch { offers, unreadable: unreadable.into_bump_slice(), unavailable })
    }
}

/// Tells offers when their agents' maintenance begins.
#[cold]
fn plan_around(offers: &mut [Offer<'_>], unavailable: &[(usize, Unavailability)]) {
    let now = SystemTime::now();
    for (place, unavailability) in unavailable {
        if let Some(offer) = offers.get_mut(*place) {
            offer.maintenance_in = unavailability.begins_in(now);
        }
    }
}

impl ReadOffers for OfferReader {
    fn read(&mut self, batch: &[EncodedOffer], use_them: &mut UseOffers<'_>) {
        OfferReader::read(self, batch.iter().map(EncodedOffer::bytes), |batch| {
            let mut unreadable = batch.unreadable.iter().map(|(place, _)| *place);
            use_them(batch.offers, &mut unreadable);
        });
    }
}
