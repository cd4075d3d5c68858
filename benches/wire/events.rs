//! OFFERS events of any size, made of recorded ones.

use offermill::mesos_v1::messages::{AgentId, Event, Offer, OfferId, event};
use offermill::mesos_v1::record_io::RecordReader;
use prost::Message as _;

/// What a real master sent; `tests/support/mesos/captures` tells where it is from.
const STREAM: &[u8] =
    include_bytes!("../../tests/support/mesos/captures/main-protobuf/stream.recordio");

/// The number of agents, which offer in turn.
pub(crate) const AGENTS: usize = 1000;

/// The offers of whole agents, as they were recorded: two of 350 bytes each, again and again.
fn recorded() -> Vec<Offer> {
    let mut reader = RecordReader::new(1 << 20);
    reader.push(STREAM);
    let records = std::iter::from_fn(|| reader.next()).map(|record| record.expect("a record"));
    let events = records.map(|record| Event::decode(&*record).expect("an event"));
    let offers = events.filter_map(|event| event.offers).flat_map(|offers| offers.offers);
    offers.filter(|offer| offer.resources.len() == 4).collect()
}

/// The recorded event that begins with such offers, but for ids, which are all different and as long: each agent offers
/// once, in events of `batch` offers.
pub(crate) fn events(batch: usize) -> Vec<Event> {
    let recorded = recorded();
    let mut offers = recorded.iter().cycle().enumerate().map(|(number, offer)| {
        let new = |id: &str| -> String {
            let (master, _) = id.rsplit_once('-').expect("a master's id");
            format!("{master}-{}{}", if id.contains("-O") { 'O' } else { 'S' }, 1000 + number)
        };
        Offer {
            id: OfferId { value: new(&offer.id.value) },
            agent_id: AgentId { value: new(&offer.agent_id.value) },
            ..offer.clone()
        }
    });
    let event = |_| Event {
        r#type: Some(event::Type::Offers as i32),
        offers: Some(event::Offers { offers: offers.by_ref().take(batch).collect() }),
        ..Event::default()
    };
    (0..AGENTS / batch).map(event).collect()
}

/// The same, but that no two offers have the same amounts, ports or attributes: what is remembered is of no use.
pub(crate) fn varied(batch: usize) -> Vec<Event> {
    let mut events = events(batch);
    let offers = events.iter_mut().filter_map(|event| event.offers.as_mut());
    for (number, offer) in offers.flat_map(|offers| &mut offers.offers).enumerate() {
        for resource in &mut offer.resources {
            let number = u32::try_from(number).expect("a small number");
            let scalar = resource.scalar.iter_mut();
            scalar.for_each(|scalar| scalar.value += f64::from(number) * 0.1);
            let ranges = resource.ranges.iter_mut().flat_map(|ranges| &mut ranges.range);
            ranges.for_each(|range| range.begin += u64::from(number));
        }
        offer.attributes.rotate_left(number % 3);
        for attribute in &mut offer.attributes {
            attribute.name = format!("{}{}", attribute.name, number % 7);
            let text = attribute.text.iter_mut();
            text.for_each(|text| text.value = format!("{}-{number}", text.value));
        }
    }
    events
}
