//! Messages as bytes, in either encoding.

use std::fmt;

use prost::Message as _;

use super::messages::{Call, Event};

/// How Mesos messages are encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Protocol buffers: compact and fast.
    #[default]
    Protobuf,
    /// JSON, which is readable in a capture of the traffic. Slower to read; an event is limited to 8 MiB, which is
    /// about 10 000 offers.
    Json,
}

/// Writes calls and reads events in one encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Codec {
    encoding: Encoding,
}

impl Codec {
    /// For this encoding.
    #[must_use]
    pub const fn new(encoding: Encoding) -> Codec {
        Codec { encoding }
    }

    /// What HTTP calls the encoding. Without a character set: Mesos refuses one.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self.encoding {
            Encoding::Protobuf => "application/x-protobuf",
            Encoding::Json => "application/json",
        }
    }

    /// The call as bytes. JSON has no numbers that aren't finite; Mesos refuses what is written in their place.
    #[must_use]
    pub fn encode(self, call: &Call) -> Vec<u8> {
        match self.encoding {
            Encoding::Protobuf => call.encode_to_vec(),
            // Writing a message to memory can't fail: its keys are texts.
            Encoding::Json => serde_json::to_vec(call).unwrap_or_default(),
        }
    }

    /// The event that a record is. What isn't known in it is skipped; nesting is limited. Memory isn't, but by the
    /// record: where lists have empty elements, by 200 times its bytes.
    ///
    /// # Errors
    /// When the bytes aren't an event of this encoding.
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

/// A record that isn't an event. One sentence for people, of at most 250 characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError(Box<str>);

impl DecodeError {
    /// So many characters of the reason are kept: parsers quote what they don't like.
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
