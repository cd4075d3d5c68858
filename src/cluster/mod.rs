//! Cluster managers: implementations of [`ClusterManager`](crate::engine::cluster_manager::ClusterManager) for the
//! embedded cluster, Kubernetes, Mesos, and the simulator's cluster; and a standalone master with its workers.

#[cfg(any(feature = "kubernetes", feature = "mesos"))]
mod error_chain;
#[cfg(feature = "mesos")]
mod http_client;
#[cfg(feature = "local")]
mod process;
#[cfg(feature = "local")]
mod task_host;
#[cfg(feature = "local")]
mod worker_offers;

#[cfg(feature = "kubernetes")]
pub mod kubernetes;

#[cfg(feature = "local")]
pub mod local;

#[cfg(feature = "mesos")]
pub mod mesos;

#[cfg(feature = "simulated")]
pub mod simulated;

#[cfg(feature = "standalone")]
#[doc(hidden)]
pub mod standalone;

#[cfg(feature = "local")]
pub use task_host::run_task_host;
