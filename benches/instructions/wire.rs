//! From the bytes of OFFERS events to offers and decisions, a hundred offers an event.

#[expect(dead_code, reason = "the wire's own bench uses the rest")]
#[path = "../wire/events.rs"]
mod events;

use std::hint::black_box;

use offermill::mesos_v1::offers::{OfferReader, split};
use offermill::{Decisions, Offer};

use crate::support::{self, NOW, UNMET};
use crate::{Scene, Size, counted};

pub(crate) const SCENES: [(&str, Scene); 3] = [
    ("wire/split", split_only),
    ("wire/split and read", |size| read(size, |offers| _ = black_box(offers))),
    ("wire/constraint unmet", |size| {
        let mut handler = support::kernel(&support::config(UNMET, None)).handler();
        let mut decisions = Decisions::new();
        read(size, |offers| {
            handler.resource_offers(offers, NOW, &mut decisions);
            assert_eq!(decisions.declines().len(), offers.len());
        })
    }),
];

const BATCH: usize = 100;

fn records() -> Vec<Vec<u8>> {
    events::events(BATCH).iter().map(prost::Message::encode_to_vec).collect()
}

fn split_only(size: Size) -> u64 {
    let (records, mut places) = (records(), Vec::new());
    let mut elements = 0;
    for record in (0..size.laps).flat_map(|_| &records) {
        assert_eq!(counted(|| split(record, &mut places)), Ok(true));
        elements += places.len() as u64;
    }
    elements
}

fn read(size: Size, mut use_them: impl FnMut(&[Offer<'_>])) -> u64 {
    let (records, mut places, mut reader) = (records(), Vec::new(), OfferReader::default());
    let mut elements = 0;
    for lap in 0..=size.laps {
        for record in &records {
            let mut work = || {
                assert_eq!(split(record, &mut places), Ok(true));
                let offers = places.iter().map(|place| &record[place.offer.clone()]);
                use_them(reader.decode(offers).offers);
            };
            if lap == 0 {
                work();
            } else {
                counted(work);
                elements += BATCH as u64;
            }
        }
    }
    elements
}
