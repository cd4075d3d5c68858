//! [`Codec`]: encodes calls and decodes events, as protocol buffers or JSON.

use std::fmt;

use prost::Message as _;

use super::lenient::{EssentialEvent, repair_json};
use super::messages::{Call, Event};

/// The encoding of Mesos messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Protocol buffers: compact and fast.
    #[default]
    Protobuf,
    /// JSON, which is readable in a capture of the traffic, but slower to decode. An event is limited to 8 MiB, which
    /// is about 10 000 offers.
    Json,
}

/// Encodes calls and decodes events in one encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Codec {
    encoding: Encoding,
}

impl Codec {
    /// Creates a codec for this encoding.
    #[must_use]
    pub const fn new(encoding: Encoding) -> Codec {
        Codec { encoding }
    }

    /// Returns the media type for HTTP headers. It has no character set, because Mesos rejects one.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self.encoding {
            Encoding::Protobuf => "application/x-protobuf",
            Encoding::Json => "application/json",
        }
    }

    /// Encodes a call. JSON can't represent numbers that are not finite; Mesos rejects what is written in their place.
    #[must_use]
    pub fn encode(self, call: &Call) -> Vec<u8> {
        match self.encoding {
            Encoding::Protobuf => call.encode_to_vec(),
            // Writing to memory can't fail, because all keys of maps are strings.
            Encoding::Json => serde_json::to_vec(call).unwrap_or_default(),
        }
    }

    /// Decodes a record to an event. Unknown fields are skipped, and the nesting depth is limited. Memory is limited
    /// only by the record's length: lists of empty elements take up to 200 times as much.
    ///
    /// # Errors
    /// If the record is not an event in this encoding.
    pub fn decode(self, record: &[u8]) -> Result<Event, DecodeError> {
        match self.encoding {
            Encoding::Protobuf => {
                Event::decode(record).map_err(|why| DecodeError::new("protobuf", why))
            }
            Encoding::Json => {
                serde_json::from_slice(record).map_err(|why| DecodeError::new("JSON", why))
            }
        }
    }
}

impl Codec {
    /// Decodes a record that [`Codec::decode`] fails on, as far as possible. In JSON, texts that aren't Unicode are
    /// repaired if `is_whole` allows to decode the whole event, whose memory isn't limited. Otherwise only what is
    /// essential is decoded, of updates, subscriptions and errors: it takes no more memory than the record, and all
    /// other fields may have any content.
    pub(crate) fn decode_leniently(self, record: &[u8], is_whole: bool) -> Option<Event> {
        let essential = match self.encoding {
            Encoding::Protobuf => EssentialEvent::decode(record).ok(),
            Encoding::Json => {
                let repaired = || serde_json::from_slice(&repair_json(record)).ok();
                if let Some(event) = is_whole.then(repaired).flatten() {
                    return Some(event);
                }
                serde_json::from_slice(record).ok()
            }
        };
        essential.and_then(EssentialEvent::into_event)
    }
}

/// The error for a record that is not an event. Its message is one sentence of at most 250 characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError(Box<str>);

impl DecodeError {
    /// The maximum length of a parser's reason, in characters. Parsers quote their input.
    const WHY_MAX: usize = 200;

    #[cold]
    fn new(encoding: &str, why: impl fmt::Display) -> DecodeError {
        let why = why.to_string();
        let kept = why.chars().take(DecodeError::WHY_MAX);
        let kept: String = kept.map(|c| if c.is_control() { ' ' } else { c }).collect();
        let more = if kept.len() < why.len() { "..." } else { "" };
        DecodeError(format!("an event isn't valid {encoding}: {kept}{more}").into_boxed_str())
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DecodeError {}
