//! Mesos' v1 scheduler API as data: the messages, their protobuf and JSON encodings, RecordIO framing, and a reader of
//! offers that borrows from the encoded bytes.
//!
//! **No stability promise.** This module is public only for this project's tests, benches and fuzz targets. It isn't
//! part of the crate's API and may change in any release. Users of the Mesos manager find all they need in
//! `cluster::mesos`.
//!
//! It opens no connections and starts no threads; the client in `cluster::mesos` does.

pub mod codec;
pub(crate) mod host_labels;
pub mod json;
pub(crate) mod lenient;
pub mod messages;
pub mod offers;
pub mod record_io;
pub(crate) mod signals;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
