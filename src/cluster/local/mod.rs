//! The embedded cluster: agents that live in this process, executors that are processes of this
//! machine.
//!
//! It is a cluster in everything that a framework sees: agents offer what is free, remember what
//! was refused, run executors in sandboxes, report how they end, get lost and come back under a new
//! id. It does not confine executors: cores and memory are counted, not enforced.
//!
//! One thread owns all of it; calls, exits and requests reach it as messages, so that there is no
//! lock and no order of locks. Each executor is in a process group of its own with a *warden*, a
//! small shell that waits for the end of a pipe whose other end only this program holds. When the
//! program is gone, whichever way, the warden kills the group. The heads of `warden.rs` and
//! `process.rs` argue why this leaves no gap, and say what is out of reach.

mod actor;
mod agent;
mod attributes;
mod cluster;
mod config;
mod executors;
mod exit;
mod fleet;
mod machine;
mod master;
mod message;
mod outbox;
mod process;
mod sandbox;
mod starts;
mod waiting;
mod warden;

#[cfg(test)]
mod tests;

pub use attributes::AgentAttributes;
pub use cluster::LocalCluster;
pub use config::LocalConfig;
pub use master::LocalMaster;
