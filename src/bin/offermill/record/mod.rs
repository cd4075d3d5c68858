//! The journal of a run, as a scenario that can be played again and the answers that it has to give.
//!
//! ```text
//! engine ─► entries ─► lines ─► FILE          head.rs: settings, lines.rs: events and answers,
//!                           └─► FILE.answers  writer.rs
//! FILE ─► reader ─► events ─► player ─► entries ─► lines ─► answers, to be compared
//!         (../scenario)       replaying.rs
//! ```
//!
//! The head's settings are those that decisions depend on, and no others: no variables of executors, no credentials, so
//! that a journal can be shown to others. Both files end with a whole line after an orderly end; after any other they
//! can be played up to the last whole line of FILE.

mod head;
mod lines;
mod open;
mod replaying;
mod writer;

pub(crate) use head::{build, config_of};
pub(crate) use open::open;
pub(crate) use replaying::play;
pub(crate) use writer::JournalFiles;
