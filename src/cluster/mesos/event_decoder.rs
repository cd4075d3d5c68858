//! What a record says to the framework.

use super::calls;
use super::owned;
use super::status;
use crate::engine::cluster_manager::{EncodedOffers, Event};
use crate::mesos_v1::codec::{Codec, Encoding};
use crate::mesos_v1::messages::event::Type;
use crate::mesos_v1::messages::{Call, Event as Message};
use crate::mesos_v1::offers::split;

/// Decoded messages take up to a hundred times as much memory as their bytes, if someone means it; so what isn't read
/// in place may not be long. In JSON that goes for offers, too: they come to about 10 000 in an event.
const DECODED_BYTES_MAX: usize = 8 << 20;

/// What is to be done about a record.
pub(super) enum EventDecoder {
    /// The subscription stands; a heartbeat comes so often, in seconds.
    Subscribed { framework_id: String, heartbeat: Option<f64> },
    /// The subscription is over, in the master's words.
    Failed(String),
    /// The engine is to know.
    Event(Event),
    /// The master wants an answer that is always the same.
    Answer(Box<Call>),
    /// Nothing, or nothing that matters here.
    Nothing,
}

/// Reads records of one subscription.
pub(super) struct Reader {
    encoding: Encoding,
    role: String,
}

impl Reader {
    /// `role` is whose offers are that don't say.
    pub(super) fn new(encoding: Encoding, role: &str) -> Reader {
        Reader { encoding, role: role.to_owned() }
    }

    /// Reads a record. An error spoils the subscription: after a record that can't be read nobody knows what was
    /// missed.
    pub(super) fn read(&self, record: Vec<u8>, codec: &Codec) -> Result<EventDecoder, String> {
        let mut places = Vec::new();
        if self.encoding == Encoding::Protobuf
            && split(&record, &mut places).map_err(|error| error.to_string())?
        {
            // Left as they are: the threads that answer them read them, too.
            let record = record.into();
            return Ok(EventDecoder::Event(Event::Encoded(EncodedOffers { record, places })));
        }
        if record.len() > DECODED_BYTES_MAX {
            let bytes = record.len();
            return Err(format!(
                "a record of {bytes} bytes, where {DECODED_BYTES_MAX} are allowed"
            ));
        }
        let event = codec.decode(&record).map_err(|error| error.to_string())?;
        Ok(self.interpret(event))
    }

    fn interpret(&self, event: Message) -> EventDecoder {
        match event.r#type() {
            Type::Subscribed => subscribed(event),
            Type::Offers => {
                let offers = event.offers.unwrap_or_default().offers.into_iter();
                EventDecoder::Event(Event::Offers(
                    offers.map(|it| owned::offer(it, &self.role)).collect(),
                ))
            }
            Type::InverseOffers => {
                // Whoever operates the agents decides; executors that go with them are replaced.
                let inverse = event.inverse_offers.unwrap_or_default().inverse_offers;
                let ids = inverse.into_iter().map(|offer| offer.id).collect();
                EventDecoder::Answer(Box::new(calls::accept_inverse_offers(ids)))
            }
            Type::Rescind => event.rescind.map_or(EventDecoder::Nothing, |rescind| {
                EventDecoder::Event(Event::Rescinded { offer_id: rescind.offer_id.value })
            }),
            Type::Update => event.update.map_or(EventDecoder::Nothing, |it| {
                EventDecoder::Event(Event::Update(status::update(it.status)))
            }),
            Type::UpdateOperationStatus => event
                .update_operation_status
                .and_then(|update| calls::acknowledge_operation(update.status))
                .map_or(EventDecoder::Nothing, |call| EventDecoder::Answer(Box::new(call))),
            Type::Failure => failure(event),
            Type::Error => {
                EventDecoder::Failed(event.error.map_or_else(String::new, |error| error.message))
            }
            Type::RescindInverseOffer | Type::Message | Type::Heartbeat | Type::Unknown => {
                EventDecoder::Nothing
            }
        }
    }
}

fn subscribed(event: Message) -> EventDecoder {
    match event.subscribed {
        Some(it) if !it.framework_id.value.is_empty() => EventDecoder::Subscribed {
            framework_id: it.framework_id.value,
            heartbeat: it.heartbeat_interval_seconds,
        },
        _ => EventDecoder::Nothing,
    }
}

/// With an executor, that is lost; else its agent. A command's executor ends with its task, which tells of itself.
fn failure(event: Message) -> EventDecoder {
    let Some(failure) = event.failure else { return EventDecoder::Nothing };
    match (failure.executor_id, failure.agent_id) {
        (Some(executor), _) => {
            EventDecoder::Event(Event::ExecutorLost { executor: executor.value })
        }
        (None, Some(agent)) => EventDecoder::Event(Event::AgentLost { agent_id: agent.value }),
        (None, None) => EventDecoder::Nothing,
    }
}
