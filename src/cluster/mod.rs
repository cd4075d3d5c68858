//! Cluster managers: each carries out the engine's calls on one kind of cluster, behind the seam
//! that [`ClusterManager`](crate::engine::cluster_manager::ClusterManager) is.

#[cfg(feature = "local")]
pub mod local;

#[cfg(feature = "mesos")]
pub mod mesos;

#[cfg(feature = "simulated")]
pub mod simulated;
