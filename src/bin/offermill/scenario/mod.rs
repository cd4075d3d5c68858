//! The format of scenarios and of answers to them: what is fed to a scheduler and what it does, as JSON, one object a
//! line.
//!
//! ```text
//! FILE ─► reader ─► head, events ─► replay ─► answers ─► FILE
//!         bounded,  head.rs         (../replay)  answer.rs
//!         numbered  event.rs
//!         lines     offer.rs
//! ```
//!
//! The first line is the head: `format` (1) and `conf`, settings by their keys; besides, it may have `name`, `theme`
//! and `seed`, which only people read, `conduct` (whose way of deciding: `offermill` or `spark-3.5`) and `ids` (how
//! executors' ids are written: `prefix` and `epoch`; else they are plain numbers). Each further line is one event: an
//! object with one key that says which, and perhaps `at_ms`, its moment. [`event`] lists them.
//!
//! An answer file's first line says how the start went. Then come, for each event, the calls that the scheduler
//! made, in order, each with the event's number from 0 and `call`; then one line with `after`, the state that it left.
//!
//! Keys that aren't known, keys given twice and values of other types are refused, so that nothing that a decision
//! depends on gets lost. Numbers of resources may be the texts `"NaN"`, `"Infinity"` and `"-Infinity"`, for which
//! JSON has no numbers.

pub(crate) mod answer;
pub(crate) mod event;
pub(crate) mod head;
pub(crate) mod offer;
pub(crate) mod reader;

pub(crate) use answer::{Accept, After, Answer, Call, Closing, Decline, Init, Task};
pub(crate) use event::{Event, What};
pub(crate) use head::{Conducts, Head, Ids};
pub(crate) use offer::OfferLine;

/// A line as JSON, with its end.
pub(crate) fn line(value: &impl serde::Serialize) -> String {
    // Keys are texts and numbers are finite or written as text: there is nothing that JSON can't say.
    let mut line = serde_json::to_string(value).unwrap_or_default();
    line.push('\n');
    line
}
