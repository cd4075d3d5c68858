//! The journal of a run: a scenario that can be replayed, and the answers that the replay must give.
//!
//! ```text
//! engine ─► entries ─► convert ─► FILE          head.rs: settings, convert.rs: events and answers,
//!                             └─► FILE.answers  writer.rs
//! FILE ─► reader ─► events ─► play ─► entries ─► convert ─► answers, to be compared
//!         (../scenario)       play.rs
//! ```
//!
//! The head contains only the settings that decisions depend on: no environment variables of executors and no
//! credentials, so that a journal can be shared. If the process is killed, the last line of either file may be
//! incomplete; the journal can then be replayed up to the last whole line of FILE.

mod convert;
mod head;
mod open;
mod play;
mod writer;

pub(crate) use head::{build, config_of};
pub(crate) use open::open;
pub(crate) use play::play;
pub(crate) use writer::JournalFiles;
