//! [`split()`]: finds the positions of the offers in a record, without decoding them.

use super::cursor::{MalformedOffer, Result, WireCursor, known, sized, varint};
use crate::engine::cluster_manager::OfferPlace;

/// `Event.type`.
const TYPE: u32 = varint(1);
/// `Event.offers`.
const OFFERS: u32 = sized(3);
const EVENT: u32 = known(&[TYPE, OFFERS]);
/// The type of events that contain offers.
const TYPE_OFFERS: i32 = 2;
#[cfg(feature = "mesos")]
const TYPE_RESCIND: i32 = 3;

/// `Event.Offers.offers`.
const OFFER: u32 = sized(1);
/// `Offer.id`.
const ID: u32 = sized(1);
/// `OfferID.value`.
const VALUE: u32 = sized(1);

/// The maximum number of offers in one record. A large cluster has about 10 000 agents, so a record with more offers is
/// an attempt to exhaust memory.
pub const OFFERS_MAX: usize = 1 << 20;

/// Finds the offers in `record`, an encoded event. Replaces the content of `places` with their positions. Returns
/// whether the event's type is `OFFERS`; other events have no positions.
///
/// It reads only the ids of offers, and stops at the id if it comes first. (The kernel uses the last id of an offer
/// that has several; the position may be that of the first.) If an offer's id can't be found because the offer is
/// malformed, its position is empty.
///
/// # Errors
/// If the record is not an event, if its offers can't be separated, or if there are more than [`OFFERS_MAX`].
pub fn split(
    record: &[u8],
    places: &mut Vec<OfferPlace>,
) -> std::result::Result<bool, MalformedOffer> {
    places.clear();
    let kind = walk(record, places);
    if kind != Ok(TYPE_OFFERS) {
        places.clear();
    }
    kind.map(|kind| kind == TYPE_OFFERS)
}

/// Whether `record`, of which [`split()`] may fail to find the offers, is an event of type `OFFERS` as far as it can be
/// read. Masters write the type first.
#[must_use]
pub fn begins_as_offers(record: &[u8]) -> bool {
    begins_as(record, TYPE_OFFERS)
}

/// Whether `record`, which may not be readable, is an event of type `RESCIND` as far as it can be read.
#[cfg(feature = "mesos")]
pub(crate) fn begins_as_rescind(record: &[u8]) -> bool {
    begins_as(record, TYPE_RESCIND)
}

fn begins_as(record: &[u8], kind: i32) -> bool {
    let mut event = WireCursor::new(record, 0);
    matches!(event.key(), Ok(Some(TYPE))) && event.number() == Ok(kind)
}

/// Finds the offers, and returns the event's type.
fn walk(record: &[u8], places: &mut Vec<OfferPlace>) -> Result<i32> {
    let mut kind = 0;
    let mut event = WireCursor::new(record, 0);
    while let Some(key) = event.key()? {
        match key {
            TYPE => kind = event.number()?,
            OFFERS => {
                let offers = event.message()?;
                each_offer(offers, record.len() - event.left(), places)?;
            }
            key => event.skip(key, EVENT)?,
        }
    }
    Ok(kind)
}

/// Finds the offers of an `Offers` message that ends at `end`.
fn each_offer(mut offers: WireCursor<'_>, end: usize, places: &mut Vec<OfferPlace>) -> Result<()> {
    while let Some(key) = offers.key()? {
        if key == OFFER {
            if places.len() == OFFERS_MAX {
                return Err(MalformedOffer::TooMany);
            }
            let offer = offers.message()?;
            let end = end - offers.left();
            let mut id = 0..0;
            let start = end - offer.left();
            match offer.first_text() {
                // Masters begin with the id.
                Some((at, length)) => id = start + at..start + at + length,
                // If the offer is malformed, its reader reports the error.
                None => drop(find_id(offer, end, &mut id)),
            }
            places.push(OfferPlace { offer: start..end, id });
        } else {
            offers.skip(key, known(&[OFFER]))?;
        }
    }
    Ok(())
}

/// Finds the id of an offer that ends at `end` and doesn't begin with its id. If there are several, the last one
/// counts, as always in protobuf.
fn find_id(
    mut offer: WireCursor<'_>,
    end: usize,
    place: &mut std::ops::Range<usize>,
) -> Result<()> {
    while let Some(key) = offer.key()? {
        if key == ID {
            let mut id = offer.message()?;
            let end = end - offer.left();
            while let Some(key) = id.key()? {
                if key == VALUE {
                    let value = id.bytes()?;
                    let end = end - id.left();
                    *place = end - value.len()..end;
                } else {
                    id.skip(key, known(&[VALUE]))?;
                }
            }
        } else {
            offer.skip(key, known(&[ID]))?;
        }
    }
    Ok(())
}
