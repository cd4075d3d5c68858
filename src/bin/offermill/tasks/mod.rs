//! The tasks of `offermill run --tasks`: their file, their order, their queue and their results.
//!
//! ```text
//! file ─► read.rs ─► parse.rs ─► order.rs ─► queue.rs ◄─ choose.rs on handler threads; the session reports ends
//!                                               │
//!                                               ├► results.rs: a line before each attempt and at each end, which
//!                                               │  periodic_sync.rs brings to the disk
//!                                               └► attempt_index.rs: which executors were which tasks, on this machine
//! ```

pub(crate) mod attempt_index;
mod bounds;
mod choose;
pub(crate) mod demand;
pub(crate) mod find;
pub(crate) mod order;
pub(crate) mod parse;
mod periodic_sync;
pub(crate) mod queue;
pub(crate) mod queue_check;
pub(crate) mod read;
pub(crate) mod ready;
mod refusals;
pub(crate) mod results;
pub(crate) mod resume;
pub(crate) mod run_queues;
pub(crate) mod task;
mod too_large;
mod unstarted;
