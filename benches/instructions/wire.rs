//! From the bytes of OFFERS events to offers and decisions, a hundred offers an event, or as few as a master sends for
//! three agents.

#[path = "../wire/events.rs"]
mod events;

use std::hint::black_box;

use offermill::mesos_v1::messages::Event;
use offermill::mesos_v1::offers::{OfferReader, split};
use offermill::{Decisions, Offer};

use crate::support::{self, NOW, UNMET};
use crate::{Scene, Size, counted};

pub(crate) const SCENES: [(&str, Scene); 8] = [
    ("wire/split", split_only),
    ("wire/split and read", |size| read(size, events::events(BATCH), unused)),
    ("wire/split and read, 3", |size| read(size, events::events(FEW), unused)),
    ("wire/split and read, varied", |size| read(size, events::varied(BATCH), unused)),
    ("wire/split and read, varied, 3", |size| read(size, events::varied(FEW), unused)),
    ("wire/constraint unmet", |size| declined(size, BATCH)),
    ("wire/constraint unmet, 3", |size| declined(size, FEW)),
    ("wire/constraint unmet, 1", |size| declined(size, 1)),
];

const BATCH: usize = 100;
/// Two or three offers are what a master sends for three agents.
const FEW: usize = 3;

fn records(events: &[Event]) -> Vec<Vec<u8>> {
    events.iter().map(prost::Message::encode_to_vec).collect()
}

fn split_only(size: Size) -> u64 {
    let (records, mut places) = (records(&events::events(BATCH)), Vec::new());
    let mut elements = 0;
    for record in (0..size.laps).flat_map(|_| &records) {
        assert_eq!(counted(|| split(record, &mut places)), Ok(true));
        elements += places.len() as u64;
    }
    elements
}

fn unused(offers: &[Offer<'_>]) {
    black_box(offers);
}

fn declined(size: Size, batch: usize) -> u64 {
    let mut handler = support::kernel(&support::config(UNMET, None)).handler();
    let mut decisions = Decisions::new();
    read(size, events::events(batch), |offers| {
        handler.resource_offers(offers, NOW, &mut decisions);
        assert_eq!(decisions.declines().len(), offers.len());
    })
}

fn read(size: Size, events: Vec<Event>, mut use_them: impl FnMut(&[Offer<'_>])) -> u64 {
    let (records, mut places, mut reader) = (records(&events), Vec::new(), OfferReader::default());
    let mut elements = 0;
    for lap in 0..=size.laps {
        for record in &records {
            let mut work = || {
                assert_eq!(split(record, &mut places), Ok(true));
                let offers = places.iter().map(|place| &record[place.offer.clone()]);
                let offers = reader.decode(offers).offers;
                use_them(offers);
                offers.len() as u64
            };
            if lap == 0 {
                work();
            } else {
                elements += counted(work);
            }
        }
    }
    elements
}
