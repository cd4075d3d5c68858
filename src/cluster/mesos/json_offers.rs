//! Decodes the offers of an event in JSON one by one, if the event is long or can't be decoded as a whole: an offer
//! with a value that the messages can't represent must not spoil the others, and crafted offers must not take much
//! memory.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::owned;
use crate::engine::cluster_manager::{OwnedOffer, RefusedOffer};
use crate::mesos_v1::json::OptionalName;
use crate::mesos_v1::lenient::repair_json;
use crate::mesos_v1::messages::event::Type;
use crate::mesos_v1::messages::{AgentId, Offer, OfferId};

/// The maximum number of offers in an event. The shortest offers of a real agent have about 500 bytes, so a record of
/// 64 MiB has no more.
const JSON_OFFERS_MAX: usize = 1 << 17;
/// Why an offer isn't decoded, if the event is the cause and not the agent.
const LONG_EVENT: &str = "the event has more offers than are decoded at once";
/// Why an offer can't be answered, or not be used: its id, or its agent's id, stands for another.
const SPOILT_ID: &str = "its id or its agent's id isn't text";
/// What stands for bytes and escapes that aren't Unicode.
const REPLACED: char = '\u{fffd}';

/// The offers of one event.
pub(super) struct JsonOffers {
    pub(super) offers: Vec<OwnedOffer>,
    /// Those that can't be decoded or have no id, and those for which the limits leave no room.
    pub(super) refused: Vec<RefusedOffer>,
}

/// What a record of offers may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecodeLimits {
    /// The maximum length of the offers that are decoded, in bytes.
    pub(super) bytes: usize,
    /// The maximum number of JSON objects in them: an empty one takes hundreds of times as much memory as its bytes.
    pub(super) objects: usize,
}

impl DecodeLimits {
    /// Whether a value is within the limits.
    pub(super) fn allow(self, json: &[u8]) -> bool {
        self.after(json).is_some()
    }

    /// What is left after a value, if it is within the limits.
    fn after(self, json: &[u8]) -> Option<DecodeLimits> {
        let bytes = self.bytes.checked_sub(json.len())?;
        // Those in texts count, too, which only makes the limit stricter.
        let objects = json.iter().filter(|byte| **byte == b'{').count();
        Some(DecodeLimits { bytes, objects: self.objects.checked_sub(objects)? })
    }
}

/// What a record has, as far as it can be told without decoding it.
pub(super) enum Scanned {
    /// The offers of an event of this type.
    Offers(JsonOffers),
    /// Offers that can't be told apart, and why.
    Inseparable(String),
    /// An event that rescinds an offer.
    Rescind,
    /// Another event, or no event.
    Other,
}

/// Decodes the offers of a record within the limits. `role` is the role of offers that name none.
pub(super) fn decode_each(record: &[u8], role: &str, limits: DecodeLimits) -> Scanned {
    let text = String::from_utf8_lossy(record);
    let (mut event, error) = scan(&text);
    let repaired;
    // The names of fields may have lone surrogates, too.
    if error.is_some() {
        repaired = String::from_utf8(repair_json(text.as_bytes())).unwrap_or_default();
        let (again, error) = scan(&repaired);
        if let Some(error) = error {
            return match again.kind {
                Some(Type::Rescind) => Scanned::Rescind,
                Some(Type::Offers) => Scanned::inseparable(&error),
                // The type may follow what isn't JSON.
                None if again.has_offers => Scanned::inseparable(&error),
                _ => Scanned::Other,
            };
        }
        event = again;
    }
    match event.kind {
        Some(Type::Offers) => Scanned::Offers(decode_all(&event.offers, role, limits)),
        Some(Type::Rescind) => Scanned::Rescind,
        _ => Scanned::Other,
    }
}

impl Scanned {
    fn inseparable(error: &serde_json::Error) -> Scanned {
        Scanned::Inseparable(format!("the offers of an event can't be told apart: {error}"))
    }
}

/// Returns what an event has, up to the error if there is one.
fn scan(text: &str) -> (ScannedEvent<'_>, Option<serde_json::Error>) {
    let mut event = ScannedEvent::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let error = deserializer.deserialize_map(EventFields(&mut event)).err();
    (event, error)
}

