//! OFFERS events. The zero-copy reader of offers decodes and rejects the same offers as prost; and if prost can decode
//! the complete Mesos messages, they have the same ids, names and roles.
//!
//! Input: the record of an event, in protobuf.

#![cfg_attr(fuzzing, no_main)]

#[path = "../../tests/mesos/offers/agreement.rs"]
mod agreement;
#[path = "../../tests/mesos/offers/mirror.rs"]
mod mirror;

use std::cell::RefCell;

use offermill::limits;
use offermill::mesos_v1::messages::Event;
use offermill::mesos_v1::offers::{OfferReader, split};
use prost::Message;

thread_local! {
    /// One reader for all inputs, because no input may affect the next one.
    static READER: RefCell<OfferReader> = RefCell::new(OfferReader::new(agreement::ROLE));
}

fn check(data: &[u8]) {
    READER.with_borrow_mut(|reader| {
        agreement::check(reader, data);
        whole_messages(reader, data);
    });
}

/// Compares with complete messages. Prost rejects more of them, because of malformed fields that the reader skips.
fn whole_messages(reader: &mut OfferReader, data: &[u8]) {
    let Ok(event) = Event::decode(data) else { return };
    let mut places = Vec::new();
    let is_offers = split(data, &mut places).expect("prost can read it");
    assert_eq!(is_offers, event.r#type == Some(agreement::OFFERS));
    let offers = event.offers.unwrap_or_default().offers;
    let whole = |offer: &&_| {
        let offermill::mesos_v1::messages::Offer { id, agent_id, hostname, .. } = offer;
        let is_id = |id: &str| (1..=limits::FOREIGN_ID_BYTES_MAX).contains(&id.len());
        // Attributes are longer than allowed only in records that are longer than those that are tried.
        is_id(&id.value) && is_id(&agent_id.value) && hostname.len() <= limits::HOSTNAME_BYTES_MAX
    };
    let expected: Vec<_> = offers.iter().filter(whole).collect();
    let batch = reader.decode(places.iter().map(|place| &data[place.offer.clone()]));
    assert_eq!(batch.offers.len(), if is_offers { expected.len() } else { 0 });
    for (offer, expected) in batch.offers.iter().zip(expected) {
        assert_eq!(
            (offer.id, offer.agent_id),
            (&*expected.id.value, &*expected.agent_id.value)
        );
        assert_eq!(offer.hostname, expected.hostname);
        let role = expected.allocation_info.as_ref().and_then(|info| info.role.as_deref());
        assert_eq!(offer.role, role.unwrap_or(agreement::ROLE));
        let names = offer.resources.iter().map(|resource| resource.name);
        assert!(names.eq(expected.resources.iter().map(|resource| &*resource.name)));
        let names = offer.attributes.iter().map(|attribute| attribute.name);
        assert!(names.eq(expected.attributes.iter().map(|attribute| &*attribute.name)));
    }
}

/// Prints the record as decoded by prost.
fn show(data: &[u8]) {
    println!("{:#?}", mirror::Event::decode(data));
}

offermill_fuzz::harness!(check, show);
