//! Messages to frames, and records to messages.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::call::WorkerCall;
use super::event::WorkerEvent;
use crate::foreign_text::{Printable, cut};

/// The most bytes of a parser's reason. Parsers quote their input.
const WHY_MAX: usize = 200;

/// The frame of a call: its length, a line break, and its JSON.
#[must_use]
pub fn frame_call(call: &WorkerCall) -> Vec<u8> {
    frame(call)
}

/// The frame of an event: its length, a line break, and its JSON.
#[must_use]
pub fn frame_event(event: &WorkerEvent) -> Vec<u8> {
    frame(event)
}

/// Reads a record as a call, and checks it. Fields that are unknown are skipped.
///
/// # Errors
/// If it isn't one, or if one of its parts is out of bounds.
pub fn decode_call(record: &[u8]) -> Result<WorkerCall, UnreadableMessage> {
    let call: WorkerCall = decode(record)?;
    call.check().map_err(UnreadableMessage::new)?;
    Ok(call)
}

/// Reads a record as an event, and checks it. Fields that are unknown are skipped.
///
/// # Errors
/// If it isn't one, or if one of its parts is out of bounds.
pub fn decode_event(record: &[u8]) -> Result<WorkerEvent, UnreadableMessage> {
    let event: WorkerEvent = decode(record)?;
    event.check().map_err(UnreadableMessage::new)?;
    Ok(event)
}

fn frame(message: &impl Serialize) -> Vec<u8> {
    // Writing to memory can't fail, because all keys of maps are strings.
    let text = serde_json::to_vec(message).unwrap_or_default();
    let mut frame = format!("{}\n", text.len()).into_bytes();
    frame.extend(text);
    frame
}

fn decode<M: DeserializeOwned>(record: &[u8]) -> Result<M, UnreadableMessage> {
    serde_json::from_slice(record).map_err(UnreadableMessage::new)
}

/// Why a record isn't a message of the worker protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableMessage(String);

impl UnreadableMessage {
    fn new(why: impl fmt::Display) -> UnreadableMessage {
        UnreadableMessage(cut(Printable(&why.to_string()).to_string(), WHY_MAX))
    }
}

impl fmt::Display for UnreadableMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a message of the worker protocol can't be used: {}", self.0)
    }
}

impl std::error::Error for UnreadableMessage {}
