//! Encoded offers: the bytes that the cluster sent, which wait in the offer queue until a handler thread reads them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::limits::FOREIGN_ID_BYTES_MAX;
use crate::offer::Offer;

/// Offers that are still encoded, all in one record.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EncodedOffers {
    /// The bytes that the cluster sent.
    pub record: Arc<[u8]>,
    /// The offers' places in the record. A place outside of the record is read as empty.
    pub places: Vec<OfferPlace>,
}

/// The place of an offer in its record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OfferPlace {
    /// The range of its bytes.
    pub offer: Range<usize>,
    /// The range of its id's text, in UTF-8; empty if the id can't be found.
    pub id: Range<usize>,
}

/// An offer that is still encoded.
#[derive(Clone, PartialEq, Eq)]
pub struct EncodedOffer {
    record: Arc<[u8]>,
    place: OfferPlace,
}

/// A batch of offers that was read. It borrows from the encoded offers and from the reader's memory.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ReadBatch<'r> {
    /// The offers that could be read, in the order of the batch.
    pub offers: &'r [Offer<'r>],
    /// The offers that can't be read, in the order of the batch.
    pub unreadable: Vec<UnreadableOffer>,
}

/// An offer of a batch that can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadableOffer {
    /// Its position in the batch.
    pub position: usize,
    /// Its agent's id, if that can be read and has at most
    /// [`FOREIGN_ID_BYTES_MAX`](crate::limits::FOREIGN_ID_BYTES_MAX) bytes.
    pub agent_id: Option<String>,
    /// Why it can't be read. Equal causes should have equal texts: each is reported once per agent.
    pub why: String,
}

impl UnreadableOffer {
    /// Creates an offer that can't be read, of an unknown agent.
    #[must_use]
    pub fn new(position: usize, why: impl Into<String>) -> UnreadableOffer {
        UnreadableOffer { position, agent_id: None, why: why.into() }
    }

    /// Sets the agent. An id that is too long is left out.
    #[must_use]
    pub fn with_agent(self, agent_id: Option<&str>) -> UnreadableOffer {
        let agent_id = agent_id.filter(|id| id.len() <= FOREIGN_ID_BYTES_MAX);
        UnreadableOffer { agent_id: agent_id.map(str::to_owned), ..self }
    }
}

/// Reads encoded offers, for one handler thread, into memory that it uses again.
pub trait ReadOffers: Send {
    /// Reads `batch`. An offer that can't be read must not spoil the others.
    fn read<'r>(&'r mut self, batch: &'r [EncodedOffer]) -> ReadBatch<'r>;
}

impl OfferPlace {
    /// Creates the place of an offer, and of its id.
    #[must_use]
    pub const fn new(offer: Range<usize>, id: Range<usize>) -> OfferPlace {
        OfferPlace { offer, id }
    }
}

impl<'r> ReadBatch<'r> {
    /// Creates a batch that was read. Each position of the batch must be that of an offer or unreadable.
    #[must_use]
    pub const fn new(offers: &'r [Offer<'r>], unreadable: Vec<UnreadableOffer>) -> ReadBatch<'r> {
        ReadBatch { offers, unreadable }
    }
}

impl EncodedOffers {
    /// Creates offers at places in a record.
    #[must_use]
    pub fn new(record: Arc<[u8]>, places: Vec<OfferPlace>) -> EncodedOffers {
        EncodedOffers { record, places }
    }

    /// The offers one by one.
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

    /// The offer's id; empty if it can't be found, isn't text, or is too long.
    #[must_use]
    pub fn id(&self) -> &str {
        let id = Some(self.id_bytes()).filter(|id| id.len() <= FOREIGN_ID_BYTES_MAX);
        std::str::from_utf8(id.unwrap_or_default()).unwrap_or_default()
    }

    pub(crate) fn id_bytes(&self) -> &[u8] {
        self.record.get(self.place.id.clone()).unwrap_or_default()
    }
}

impl fmt::Debug for EncodedOffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.record.len();
        let offers = self.places.len();
        f.debug_struct("EncodedOffers").field("bytes", &bytes).field("offers", &offers).finish()
    }
}

impl fmt::Debug for EncodedOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncodedOffer").field("id", &self.id()).finish_non_exhaustive()
    }
}
