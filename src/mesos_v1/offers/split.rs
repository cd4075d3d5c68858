//! Where the offers of a record lie: a walk past everything else.

use super::cursor::{MalformedOffer, Result, WireCursor, known, sized, varint};
use crate::engine::cluster_manager::OfferPlace;

/// `Event.type`.
const TYPE: u32 = varint(1);
/// `Event.offers`.
const OFFERS: u32 = sized(3);
const EVENT: u32 = known(&[TYPE, OFFERS]);
/// The type of events that bring offers.
const TYPE_OFFERS: i32 = 2;

/// `Offers.offers`.
const OFFER: u32 = sized(1);
/// `Offer.id`.
const ID: u32 = sized(1);
/// `OfferID.value`.
const VALUE: u32 = sized(1);

/// So many offers may be in one record. A large cluster has some ten thousand agents; what has more offers is made to
/// cost memory.
pub const OFFERS_MAX: usize = 1 << 20;

/// Finds the offers in `record`, an event, and puts their places into `places`, whose former content is gone. Returns
/// whether it is an event of type `OFFERS`; of others there are no places.
///
/// Looks at nothing in an offer but for its id, and no further than to there if that comes first. (Of an offer with
/// several ids the kernel goes by the last one; then its place may be that of the first.) An offer whose id can't be
/// found for some flaw has an empty one.
///
/// # Errors
/// When the record is no event, its offers can't be told apart, or there are more than [`OFFERS_MAX`].
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

/// Finds the offers; returns the event's type.
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

/// The offers of a message that ends at `end`.
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
                // What is wrong with an offer, its reader will say.
                None => drop(find_id(offer, end, &mut id)),
            }
            places.push(OfferPlace { offer: start..end, id });
        } else {
            offers.skip(key, known(&[OFFER]))?;
        }
    }
    Ok(())
}

/// Where the id is of an offer that ends at `end` and doesn't begin with it: the last one, as everywhere in protobuf.
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
