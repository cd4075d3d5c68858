//! Lenient decoding of events that the messages can't represent: texts of others that aren't UTF-8, lone surrogates in
//! JSON, fields of unexpected types, records that are too long to be decoded as a whole.
//!
//! Agents and executors choose texts such as the message of a status, and the master passes them on as bytes. If such
//! a text made an event undecodable, one task could stop a whole framework: the master sends an update again and again
//! until it is acknowledged.

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use super::json::{Base64, EnumName, OptionalBase64, OptionalName};
use super::messages::event::{self, Type};
use super::messages::{
    AgentId, Event, FrameworkId, OperationId, OperationStatus, Reason, ResourceProviderId, TaskId,
    TaskState, TaskStatus, Uuid,
};
use crate::foreign_text::cut_lossy;
use crate::limits::MESSAGE_BYTES_MAX;

/// The fields of events that must not be lost. All other fields are skipped without being validated, texts of others
/// may be any bytes, and no field is repeated, so decoding takes no more memory than the record.
#[derive(Clone, PartialEq, ::prost::Message, Deserialize)]
#[serde(default)]
pub(super) struct EssentialEvent {
    #[prost(enumeration = "Type", optional, tag = "1")]
    #[serde(with = "OptionalName::<Type>")]
    r#type: Option<i32>,
    #[prost(message, optional, tag = "2")]
    subscribed: Option<EssentialSubscribed>,
    #[prost(message, optional, tag = "5")]
    update: Option<EssentialUpdate>,
    #[prost(message, optional, tag = "8")]
    error: Option<EssentialError>,
    #[prost(message, optional, tag = "11")]
    update_operation_status: Option<EssentialOperationUpdate>,
}

#[derive(Clone, PartialEq, ::prost::Message, Deserialize)]
#[serde(default)]
struct EssentialSubscribed {
    #[prost(message, required, tag = "1")]
    framework_id: FrameworkId,
    #[prost(double, optional, tag = "2")]
    heartbeat_interval_seconds: Option<f64>,
}

#[derive(Clone, PartialEq, ::prost::Message, Deserialize)]
#[serde(default)]
struct EssentialUpdate {
    #[prost(message, required, tag = "1")]
    status: EssentialStatus,
}

#[derive(Clone, PartialEq, ::prost::Message, Deserialize)]
#[serde(default)]
struct EssentialStatus {
    #[prost(message, required, tag = "1")]
    task_id: TaskId,
    #[prost(enumeration = "TaskState", required, tag = "2")]
    #[serde(with = "EnumName::<TaskState>")]
    state: i32,
    #[prost(bytes = "vec", tag = "4")]
    #[serde(deserialize_with = "foreign_text")]
    message: Vec<u8>,
    #[prost(enumeration = "Reason", optional, tag = "10")]
    #[serde(with = "OptionalName::<Reason>")]
    reason: Option<i32>,
    #[prost(message, optional, tag = "5")]
    agent_id: Option<AgentId>,
    #[prost(double, optional, tag = "6")]
    timestamp: Option<f64>,
    #[prost(bytes = "vec", optional, tag = "11")]
    #[serde(with = "OptionalBase64")]
    uuid: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, ::prost::Message, Deserialize)]
#[serde(default)]
struct EssentialError {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(deserialize_with = "foreign_text")]
    message: Vec<u8>,
}

#[derive(Clone, PartialEq, ::prost::Message, Deserialize)]
#[serde(default)]
struct EssentialOperationUpdate {
    #[prost(message, required, tag = "1")]
    status: EssentialOperationStatus,
}

#[derive(Clone, PartialEq, ::prost::Message, Deserialize)]
#[serde(default)]
struct EssentialOperationStatus {
    #[prost(message, optional, tag = "1")]
    operation_id: Option<OperationId>,
    #[prost(message, optional, tag = "5")]
    uuid: Option<EssentialUuid>,
    #[prost(message, optional, tag = "6")]
    agent_id: Option<AgentId>,
    #[prost(message, optional, tag = "7")]
    resource_provider_id: Option<ResourceProviderId>,
}

#[derive(Clone, PartialEq, ::prost::Message, Deserialize)]
#[serde(default)]
struct EssentialUuid {
    #[prost(bytes = "vec", required, tag = "1")]
    #[serde(with = "Base64")]
    value: Vec<u8>,
}

