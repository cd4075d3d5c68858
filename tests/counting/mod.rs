//! How many lines a batch or an update writes, to the last one: what decides how the kernel grows with the number of
//! cores, and what no clock on a machine of few cores can show.
//!
//! The kernel is the real one on words that note each write (`src/sync/counting.rs`); whose they are, their addresses
//! say (`src/kernel/lines.rs`). `.ci/counting` runs these tests and prints the table.

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
