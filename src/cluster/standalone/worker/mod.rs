//! A worker of a standalone cluster: registers with a master, and starts executors as processes of its machine.
//!
//! ```text
//!              ┌─────────────────────── one thread ──────────────────────┐
//!  master ◄──► │ link ──► messages ──► state: what is held, what is told │
//!              │  ▲                      │ actions                       │
//!              │  └─ dialer: which, when ├──► processes ──► executors, watchdogs
//!              │                         └──► identity: id and term on the disk
//!              └─────────────────────────────────────────────────────────┘
//! ```
//!
//! `state.rs` decides and has no input or output. Executors are what they are on the embedded cluster: processes in
//! sandboxes, each with a watchdog, which ends it if the worker is killed. So are hosts of tasks (`hosts.rs`): what is
//! known of them, and of the tasks in them, is in `cluster::task_host`.

mod actor;
mod config;
mod dialer;
mod held;
mod host_events;
mod hosts;
mod identity;
mod link;
mod notice;
mod processes;
mod standalone_worker;
mod state;
mod step;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub use config::WorkerConfig;
pub use notice::{WorkerEnd, WorkerNotice};
pub use standalone_worker::{StandaloneWorker, WorkerHandle};
