//! A real Mesos cluster, over its v1 scheduler HTTP API, without libmesos.
//!
//! ```text
//!              ┌────────────────── one thread ───────────────────┐
//!  master ───► │ subscription ─► records ─► news ─┬─► the engine's events
//!    ▲  ▲      │      ▲                           └─► framework id file: ends
//!    │  │      │     link: which master, when again, which number │
//!    │  │      │      │ standing: number, stream id, master       │
//!    │  │      │      ▼                                           │
//!    │  └───── │ lanes: acknowledgements     ◄──┐                 │
//!    └──────── │ lane: all that has an order ◄──┴─ outgoing ◄──── calls of the engine's threads
//!              └─────────────────────────────────────────────────┘         └─► framework id file: launches
//! ```
//!
//! A call is a message, put into a queue under the number of the subscription that stands; when that has ended it is
//! dropped there. What a call's failure means is in `lane.rs`, what outlives the program in `ledger.rs`, and what a
//! master is told of a constraint in `offer_constraints.rs`.

mod active_subscription;
mod call_queue;
mod call_sender;
mod caller;
mod calls;
mod cluster;
mod config;
mod event_decoder;
mod framework;
mod http;
mod masters;
mod offer_constraints;
mod owned;
mod state_file;
mod state_writer;
mod status;
mod subscriber;
mod subscription;
mod supervisor;
mod task;
mod tear_down;
mod tls;

pub use crate::launch::Secret;
pub use crate::mesos_v1::codec::Encoding;
pub use cluster::MesosCluster;
pub use config::{AtEnd, Credential, Least, MesosConfig};
pub use masters::{Master, Masters};
