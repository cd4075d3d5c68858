//! Counts of the cache lines that a batch or an update writes: they decide how the kernel scales with the number of
//! cores, which no clock on a machine with few cores can show.
//!
//! The kernel is the real one, on words that record each write (`src/sync/counting.rs`). Their addresses tell which
//! words they are (`src/kernel/lines.rs`). `.ci/counting` runs these tests and prints the table.

#![allow(clippy::unwrap_used)]

#[path = "../../benches/growth/counts.rs"]
mod counts;
mod declined;
mod launched;
mod layout;
mod scenes;
mod table;
mod threads;
mod timers;
mod updated;
