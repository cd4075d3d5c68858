//! The file formats of scenarios, which are events for a scheduler, and of its answers: JSON, one object per line.
//!
//! ```text
//! FILE ─► reader ─► head, events ─► replay ─► answers ─► FILE
//!         bounded,  head.rs         (../replay)  answer.rs
//!         numbered  event.rs
//!         lines     offer.rs
//! ```
//!
//! The first line is the head: `format` (1) and `conf`, the settings by key. Optional are `name`, `theme` and `seed`,
//! which are for people, `conduct` (the scheduler: `offermill` or `spark-3.5`) and `ids` (`prefix` and `epoch` of
//! executor ids; without it they are plain numbers). Each further line is one event: an object whose key names the kind
//! of event, and optionally `at_ms`, its time. [`event`] lists the kinds.
//!
//! The first line of an answer file says whether the settings were accepted. For each event follow the calls that the
//! scheduler made, in order, each with `call` and `ev`, the event's number from 0; then one line with `after`, the
//! state after the event.
//!
//! Unknown keys, duplicate keys and values of other types are rejected, so that nothing that a decision depends on is
//! lost. Numbers of resources may be the texts `"NaN"`, `"Infinity"` and `"-Infinity"`, which JSON can't express as
//! numbers.

pub(crate) mod answer;
pub(crate) mod event;
pub(crate) mod head;
mod json_error;
pub(crate) mod offer;
pub(crate) mod reader;

pub(crate) use answer::{
    AcceptLine, AnswerLine, CallKind, ClosingLine, DeclineLine, InitLine, StateAfter, TaskLine,
};
pub(crate) use event::{EventKind, ScenarioEvent};
pub(crate) use head::{CompatibilityLine, IdsLine, ScenarioHead};
pub(crate) use offer::OfferLine;

/// Writes a value as a line of JSON, with its line feed.
pub(crate) fn line(value: &impl serde::Serialize) -> String {
    // Serialization can't fail: all keys are strings, and all numbers are finite or written as strings.
    let mut line = serde_json::to_string(value).unwrap_or_default();
    line.push('\n');
    line
}