fn decode_all(raw_offers: &[&RawValue], role: &str, limits: DecodeLimits) -> JsonOffers {
    let mut decoded = JsonOffers { offers: Vec::new(), refused: Vec::new() };
    let mut left = limits;
    for raw in raw_offers {
        let raw = raw.get();
        let Some(rest) = left.after(raw.as_bytes()) else {
            let offer = refused(raw, LONG_EVENT.to_owned());
            // If other offers leave no room, the agent isn't named, so there is one report for all.
            let is_too_long = !limits.allow(raw.as_bytes());
            decoded.refused.push(if is_too_long { offer } else { offer.with_agent(None) });
            continue;
        };
        left = rest;
        match decode::<Offer>(raw) {
            Ok(offer) if is_text(&offer.id.value) && is_text(&offer.agent_id.value) => {
                decoded.offers.push(owned::offer(offer, role));
            }
            Ok(_) => decoded.refused.push(refused(raw, SPOILT_ID.to_owned())),
            Err(why) => decoded.refused.push(refused(raw, why)),
        }
    }
    decoded
}

/// Whether nothing was replaced in an id.
fn is_text(id: &str) -> bool {
    !id.contains(REPLACED)
}

/// Decodes a value, in which texts may have lone surrogates. Errors don't say where in the value they are, so that
/// equal causes have equal texts.
fn decode<T: for<'de> Deserialize<'de>>(raw: &str) -> Result<T, String> {
    let decoded = serde_json::from_str(raw);
    let decoded = decoded
        .or_else(|error| serde_json::from_slice(&repair_json(raw.as_bytes())).map_err(|_| error));
    decoded.map_err(|error| {
        let why = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        format!("it isn't valid JSON of an offer: {}", why.strip_suffix(&place).unwrap_or(&why))
    })
}

/// An offer of which no more than its ids is decoded. If its id isn't text, or if it has several that differ, it has
/// none: it would be that of another offer.
fn refused(raw: &str, why: String) -> RefusedOffer {
    let ids = serde_json::from_str(raw).or_else(|_| {
        let repaired = repair_json(raw.as_bytes());
        serde_json::from_slice(&repaired)
    });
    let OfferIds { id, agent_id } = ids.unwrap_or_default();
    let id = id.filter(|id| is_text(id)).unwrap_or_default();
    RefusedOffer::new(id, why).with_agent(agent_id)
}

/// The ids of an offer, if they can be read.
#[derive(Default)]
struct OfferIds {
    id: Option<String>,
    agent_id: Option<String>,
}

impl<'de> Deserialize<'de> for OfferIds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OfferIds, D::Error> {
        deserializer.deserialize_map(OfferIdsVisitor)
    }
}

struct OfferIdsVisitor;

impl<'de> Visitor<'de> for OfferIdsVisitor {
    type Value = OfferIds;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("an offer")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OfferIds, A::Error> {
        let (mut ids, mut agent_ids) = (Vec::new(), Vec::new());
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            match &*key {
                "id" => ids.push(decode(map.next_value::<&RawValue>()?.get()).ok()),
                "agent_id" => agent_ids.push(decode(map.next_value::<&RawValue>()?.get()).ok()),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let ids = ids.into_iter().map(|id| id.map(|OfferId { value }| value));
        let agent_ids = agent_ids.into_iter().map(|id| id.map(|AgentId { value }| value));
        Ok(OfferIds { id: only(ids), agent_id: only(agent_ids) })
    }
}

/// The value, if there is one and all are equal.
fn only(values: impl Iterator<Item = Option<String>>) -> Option<String> {
    let mut values = values;
    let first = values.next()??;
    values.all(|value| value.as_ref() == Some(&first)).then_some(first)
}

#[derive(Deserialize)]
#[serde(transparent)]
struct EventType(#[serde(deserialize_with = "OptionalName::<Type>::deserialize")] Option<i32>);

#[derive(Default, Deserialize)]
#[serde(default)]
struct OfferList<'a> {
    #[serde(borrow, deserialize_with = "bounded")]
    offers: Vec<&'a RawValue>,
}

/// What was read of an event.
#[derive(Default)]
struct ScannedEvent<'a> {
    kind: Option<Type>,
    offers: Vec<&'a RawValue>,
    /// Whether there is a field for offers, even if it can't be read.
    has_offers: bool,
}

