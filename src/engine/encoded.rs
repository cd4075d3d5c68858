//! Offers in the form in which they came: what waits in the offer queue until a handler's thread reads it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::offer::Offer;

/// A batch of offers that are still encoded, all in one record.
#[derive(Clone)]
pub struct EncodedOffers {
    /// The bytes that the cluster sent.
    pub record: Arc<[u8]>,
    /// Where in them the offers lie. A place that isn't in the record is empty.
    pub places: Vec<OfferPlace>,
}

/// Where an offer lies in its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferPlace {
    /// Its bytes.
    pub offer: Range<usize>,
    /// Its id's text, in UTF-8; empty if it can't be found.
    pub id: Range<usize>,
}

/// An offer that is still encoded.
#[derive(Clone)]
pub struct EncodedOffer {
    record: Arc<[u8]>,
    place: OfferPlace,
}

/// What is done with a batch: with the offers that could be read, and the places of those that couldn't.
pub type UseOffers<'u> = dyn FnMut(&[Offer<'_>], &mut dyn Iterator<Item = usize>) + 'u;

/// Reads encoded offers, for one handler's thread, in memory that it can use again.
pub trait ReadOffers: Send {
    /// Reads `batch` and calls `use_them` once: with the offers that can be read, in their order, and the places in
    /// `batch` of those that can't.
    fn read(&mut self, batch: &[EncodedOffer], use_them: &mut UseOffers<'_>);
}

impl EncodedOffers {
    /// One by one.
    pub(crate) fn into_each(self) -> impl Iterator<Item = EncodedOffer> {
        let EncodedOffers { record, places } = self;
        places.into_iter().map(move |place| EncodedOffer { record: Arc::clone(&record), place })
    }
}

impl EncodedOffer {
    /// The offer's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.record.get(self.place.offer.clone()).unwrap_or_default()
    }

    /// The offer's id; empty if it can't be found or isn't text.
    #[must_use]
    pub fn id(&self) -> &str {
        std::str::from_utf8(self.id_bytes()).unwrap_or_default()
    }

    pub(crate) fn id_bytes(&self) -> &[u8] {
        self.record.get(self.place.id.clone()).unwrap_or_default()
    }
}

impl fmt::Debug for EncodedOffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, offers) = (self.record.len(), self.places.len());
        f.debug_struct("EncodedOffers").field("bytes", &bytes).field("offers", &offers).finish()
    }
}

impl fmt::Debug for EncodedOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncodedOffer").field("id", &self.id()).finish_non_exhaustive()
    }
}
