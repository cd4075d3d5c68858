//! Executors as child processes of this machine: process groups, their watchdogs, starts and kills, sandboxes, exit
//! statuses, and the machine's cores and memory.
//!
//! It is independent of offers and clusters: cluster managers that run executors on this machine build on it.

mod exit;
mod group;
pub(crate) mod machine;
mod process_event;
mod running;
mod sandbox;
mod start_time;
mod starting;
mod watchdog;

pub(crate) use exit::Exit;
pub(crate) use group::{
    EnvironmentBase, ProcessGroup, ProcessOptions, StartError, StartErrorKind, arguments, discard,
};
pub(crate) use process_event::{ProcessEvent, ProcessEventSink};
pub(crate) use running::{RunPhase, RunningExecutor, RunningExecutors};
#[cfg(feature = "standalone")]
pub(crate) use sandbox::WorkFolder;
pub(crate) use sandbox::{Sandboxes, is_valid_name};
pub(crate) use start_time::start_time;
pub(crate) use starting::{StartRequest, StartingExecutor, StartingExecutors};
#[cfg(test)]
pub(crate) use watchdog::NAME as WATCHDOG_NAME;