/// Reads an event. What was read is kept even if what follows is no JSON.
struct EventFields<'e, 'a>(&'e mut ScannedEvent<'a>);

impl<'de> Visitor<'de> for EventFields<'_, 'de> {
    type Value = ();

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            match &*key {
                "type" => {
                    let EventType(number) = map.next_value()?;
                    self.0.kind = number.and_then(|number| Type::try_from(number).ok());
                }
                "offers" => {
                    self.0.has_offers = true;
                    let more = map.next_value::<OfferList<'de>>()?.offers;
                    if self.0.offers.len() + more.len() > JSON_OFFERS_MAX {
                        return Err(A::Error::custom("there are too many"));
                    }
                    self.0.offers.extend(more);
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Reads at most [`JSON_OFFERS_MAX`] offers.
fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<&'de RawValue>, D::Error> {
    deserializer.deserialize_seq(BoundedList)
}

struct BoundedList;

impl<'de> Visitor<'de> for BoundedList {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("a list of offers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut offers = Vec::new();
        while let Some(offer) = list.next_element()? {
            if offers.len() == JSON_OFFERS_MAX {
                return Err(A::Error::custom("there are too many"));
            }
            offers.push(offer);
        }
        Ok(offers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(record: &str, bytes: usize) -> Option<Result<[Vec<String>; 2], String>> {
        decoded_within(record, DecodeLimits { bytes, objects: 1 << 20 })
    }

    fn decoded_within(
        record: &str,
        limits: DecodeLimits,
    ) -> Option<Result<[Vec<String>; 2], String>> {
        let JsonOffers { offers, refused } = match decode_each(record.as_bytes(), "r", limits) {
            Scanned::Offers(offers) => offers,
            Scanned::Inseparable(why) => return Some(Err(why)),
            Scanned::Rescind | Scanned::Other => return None,
        };
        let offers = offers.into_iter().map(|it| format!("{} {}", it.id, it.agent_id));
        let refused = refused.into_iter().map(|RefusedOffer { id, agent_id, why }| {
            format!("{id} {}: {why}", agent_id.unwrap_or_default())
        });
        Some(Ok([offers.collect(), refused.collect()]))
    }

    /// Goal: each offer is decoded alone, and of those that can't be, what can be of their ids. Method: an event with
    /// one of each kind, with the type before and after the offers.
    #[test]
    fn offers_are_decoded_one_by_one() {
        let [(kind, offers)] = [(
            r#""type":"OFFERS""#,
            r#""offers":{"x":[],"offers":[
                {"id":{"value":"O-1"},"agent_id":{"value":"S-1"},"hostname":"\ud800"},
                {"id":{"value":"O-2"},"agent_id":{"value":"S-2"},"hostname":null},
                {"id":{"value":"O-3"},"agent_id":7},
                {"id":8,"agent_id":{"value":"S-\udc00"}},
                7
            ]}"#,
        )];
        let why = "it isn't valid JSON of an offer: invalid type:";
        let expected = [
            vec!["O-1 S-1".to_owned()],
            vec![
                format!("O-2 S-2: {why} null, expected a string"),
                format!("O-3 : {why} integer `7`, expected struct AgentId"),
                format!(" S-\u{fffd}: {why} integer `8`, expected struct OfferId"),
                format!(" : {why} integer `7`, expected struct Offer"),
            ],
        ];
        for event in [format!("{{{kind},{offers}}}"), format!("{{{offers},\"a\":[],{kind}}}")] {
            assert_eq!(decoded(&event, 1 << 20), Some(Ok(expected.clone())));
        }
    }

    /// Goal: an offer is answered with its own id only, and is declined if that can be read. Method: names of fields,
    /// ids and agents' ids with lone surrogates; ids that are repeated, equal and different.
    #[test]
    fn only_ids_that_are_text_are_used() {
        let surrogate = "\\ud800";
        let offers = format!(
            r#"{{"{surrogate}":1,"id":{{"value":"O-1"}},"agent_id":{{"value":"S-1"}},"resources":7}},
            {{"id":{{"value":"O-2{surrogate}"}},"agent_id":{{"value":"S-2"}}}},
            {{"id":{{"value":"O-3"}},"agent_id":{{"value":"S-3{surrogate}"}}}},
            {{"id":{{"value":"O-4"}},"id":{{"value":"O-4"}},"agent_id":{{"value":"S-4"}}}},
            {{"id":{{"value":"O-5"}},"id":{{"value":"O-6"}},"agent_id":{{"value":"S-5"}}}}"#
        );
        let event = format!(r#"{{"type":"OFFERS","offers":{{"offers":[{offers}]}}}}"#);
        let [offers, refused] = decoded(&event, 1 << 20).unwrap().unwrap();
        assert_eq!(offers, [""; 0]);
        let ids: Vec<_> = refused.iter().map(|it| it.split(':').next().unwrap()).collect();
        assert_eq!(ids, ["O-1 S-1", " S-2", "O-3 S-3\u{fffd}", "O-4 S-4", " S-5"]);
    }

    /// Goal: crafted offers take bounded memory. Method: an offer with more empty objects than are allowed, before a
    /// usual one.
    #[test]
    fn the_objects_that_are_decoded_are_bounded() {
        let empty = "{},".repeat(100);
        let offers = format!(
            r#"{{"id":{{"value":"O-1"}},"resources":[{empty}{{}}]}},{{"id":{{"value":"O-2"}}}}"#
        );
        let event = format!(r#"{{"type":"OFFERS","offers":{{"offers":[{offers}]}}}}"#);
        let limits = DecodeLimits { bytes: 1 << 20, objects: 100 };
        let expected = [vec!["O-2 ".to_owned()], vec![format!("O-1 : {LONG_EVENT}")]];
        assert_eq!(decoded_within(&event, limits), Some(Ok(expected)));
    }

    /// Goal: no more bytes are decoded than allowed, and an offer that is too long doesn't take the room of others.
    /// Method: three offers, and room for two short ones.
    #[test]
    fn the_bytes_that_are_decoded_are_bounded() {
        let offer =
            |id: u32, more: &str| format!(r#"{{"id":{{"value":"O-{id}"}},"hostname":"{more}"}}"#);
        let long = "x".repeat(100);
        let offers = [offer(1, ""), offer(2, &long), offer(3, ""), offer(4, "")];
        let event = format!(r#"{{"type":"OFFERS","offers":{{"offers":[{}]}}}}"#, offers.join(","));
        let room = offers[0].len() + offers[2].len() + 1;
        let refused = [2, 4].map(|id| format!("O-{id} : {LONG_EVENT}"));
        let expected = [vec!["O-1 ".to_owned(), "O-3 ".to_owned()], refused.to_vec()];
        assert_eq!(decoded(&event, room), Some(Ok(expected)));
    }

    /// Goal: an event whose offers can't be told apart is recognised as one with offers, and others aren't. Method:
    /// events of the wrong structure, that aren't JSON after the type, and with too many offers.
    #[test]
    fn events_without_separable_offers_are_told() {
        let many = format!(
            r#"{{"type":"OFFERS","offers":{{"offers":[{}7]}}}}"#,
            "7,".repeat(JSON_OFFERS_MAX)
        );
        for event in [
            r#"{"type":"OFFERS","offers":7}"#,
            r#"{"type":"OFFERS","offers":{"offers":{}}}"#,
            r#"{"type":"OFFERS","offers":{"offers":[{}{}]}}"#,
            r#"{"offers":{"offers":[{"id":{"value":"O-1"},"x":inf}]},"type":"OFFERS"}"#,
            &many,
        ] {
            assert!(matches!(decoded(event, 1 << 20), Some(Err(_))), "{event:.100}");
        }
        for event in
            ["", "7", "{", r#"{"type":"UPDATE","offers":{"offers":[inf]}}"#, r#"{"offers":{}}"#]
        {
            assert_eq!(decoded(event, 1 << 20), None, "{event}");
        }
    }
}
