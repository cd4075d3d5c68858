//! A cluster manager that sends from memory and swallows calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use offermill::engine::cluster_manager::{
    Call, ClusterManager, EncodedOffer, EncodedOffers, Event, EventSink, OfferPlace, ReadBatch,
    ReadOffers, Update,
};
use offermill::{Error, Offer, TaskState};

use crate::gate::Gate;
use crate::support::fleet::Batch;

/// The ids of an executor and its agent.
pub(crate) type Launched = (String, String);

/// What was called, as far as the bench must know it.
pub(crate) struct Cluster {
    /// Offers that were accepted or declined.
    pub(crate) answered: Gate,
    /// Updates that were acknowledged.
    pub(crate) acknowledged: Gate,
    launched: Mutex<Vec<Launched>>,
    offers: &'static [Offer<'static>],
    events: Mutex<Option<EventSink>>,
}

impl Cluster {
    /// One whose offers are `offers`.
    pub(crate) fn new(offers: &'static [Offer<'static>]) -> Cluster {
        Cluster {
            answered: Gate::new(),
            acknowledged: Gate::new(),
            launched: Mutex::default(),
            offers,
            events: Mutex::default(),
        }
    }

    fn launched(&self) -> MutexGuard<'_, Vec<Launched>> {
        self.launched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the executors that were launched since the last time.
    pub(crate) fn take_launched(&self, all: &mut impl Extend<Launched>) {
        all.extend(self.launched().drain(..));
    }

    /// The engine's ear.
    pub(crate) fn events(&self) -> EventSink {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(events.as_ref().expect("started"))
    }

    /// Swallows a call; what it was is counted last.
    pub(crate) fn take(&self, call: &Call<'_>) {
        match call {
            Call::Accept(accept) => {
                let pair = |name: &str| (name.to_owned(), accept.agent_id.to_owned());
                let executors = accept.executors.iter().map(|launch| pair(launch.executor));
                self.launched().extend(executors);
                self.answered.add(accept.offers.len() as u64);
            }
            Call::Decline { offers, .. } => self.answered.add(offers.len() as u64),
            Call::Acknowledge { .. } => self.acknowledged.add(1),
            _ => {}
        }
    }
}

impl ClusterManager for Cluster {
    fn start(&self, events: EventSink) -> Result<(), Error> {
        *self.events.lock().unwrap_or_else(PoisonError::into_inner) = Some(events);
        Ok(())
    }

    fn call(&self, call: Call<'_>) -> Result<(), Error> {
        self.take(&call);
        Ok(())
    }

    fn offer_reader(&self) -> Option<Box<dyn ReadOffers>> {
        Some(Box::new(Reader { offers: self.offers, rows: Vec::new() }))
    }

    fn stop(&self) {
        *self.events.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// An offer's bytes before its id: its place among the cluster's offers.
const NUMBER: usize = size_of::<u64>();

/// The batch that begins with offer `first`, as an event.
pub(crate) fn event(first: usize, batch: Batch) -> EncodedOffers {
    let (mut record, mut places) = (Vec::new(), Vec::new());
    for (offer, number) in batch.iter().zip(first as u64..) {
        let start = record.len();
        record.extend_from_slice(&number.to_le_bytes());
        record.extend_from_slice(offer.id.as_bytes());
        let (id, end) = (start + NUMBER, record.len());
        places.push(OfferPlace::new(start..end, id..end));
    }
    EncodedOffers::new(record.into(), places)
}

/// The report that an executor has ended well.
pub(crate) fn ended((executor, agent): Launched) -> Event {
    let update = Update::new(executor, TaskState::Finished).with_agent(agent);
    Event::Update(update.with_uuid(vec![7; 16]))
}

/// Finds offers by their numbers: what reading costs is another bench's matter.
struct Reader {
    offers: &'static [Offer<'static>],
    rows: Vec<Offer<'static>>,
}

impl ReadOffers for Reader {
    fn read<'r>(&'r mut self, batch: &'r [EncodedOffer]) -> ReadBatch<'r> {
        self.rows.clear();
        self.rows.extend(batch.iter().map(|offer| {
            let number = offer.bytes().first_chunk::<NUMBER>().expect("a number");
            self.offers[usize::try_from(u64::from_le_bytes(*number)).expect("an index")]
        }));
        ReadBatch::new(&self.rows, Vec::new())
    }
}
