//! Decodes records of the master into the engine's events.

use super::calls;
use super::json_offers::{DecodeLimits, JsonOffers, Scanned, decode_each};
use super::owned;
use super::status;
use crate::engine::cluster_manager::{EncodedOffers, Event, OwnedOffer, RefusedOffer};
use crate::foreign_text::id_problem;
use crate::mesos_v1::codec::{Codec, Encoding};
use crate::mesos_v1::messages::event::Type;
use crate::mesos_v1::messages::{Call, Event as Message};
use crate::mesos_v1::offers::{begins_as_offers, begins_as_rescind, split};

/// The maximum length of a record that is decoded into messages, in bytes: crafted messages take up to a hundred times
/// as much memory as their bytes. Offers in protobuf are read in place, and of updates only what is essential is
/// decoded, so the limit doesn't apply to them. In JSON it allows about 10 000 offers; further offers of an event are
/// declined.
const DECODED_BYTES_MAX: usize = 8 << 20;
/// The maximum number of JSON objects in what is decoded into messages: one per 16 bytes, while those of real offers
/// have more than 25 on average.
const DECODED_OBJECTS_MAX: usize = DECODED_BYTES_MAX / 16;
/// The length in bytes up to which an event of offers in JSON is decoded as a whole, which is faster. Longer ones are
/// decoded offer by offer.
const WHOLE_BYTES_MAX: usize = 64 << 10;
/// What is decoded of a record in JSON.
const LIMITS: DecodeLimits =
    DecodeLimits { bytes: DECODED_BYTES_MAX, objects: DECODED_OBJECTS_MAX };

/// A decoded record.
pub(super) enum DecodedEvent {
    /// The subscription begins. `heartbeat` is the interval of heartbeats, in seconds.
    Subscribed { framework_id: String, heartbeat: Option<f64> },
    /// The subscription has ended, with the master's message.
    Failed(String),
    /// An event for the engine.
    Event(Event),
    /// Offers, of which some can't be decoded.
    Offers { offers: Vec<OwnedOffer>, refused: Vec<RefusedOffer> },
    /// The call that answers the event.
    Answer(Box<Call>),
    /// The event needs no action.
    Nothing,
}

/// Why a record can't be decoded. Its content is lost.
pub(super) struct Undecodable {
    pub(super) why: String,
    /// Whether it has offers, or rescinds one: offers can be used again, and are surely not used any more, only after
    /// the next subscription, because the master takes back all offers of this one.
    pub(super) concerns_offers: bool,
}

/// Decodes the records of one subscription.
pub(super) struct EventDecoder {
    encoding: Encoding,
    role: String,
}

impl EventDecoder {
    /// `role` is the role of offers that name none.
    pub(super) fn new(encoding: Encoding, role: &str) -> EventDecoder {
        EventDecoder { encoding, role: role.to_owned() }
    }

    /// Decodes a record, leniently if need be.
    pub(super) fn decode(
        &self,
        record: Vec<u8>,
        codec: &Codec,
    ) -> Result<DecodedEvent, Undecodable> {
        let mut places = Vec::new();
        if self.encoding == Encoding::Protobuf
            && split(&record, &mut places).map_err(|error| Undecodable {
                why: format!("an event can't be decoded: {error}"),
                concerns_offers: begins_as_offers(&record) || begins_as_rescind(&record),
            })?
        {
            // Not decoded here: the handler threads that answer the offers read them.
            let record = record.into();
            return Ok(DecodedEvent::Event(Event::Encoded(EncodedOffers { record, places })));
        }
        let is_json = self.encoding == Encoding::Json;
        if is_json && record.len() > WHOLE_BYTES_MAX {
            // Most long records are events of offers.
            match decode_each(&record, &self.role, LIMITS) {
                Scanned::Rescind | Scanned::Other => {}
                offers => return scanned(offers, String::new()),
            }
        }
        let is_short = record.len() <= DECODED_BYTES_MAX && (!is_json || LIMITS.allow(&record));
        let why = match is_short.then(|| codec.decode(&record)) {
            Some(Ok(event)) if rescinds_nothing(&event) => {
                let why = "an event rescinds an offer and doesn't name it".to_owned();
                return Err(Undecodable { why, concerns_offers: true });
            }
            Some(Ok(event)) => return Ok(self.interpret(event)),
            Some(Err(error)) => error.to_string(),
            None => {
                let bytes = record.len();
                format!(
                    "a record of {bytes} bytes, where {DECODED_BYTES_MAX} bytes and {DECODED_OBJECTS_MAX} objects are \
                     allowed"
                )
            }
        };
        let scan = match self.encoding {
            Encoding::Json => decode_each(&record, &self.role, LIMITS),
            Encoding::Protobuf if begins_as_rescind(&record) => Scanned::Rescind,
            Encoding::Protobuf => Scanned::Other,
        };
        // The ids of what is decoded leniently aren't sure, so it rescinds nothing.
        match scan {
            Scanned::Other => {}
            scan => return scanned(scan, why),
        }
        codec
            .decode_leniently(&record, is_short)
            .map(|event| self.interpret(event))
            .ok_or(Undecodable { why, concerns_offers: false })
    }

