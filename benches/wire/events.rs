//! OFFERS events of any size, made of recorded ones.

use offermill::cluster::mesos::wire::messages::{AgentId, Event, Offer, OfferId, event};
use offermill::cluster::mesos::wire::record_io::RecordReader;
use prost::Message as _;

/// What a real master sent; `tests/support/mesos/captures` tells where it is from.
const STREAM: &[u8] =
    include_bytes!("../../tests/support/mesos/captures/main-protobuf/stream.recordio");

/// So many agents offer, one after the other.
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
