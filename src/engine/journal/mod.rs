//! Journals: records of all operations on a kernel and their outcomes, in the order in which they took effect, from
//! which a [`Player`] repeats a run.
//!
//! An engine that is [given a journal](super::Engine::start_with_journal) runs every operation that changes its kernel
//! under one lock, and passes the journal a [`JournalEntry`] for each: the time, the [`Operation`] and its
//! [`OperationOutcome`]. A [`Player`] around a new kernel with the same settings runs the same operations and gets the
//! same outcomes. An engine without a journal has no such lock.
//!
//! # Time
//! Time acts on a kernel mostly through two calls, [`Kernel::poll_demand`](crate::Kernel::poll_demand) and
//! [`Kernel::tick`](crate::Kernel::tick). They are made at the points of a grid, which need not be recorded:
//!
//! 1. The points are 50 ms, 100 ms, 150 ms and so on after the start ([`POINT_EVERY`]). Each has one poll, with its own
//!    time. Points at full seconds ([`TICK_EVERY`]) also have one tick, after the poll.
//! 2. No point is skipped. A thread that is late runs all missed points in order, each a poll and perhaps a tick of the
//!    kernel, as a player does. The calls that follow from them are not part of the grid: after a long stop these are
//!    the last demand call, and one round of reconciliations and kills.
//! 3. The time of an operation is before all points that have not run, and not before the preceding operation: it is
//!    `clamp(clock, last time, next point - 1 ms)`.
//!
//! So before a player runs an operation of time `t`, it runs all points up to `t`.
//!
//! # Ids
//! An executor's id contains the number of its cell in the kernel, which depends on the handler that claimed it.
//! Therefore an engine with a journal has one handler thread, whatever its options say, and a player has one handler.
//!
//! # Threads
//! Entries wait in a bounded queue for the journal's own thread, so that only the kernel is called under the lock. If
//! the journal fails, or falls so far behind that an operation would wait for it for more than ten seconds, it is given
//! up: this is reported once, as [`Notice::JournalEnded`](super::Notice::JournalEnded), and the run continues. During
//! the shutdown, operations wait for at most an eighth of the [slack](super::EngineOptions::shutdown_slack).

mod entry;
mod player;
pub(super) mod recording;

use std::io;
use std::time::Duration;

pub use entry::{
    AcceptedOffers, BatchAnswers, JournalEntry, Launched, Operation, OperationOutcome,
};
pub(crate) use player::GridPoint;
pub use player::{GAP_MAX, Player};

pub use super::owned::BorrowedParts;

/// The interval of the grid's points, at which demand is polled.
pub const POINT_EVERY: Duration = Duration::from_millis(50);
/// The interval of the ticks: points at whole multiples of it have one.
pub const TICK_EVERY: Duration = Duration::from_secs(1);

/// Stores entries. Called on its own thread, without locks held. After an error it is not called again.
pub trait Journal: Send {
    /// Records an entry. Entries come in the order in which they took effect; their times never decrease.
    ///
    /// # Errors
    /// If the entry can't be recorded.
    fn record(&mut self, entry: &JournalEntry) -> io::Result<()>;

    /// Makes the recorded entries outlive this process. Called at least once per second in which an entry was recorded,
    /// and at the end.
    ///
    /// # Errors
    /// If the entries can't be written.
    fn flush(&mut self) -> io::Result<()>;
}
