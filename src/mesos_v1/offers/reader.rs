//! [`OfferReader`]: decodes a batch of offers.

use std::time::SystemTime;

use bumpalo::Bump;
use bumpalo::collections::Vec;

use super::batch::{Extent, OfferBatch};
use super::cursor::{MalformedOffer, Result, WireCursor};
use super::kept_runs::{KeptRuns, RunEntries};
use super::offer::{ABOVE, ATTRIBUTES, RESOURCES, agent_id, read_offer};
use super::resource::{read_attributes, read_resources};
use super::unavailability::Unavailability;
use crate::engine::cluster_manager::{EncodedOffer, ReadBatch, ReadOffers, UnreadableOffer};
use crate::offer::{DEFAULT_ROLE, Offer};

/// The arena's maximum size between batches, in bytes. A larger arena is freed.
const ARENA_BYTES_KEPT: usize = 8 << 20;

/// Decodes offers from the protobuf wire format, one batch at a time, into memory that it reuses. In the steady state
/// it allocates nothing, but once in a batch at most for resources and once for attributes that it hasn't seen
/// lately: it sets them aside, to know them in the next batches.
#[derive(Debug)]
pub struct OfferReader {
    arena: Bump,
    default_role: Box<str>,
    /// The size of the last batch.
    expected: Extent,
    resources: KeptRuns,
    attributes: KeptRuns,
}

/// A decoded batch of offers. It borrows from the encoded bytes and from the reader's arena.
#[derive(Clone, Copy, Debug)]
pub struct DecodedOffers<'a> {
    /// The offers that were decoded, in the order of the batch.
    pub offers: &'a [Offer<'a>],
    /// The positions in the batch of the offers that can't be decoded, in ascending order, and the reasons.
    pub unreadable: &'a [(usize, MalformedOffer)],
    /// The positions in `offers` of those whose agents have planned maintenance, and when it is.
    pub unavailable: &'a [(usize, Unavailability)],
}

impl Default for OfferReader {
    fn default() -> OfferReader {
        OfferReader::new(DEFAULT_ROLE)
    }
}

impl OfferReader {
    /// Creates a reader for a framework with this role, which applies to offers without a role of their own. With
    /// [`DEFAULT_ROLE`], it stays open whose resources are used, see [`Offer::role`].
    #[must_use]
    pub fn new(default_role: &str) -> OfferReader {
        OfferReader {
            arena: Bump::new(),
            default_role: default_role.into(),
            expected: Extent::default(),
            resources: KeptRuns::new(|bytes, arena| decode_run(bytes, arena, RESOURCES)),
            attributes: KeptRuns::new(|bytes, arena| decode_run(bytes, arena, ATTRIBUTES)),
        }
    }

    /// Decodes offers, each from the bytes of an `Offer` message. The arena is reused after the returned batch is
    /// dropped.
    ///
    /// An offer that can't be decoded doesn't affect the others.
    pub fn decode<'r>(
        &'r mut self,
        offers: impl ExactSizeIterator<Item = &'r [u8]>,
    ) -> DecodedOffers<'r> {
        if self.arena.allocated_bytes() > ARENA_BYTES_KEPT {
            (self.arena, self.expected) = (Bump::new(), Extent::default());
        }
        self.arena.reset();
        self.resources.renew();
        self.attributes.renew();
        let OfferReader { arena, default_role, expected, resources, attributes } = self;
        let arena: &'r Bump = arena;
        let mut unreadable = Vec::new_in(arena);
        let kept = (&resources.runs[..], &attributes.runs[..]);
        let mut batch = OfferBatch::new(arena, offers.len(), *expected, kept);
        for (place, bytes) in offers.enumerate() {
            let before = batch.extent();
            batch.begin();
            if let Err(why) = read_offer(bytes, default_role, &mut batch) {
                batch.drop_since(before);
                unreadable.push((place, why));
            }
        }
        *expected = batch.extent();
        if !batch.unavailable.is_empty() {
            plan_around(&mut batch.offers, &batch.unavailable);
        }
        let (offers, unavailable) = batch.hand_out((&mut resources.aside, &mut attributes.aside));
        DecodedOffers { offers, unreadable: unreadable.into_bump_slice(), unavailable }
    }
}

/// Decodes a run of resources or of attributes, from what follows its first key, apart from a batch.
fn decode_run<'a>(bytes: &'a [u8], arena: &'a Bump, key: u32) -> Result<RunEntries<'a>> {
    let mut batch = OfferBatch::new(arena, 0, Extent::default(), (&[], &[]));
    batch.begin();
    let mut message = WireCursor::new(bytes, ABOVE);
    match key {
        RESOURCES => read_resources(&mut message, RESOURCES, &mut batch)?,
        _ => read_attributes(&mut message, ATTRIBUTES, &mut batch)?,
    }
    let (resources, attributes) = batch.into_entries();
    Ok(RunEntries { resources, attributes })
}

/// Sets in each offer when its agent's maintenance begins.
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
    fn read<'r>(&'r mut self, batch: &'r [EncodedOffer]) -> ReadBatch<'r> {
        let decoded = self.decode(batch.iter().map(EncodedOffer::bytes));
        let unreadable = decoded.unreadable.iter().map(|&(position, why)| {
            let agent_id = batch.get(position).and_then(|offer| agent_id(offer.bytes()));
            UnreadableOffer::new(position, why.to_string()).with_agent(agent_id)
        });
        let unreadable = unreadable.collect();
        ReadBatch { offers: decoded.offers, unreadable }
    }
}
