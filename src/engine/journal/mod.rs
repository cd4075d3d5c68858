//! What a run was told and what it decided, in the order in which it took effect: so that it can be done again.
//!
//! An engine that is [given a journal](super::Engine::start_with_journal) does every operation that changes its kernel
//! under one lock, and hands the journal an [`Entry`] of each: the moment, the [`Operation`] and its [`Outcome`]. A
//! [`Player`] around a new kernel of the same settings does the same operations and comes to the same outcomes. An
//! engine without a journal has no such lock.
//!
//! # Time
//! Most of what time does comes from two calls, [`Kernel::poll_demand`](crate::Kernel::poll_demand) and
//! [`Kernel::tick`](crate::Kernel::tick). They are made at the points of a grid, and those need not be recorded:
//!
//! 1. The points are 50 ms, 100 ms, 150 ms and so on after the start ([`POINT_EVERY`]). Each has one poll, with its own
//!    moment. Those at full seconds ([`TICK_EVERY`]) have one tick too, after the poll.
//! 2. No point is left out. A thread that is late makes up for all of them, in their order: each is a poll and perhaps
//!    a tick of the kernel, which a player does too. What the cluster is told of them is no part of the grid: after a
//!    long stop that is the last call that demand asked for, and one round of questions and kills.
//! 3. No operation has a moment at or after a point that is still to come, nor one before the operation that precedes
//!    it: it happens at `clamp(clock, last moment, next point - 1 ms)`.
//!
//! So a player that comes to an operation of moment `t` first makes all points up to `t`, and then does the operation.
//!
//! # Ids
//! Executors' ids hold the number of the kernel's cell, which depends on the handler that asked for it. An engine with
//! a journal therefore has one handler thread, whatever its options say, and a player has one handler.
//!
//! # Threads
//! Entries wait in a bounded queue for the journal's own thread, so that nothing but the kernel is called under the
//! lock. When the journal fails, or falls so far behind that work would wait for it for more than ten seconds, it is
//! given up: that is told once, as [`Notice::JournalEnded`](super::Notice::JournalEnded), and the run goes on. While
//! the engine ends, work waits for an eighth of the [slack](super::EngineOptions::shutdown_slack) at most.

mod entry;
mod player;
pub(super) mod recording;

use std::io;
use std::time::Duration;

pub use entry::{Acceptance, Answers, Entry, Launched, Operation, Outcome};
pub(crate) use player::Passed;
pub use player::{GAP_MAX, Player};

/// How far apart the points are at which demand is polled.
pub const POINT_EVERY: Duration = Duration::from_millis(50);
/// Points that are whole multiples of it have a tick.
pub const TICK_EVERY: Duration = Duration::from_secs(1);

/// Keeps entries. Called on a thread of its own, with nothing held; an error ends it, and it is not called again.
pub trait Journal: Send {
    /// Takes an entry down. They come in the order in which they took effect; moments never fall.
    ///
    /// # Errors
    /// When it can't.
    fn record(&mut self, entry: &Entry) -> io::Result<()>;

    /// Makes what was recorded outlive this process. Called at least each second in which something was recorded, and
    /// at the end.
    ///
    /// # Errors
    /// When it can't.
    fn flush(&mut self) -> io::Result<()>;
}
