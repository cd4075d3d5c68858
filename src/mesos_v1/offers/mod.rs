//! Offers straight from the wire: the bytes of an OFFERS event become [`Offer`](crate::Offer)s that borrow from them,
//! without messages in between.
//!
//! ```text
//! record ─► split ─► where each offer and its id lie ─► OfferReader ─► Offers, borrowed from the record and an arena
//! ```
//!
//! # What is read
//!
//! What the kernel needs to know: ids, host name, resources, attributes, the allocated role, the fault domain, planned
//! maintenance. All other fields are passed over without a look inside.
//!
//! Of a field that comes twice the last one counts; messages are merged, and their repeated fields are joined, as prost
//! does. Ids that are missing or empty make an offer unreadable; anything else that is missing is empty or zero. A
//! value of a type that has no place here is an empty set. A resource without any word of reservations is taken to be
//! in the form that has a stack of them, with an empty one.
//!
//! The tests hold it against prost: what prost refuses, this refuses, and else both read the same.

mod batch;
mod cursor;
mod interner;
mod offer;
mod reader;
mod reservation;
mod resource;
mod split;
mod unavailability;
mod value;

pub use batch::ENTRIES_MAX;
pub use cursor::MalformedOffer;
pub use reader::{DecodedOffers, OfferReader};
pub use split::{OFFERS_MAX, split};
pub use unavailability::Unavailability;