impl EssentialEvent {
    /// Converts the event. `None` if what its type requires is missing: then it can't be used.
    pub(super) fn into_event(self) -> Option<Event> {
        let kind = self.r#type();
        let event = Event { r#type: self.r#type, ..Event::default() };
        match kind {
            Type::Subscribed => {
                let EssentialSubscribed { framework_id, heartbeat_interval_seconds } =
                    self.subscribed?;
                let subscribed = event::Subscribed {
                    framework_id,
                    heartbeat_interval_seconds,
                    ..event::Subscribed::default()
                };
                Some(Event { subscribed: Some(subscribed), ..event })
            }
            Type::Update => {
                let status = self.update?.status;
                if status.task_id.value.is_empty() {
                    return None;
                }
                let status = TaskStatus {
                    task_id: status.task_id,
                    state: status.state,
                    message: Some(cut_lossy(&status.message, MESSAGE_BYTES_MAX)),
                    reason: status.reason,
                    agent_id: status.agent_id,
                    timestamp: status.timestamp,
                    uuid: status.uuid,
                    ..TaskStatus::default()
                };
                Some(Event { update: Some(event::Update { status }), ..event })
            }
            Type::Error => {
                let message = cut_lossy(&self.error?.message, MESSAGE_BYTES_MAX);
                Some(Event { error: Some(event::Error { message }), ..event })
            }
            Type::UpdateOperationStatus => {
                let status = self.update_operation_status?.status;
                let status = OperationStatus {
                    operation_id: status.operation_id,
                    uuid: status.uuid.map(|EssentialUuid { value }| Uuid { value }),
                    agent_id: status.agent_id,
                    resource_provider_id: status.resource_provider_id,
                    ..OperationStatus::default()
                };
                let update = event::UpdateOperationStatus { status };
                Some(Event { update_operation_status: Some(update), ..event })
            }
            Type::Unknown
            | Type::Offers
            | Type::InverseOffers
            | Type::Rescind
            | Type::RescindInverseOffer
            | Type::Message
            | Type::Failure
            | Type::Heartbeat => None,
        }
    }
}

/// Deserializes a text of any bytes and surrogates, and cuts it to [`MESSAGE_BYTES_MAX`].
fn foreign_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    deserializer.deserialize_bytes(ForeignText)
}

struct ForeignText;

impl Visitor<'_> for ForeignText {
    type Value = Vec<u8>;

    fn expecting(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        text.write_str("a text")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(cut_lossy(bytes, MESSAGE_BYTES_MAX).into_bytes())
    }
}

/// Returns JSON in which bytes that aren't UTF-8, and escapes of lone surrogates, are replaced by U+FFFD.
pub(crate) fn repair_json(record: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(record).into_owned().into_bytes();
    let mut repaired = Vec::with_capacity(text.len());
    let mut rest = &text[..];
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        let (before, escape) = rest.split_at(at);
        repaired.extend_from_slice(before);
        let length = match surrogate(escape) {
            Some(0xd800..0xdc00)
                if matches!(escape.get(6..).and_then(surrogate), Some(0xdc00..0xe000)) =>
            {
                12
            }
            Some(_) => {
                repaired.extend_from_slice(b"\\ufffd");
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            None => 2,
        };
        let (escape, after) = escape.split_at(length.min(escape.len()));
        repaired.extend_from_slice(escape);
        rest = after;
    }
    repaired.extend_from_slice(rest);
    repaired
}

/// The surrogate that `text` begins with, if it begins with the escape of one.
fn surrogate(text: &[u8]) -> Option<u16> {
    let digits = std::str::from_utf8(text.strip_prefix(b"\\u")?.get(..4)?).ok()?;
    let number = u16::from_str_radix(digits, 16).ok()?;
    (0xd800..0xe000).contains(&number).then_some(number)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Goal: lone surrogates are replaced, and nothing else is changed. Method: examples, with pairs, escaped
    /// backslashes and escapes that are cut off.
    #[test]
    fn lone_surrogates_are_replaced() {
        for (text, repaired) in [
            (r#""a\ud800b""#, r#""a\ufffdb""#),
            (r#""\uDFFF""#, r#""\ufffd""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud800 \u0041\n""#, r#""\\ud800 \u0041\n""#),
            (r#""\\\ud800""#, r#""\\\ufffd""#),
            (r"\ud80", r"\ud80"),
            (r"\", r"\"),
            (r"\u+d80", r"\u+d80"),
        ] {
            assert_eq!(String::from_utf8(repair_json(text.as_bytes())).unwrap(), repaired);
        }
        assert_eq!(repair_json(b"\"\xff\xc3\"\xa9"), "\"\u{fffd}\u{fffd}\"\u{fffd}".as_bytes());
    }

    proptest! {
        /// Goal: any text in JSON can be decoded once it is repaired, and valid JSON is unchanged. Method: random bytes
        /// and escapes between quotation marks.
        #[test]
        fn repaired_texts_are_valid(
            pieces in prop::collection::vec(prop_oneof![
                "[^\"\\\\\\x00-\\x1f]{0,3}".prop_map(String::into_bytes),
                any::<u16>().prop_map(|unit| format!("\\u{unit:04x}").into_bytes()),
                (0xd700_u16..0xe100).prop_map(|unit| format!("\\u{unit:04X}").into_bytes()),
                prop::collection::vec(0x80_u8.., 1..3),
                Just(b"\\\\".to_vec()),
            ], 0..8),
        ) {
            let text = [b"\"", &pieces.concat()[..], b"\""].concat();
            let repaired = repair_json(&text);
            let read = serde_json::from_slice::<String>(&repaired);
            prop_assert!(read.is_ok(), "{:?}", String::from_utf8_lossy(&repaired));
            if let Ok(valid) = serde_json::from_slice::<String>(&text) {
                prop_assert_eq!(read.unwrap(), valid);
                prop_assert_eq!(repaired, text);
            }
        }
    }
}
