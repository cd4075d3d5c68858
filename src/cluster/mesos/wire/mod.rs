//! What goes over the wire: the framing of records, the messages in them, and the offers in those, read in place.

pub mod codec;
pub mod json;
pub mod messages;
pub mod offers;
pub mod record_io;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
