//! Executors as child processes of this machine: process groups, their watchdogs, sandboxes, exit statuses, and the
//! machine's cores and memory.
//!
//! It is independent of offers and clusters: cluster managers that run executors on this machine build on it.

mod exit;
mod group;
pub(crate) mod machine;
mod sandbox;
mod watchdog;

pub(crate) use exit::Exit;
pub(crate) use group::{EnvironmentBase, ProcessGroup, ProcessOptions, StartError, StartErrorKind};
pub(crate) use sandbox::{Sandboxes, is_valid_name};
#[cfg(test)]
pub(crate) use watchdog::NAME as WATCHDOG_NAME;
pub(crate) use watchdog::Watchdog;
