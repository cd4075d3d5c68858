//! The cluster manager for Mesos, over the v1 scheduler HTTP API, without libmesos.
//!
//! ```text
//!              ┌──────────────────── one thread ─────────────────────┐
//!  master ───► │ subscription ─► event decoder ─┬─► the engine's events
//!    ▲  ▲      │      ▲                         └─► framework id file: ends
//!    │  │      │ subscriber: which master, when again, which number  │
//!    │  │      │      │ active subscription: number, stream id, master
//!    │  │      │      ▼                                              │
//!    │  └───── │ call senders: acknowledgements ◄──┐                 │
//!    └──────── │ call sender: all other calls ◄────┴─ call queue ◄── calls of the engine's threads
//!              └─────────────────────────────────────────────────────┘         └─► framework id file: launches
//! ```
//!
//! A call becomes a message in a queue, with the number of the active subscription; when that subscription has ended,
//! the message is dropped. `call_sender.rs` describes what the failure of a call means, `state_file.rs` what the next
//! run continues with, and `offer_constraints.rs` which constraints the master checks.

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
mod ignored_events;
mod master_errors;
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
mod user;

pub use crate::launch::Secret;
pub use crate::mesos_v1::codec::Encoding;
pub use cluster::MesosCluster;
pub use config::{AtEnd, ClientCertificate, Credential, MesosConfig, MinOfferResources};
pub use masters::{Master, Masters};
pub use user::default_user;
