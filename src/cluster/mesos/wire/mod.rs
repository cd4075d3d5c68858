//! What goes over the wire: the framing of records, the messages in them, and the offers in those, read in place.

pub mod json;
pub mod messages;
