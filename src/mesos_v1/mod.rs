//! Mesos' v1 scheduler API as data: the messages, their protobuf and JSON encodings, RecordIO framing, and a reader of
//! offers that borrows from the encoded bytes.
//!
//! **No stability promise.** This module is public only for this project's tests, benches and fuzz targets; it isn't
//! part of the crate's API and may change in any release. What users of the Mesos manager need is exported by
//! `cluster::mesos`.
//!
//! It knows no connections and no threads: `cluster::mesos`, the client, adds them.

pub mod codec;
pub mod json;
pub mod messages;
pub mod offers;
pub mod record_io;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
