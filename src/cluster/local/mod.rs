//! The embedded cluster: agents in this process, executors as processes of this machine.
//!
//! To a framework it looks like any cluster: agents offer free resources, withhold declined resources, run executors in
//! sandboxes, report how they end, get lost and come back under a new id. Executors are not confined: cores and memory
//! are counted, not enforced.
//!
//! One thread owns all state. Calls, ends of processes and the owner's requests reach it as messages, so there are no
//! locks to order. Each executor is in a process group of its own with a *watchdog*, a small shell that waits for the
//! end of a pipe whose other end only this program holds. When the program ends for any reason, the watchdog kills the
//! group. The module documentation of `process/watchdog.rs` and `process/group.rs` argues why this leaves no gap, and
//! lists what it can't end.
//!
//! # Example
//! A framework with a launcher of its own (`examples/on_this_machine.rs`):
//!
//! ```
#![doc = include_str!("../../../examples/on_this_machine.rs")]
//! ```

mod actor;
mod attributes;
mod cluster;
mod config;
mod event_reporter;
mod hosts;
mod launch_queue;
mod master;
mod message;
mod reconciliation;
mod stop_flag;

#[cfg(test)]
mod tests;

pub use attributes::AgentAttributes;
pub use cluster::LocalCluster;
pub use config::LocalConfig;
pub use master::LocalMaster;
