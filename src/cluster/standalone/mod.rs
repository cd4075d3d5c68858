//! The standalone cluster: a master of this crate's own, and workers that start executors on their machines. For a few
//! machines without Mesos and without Kubernetes.
//!
//! ```text
//! frameworks ── Mesos' v1 scheduler API ──► master ◄── worker protocol ── workers ──► executors
//! ```
//!
//! To a framework the master is a Mesos master: `cluster::mesos` is the client, unchanged. Workers dial out and listen
//! nowhere; each holds one connection, on which both sides send RecordIO frames with JSON messages.
//!
//! | room | content |
//! |---|---|
//! | `server/` | the master's server, its credentials and its journal |
//! | `master/` | the master's logic: frameworks, workers, offers, executors |
//! | `protocol/` | the messages between a master and its workers, their bounds and their frames |
//! | `worker/` | a worker: its connection, its executors, and the logic between them, without input and output |

pub mod master;
pub mod protocol;
pub mod server;
pub mod worker;
