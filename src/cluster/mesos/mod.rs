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
//!
//! # Failover
//!
//! With a failover timeout and a framework id file, executors outlive the program: the next run continues the framework
//! and takes them over. What that needs:
//!
//! * each run has ids of its own: the second parameter of [`IdScheme::unique`](crate::IdScheme::unique) is a number
//!   that no earlier run had, such as the time of its start;
//! * the program ends without [`Engine::shutdown`](crate::engine::Engine::shutdown), which kills executors: it is
//!   killed, or drops the engine, with [`AtEnd::Leave`];
//! * the next run starts within the failover timeout, with the same file. The engine adopts the executors
//!   ([`Notice::Adopted`](crate::engine::Notice::Adopted)), asks the master about them, and kills those that its limits
//!   leave no room for.
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::{Duration, SystemTime, UNIX_EPOCH};
//!
//! use offermill::cluster::mesos::{AtEnd, MesosCluster, MesosConfig};
//! use offermill::engine::{Engine, EngineOptions, Unobserved};
//! use offermill::launch::CommandTemplate;
//! use offermill::{Config, IdScheme, Kernel};
//!
//! let config = Config::builder().executor_limit(Some(20)).build()?;
//! let mesos = MesosConfig::new("mesos://m1:5050,m2:5050".parse()?, "etl")
//!     .for_kernel(&config)
//!     .with_failover_timeout(Duration::from_secs(3600))
//!     .with_framework_id_file("/var/lib/etl/framework")
//!     .with_at_end(AtEnd::Leave);
//! let options = EngineOptions::default().with_shutdown_slack(mesos.stop_timeout() * 4 / 3);
//! let cluster = Arc::new(MesosCluster::new(mesos)?);
//! let run = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
//! let kernel = Kernel::new(config, IdScheme::unique("etl", run)?);
//! let worker = Arc::new(CommandTemplate::new(vec!["/opt/etl/worker".into(), "--id={{EXECUTOR_ID}}".into()]));
//! let engine = Engine::start(kernel, cluster, worker, options, Box::new(Unobserved))?;
//!
//! // To be upgraded, the program lets go of the engine: executors run on.
//! # let is_upgrade = true;
//! if is_upgrade {
//!     drop(engine);
//! } else {
//!     engine.shutdown(Duration::from_secs(60)); // kills executors; the framework stays until its timeout
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod active_subscription;
mod call_queue;
mod call_sender;
mod caller;
mod calls;
mod client;
mod cluster;
mod config;
mod event_decoder;
mod framework;
mod host_executors;
mod ignored_events;
mod json_offers;
mod master_errors;
mod offer_constraints;
mod owned;
mod process_report;
mod state_file;
mod state_writer;
mod status;
mod subscriber;
mod subscription;
mod supervisor;
mod task;
mod tear_down;
mod user;

pub use crate::cluster::http_client::{ClientCertificate, Master, Masters};
pub use crate::launch::Secret;
pub use crate::mesos_v1::codec::Encoding;
pub use cluster::MesosCluster;
pub use config::{AtEnd, Credential, MesosConfig, MinOfferResources};
pub use user::default_user;