    fn interpret(&self, event: Message) -> DecodedEvent {
        match event.r#type() {
            Type::Subscribed => subscribed(event),
            Type::Offers => {
                let offers = event.offers.unwrap_or_default().offers.into_iter();
                DecodedEvent::Event(Event::Offers(
                    offers.map(|it| owned::offer(it, &self.role)).collect(),
                ))
            }
            Type::InverseOffers => {
                // The operator of the agents decides; executors that end with them are replaced.
                let inverse = event.inverse_offers.unwrap_or_default().inverse_offers;
                let ids = inverse.into_iter().map(|offer| offer.id).collect();
                DecodedEvent::Answer(Box::new(calls::accept_inverse_offers(ids)))
            }
            Type::Rescind => event.rescind.map_or(DecodedEvent::Nothing, |rescind| {
                DecodedEvent::Event(Event::Rescinded { offer_id: rescind.offer_id.value })
            }),
            Type::Update => event.update.map_or(DecodedEvent::Nothing, |it| {
                DecodedEvent::Event(Event::Update(status::update(it.status)))
            }),
            Type::UpdateOperationStatus => event
                .update_operation_status
                .and_then(|update| calls::acknowledge_operation(update.status))
                .map_or(DecodedEvent::Nothing, |call| DecodedEvent::Answer(Box::new(call))),
            Type::Failure => failure(event),
            Type::Error => {
                DecodedEvent::Failed(event.error.map_or_else(String::new, |error| error.message))
            }
            Type::Message => event.message.map_or(DecodedEvent::Nothing, |it| {
                DecodedEvent::Event(Event::Message {
                    executor: it.executor_id.value,
                    agent_id: it.agent_id.value,
                    data: it.data,
                })
            }),
            Type::RescindInverseOffer | Type::Heartbeat | Type::Unknown => DecodedEvent::Nothing,
        }
    }
}

/// Whether an event rescinds an offer, but doesn't say which.
fn rescinds_nothing(event: &Message) -> bool {
    event.r#type() == Type::Rescind
        && event.rescind.as_ref().is_none_or(|rescind| rescind.offer_id.value.is_empty())
}

/// The event of a record that was scanned. `why` says why it can't be decoded as a whole.
fn scanned(scanned: Scanned, why: String) -> Result<DecodedEvent, Undecodable> {
    match scanned {
        Scanned::Offers(JsonOffers { offers, refused }) => {
            Ok(DecodedEvent::Offers { offers, refused })
        }
        Scanned::Inseparable(why) => Err(Undecodable { why, concerns_offers: true }),
        Scanned::Rescind => Err(Undecodable { why, concerns_offers: true }),
        Scanned::Other => Err(Undecodable { why, concerns_offers: false }),
    }
}

fn subscribed(event: Message) -> DecodedEvent {
    match event.subscribed {
        Some(it) if !it.framework_id.value.is_empty() => {
            // Commands and variables of executors contain it.
            match id_problem("the framework's id", &it.framework_id.value) {
                Some(why) => DecodedEvent::Failed(why),
                None => DecodedEvent::Subscribed {
                    framework_id: it.framework_id.value,
                    heartbeat: it.heartbeat_interval_seconds,
                },
            }
        }
        _ => DecodedEvent::Nothing,
    }
}

/// A failure of an executor if one is named, otherwise of an agent. Command executors end with their task, which has an
/// update of its own.
fn failure(event: Message) -> DecodedEvent {
    let Some(failure) = event.failure else { return DecodedEvent::Nothing };
    match (failure.executor_id, failure.agent_id) {
        (Some(executor), _) => {
            DecodedEvent::Event(Event::ExecutorLost { executor: executor.value })
        }
        (None, Some(agent)) => DecodedEvent::Event(Event::AgentLost { agent_id: agent.value }),
        (None, None) => DecodedEvent::Nothing,
    }
}
