//! Zero-copy decoding of offers: the bytes of an OFFERS event become [`Offer`](crate::Offer)s that borrow from them,
//! without intermediate messages.
//!
//! ```text
//! record ─► split ─► positions of offers and ids ─► OfferReader ─► Offers, borrowed from the record and an arena
//! ```
//!
//! # Fields
//!
//! The fields that the kernel needs are decoded: ids, host name, resources, attributes, the allocated role, the fault
//! domain, planned maintenance. All other fields are skipped without validating their content.
//!
//! If a field occurs more than once, the last value counts; messages are merged, and their repeated fields are joined,
//! as in prost. An offer without an offer id or an agent id is unreadable; any other missing field is empty or zero. A
//! value of a type that is invalid in its place is an empty set. A resource without any reservation field is taken to
//! have the form with a reservation stack, which is empty.
//!
//! The tests compare this reader with prost: it rejects the same input, and decodes the same values.

mod batch;
mod cursor;
mod interner;
mod kept_runs;
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
#[cfg(feature = "mesos")]
pub(crate) use split::begins_as_rescind;
pub use split::{OFFERS_MAX, begins_as_offers, split};
pub use unavailability::Unavailability;
