//! The cluster manager for Kubernetes: executors are pods, and kube-scheduler chooses their nodes.
//!
//! ```text
//!                    ┌───────────────────────── one thread ─────────────────────────┐
//!  API server ─────► │ reflector: list, then watch ──► actor: pods and permits ──────┼─► the engine's events
//!     ▲   ▲          │                                  │   ▲                        │
//!     │   └───────── │ creations, deletions ◄───────────┘   └── commands ◄───────────┼── calls of the engine's threads
//!     └───────────── │ renewals of the lease                                         │
//!                    └───────────────────────────────────────────────────────────────┘
//! ```
//!
//! An offer of this manager is a *permit* to create one pod ([`OwnedOffer::late`]): the kernel decides how many
//! executors there are, of which size, when, and on which nodes not; the scheduler decides where. An executor is bound
//! to its node when the pod got one.
//!
//! * `pod_state.rs` says what a pod's status means, `create_outcome.rs` what the answer to a creation means,
//!   `permits.rs` when pods may be created, `affinity.rs` which nodes a pod may be placed on.
//! * A pod stays until the engine has acknowledged its end. So a run that is killed loses no end: the next run of the
//!   same name finds it, and adopts the executors that run.
//! * Runs of one name exclude each other by a lease (`lease.rs`), which also owns their pods, and may itself be owned
//!   by the pod in which the program runs (`run_owner.rs`). What a run has left that
//!   was killed is deleted by a [`RunCleaner`].
//! * The connection is [kube](kube::Client)'s, which knows kubeconfigs, certificates and tokens. What is sent is this
//!   manager's own: the client repeats no request, lists and watches are kept apart, so that a list is a new
//!   subscription.
//!
//! One current-thread runtime, as for Mesos: the actor needs no lock, and requests mostly wait.
//!
//! # Example
//! ```no_run
//! use std::sync::Arc;
//! use std::time::{Duration, SystemTime, UNIX_EPOCH};
//!
//! use offermill::cluster::kubernetes::{KubernetesCluster, KubernetesConfig};
//! use offermill::config::ExecutorCores;
//! use offermill::engine::{Engine, EngineOptions, Unobserved};
//! use offermill::launch::CommandTemplate;
//! use offermill::resources::MilliCpus;
//! use offermill::{Config, IdScheme, Kernel};
//!
//! let cores = ExecutorCores::Fixed(MilliCpus::from_cores(2));
//! let config = Config::builder().executor_cores(cores).executor_limit(Some(20)).build()?;
//! let kubernetes =
//!     KubernetesConfig::new("etl").with_image("registry.example/worker:3").for_kernel(&config)?;
//! let cluster = Arc::new(KubernetesCluster::new(kubernetes)?);
//! let run = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
//! let kernel = Kernel::new(config, IdScheme::unique("etl", run)?);
//! let argv = ["/opt/worker", "--id={{EXECUTOR_ID}}", "--on={{HOSTNAME}}"].map(str::to_owned);
//! let worker = Arc::new(CommandTemplate::new(argv.to_vec()));
//! let engine = Engine::start(kernel, cluster, worker, EngineOptions::default(), Box::new(Unobserved))?;
//! engine.shutdown(Duration::from_secs(60)); // kills executors and deletes their pods
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`OwnedOffer::late`]: crate::engine::cluster_manager::OwnedOffer::late

mod access;
mod actor;
mod adoption_annotations;
mod affinity;
mod api;
mod api_server;
mod clean_up;
mod cleaner;
mod client;
mod cluster;
mod command;
mod config;
mod confirmation;
mod create_outcome;
mod creation;
mod expansion;
mod lease;
mod lease_validity;
mod leaving;
mod manifest;
mod names;
mod node_choice;
mod node_reflector;
mod objects;
mod permits;
mod pod_entry;
mod pod_files;
mod pod_history;
mod pod_placement;
mod pod_state;
mod pod_template;
mod pods;
mod quantity;
mod reflector;
mod removal;
mod run_owner;
mod token_file;
mod volumes;
mod watch_stream;

#[cfg(test)]
mod tests;

pub use crate::launch::Secret;
pub use api_server::{ApiServer, ClientKeyPair};
pub use cleaner::{CleanError, RunCleaner, RunLease};
pub use cluster::KubernetesCluster;
pub use config::{KubernetesConfig, PodsAtEnd, Toleration};
pub use names::{dashed, run_name};
pub use pod_files::{POD_FILES_BYTES_MAX, PodFiles};
pub use pod_template::PodTemplate;
pub use run_owner::RunOwner;
pub use volumes::{PodVolume, PodVolumeSource};
