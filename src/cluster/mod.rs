//! Cluster managers: each carries out the engine's calls on one kind of cluster, behind the seam
//! that [`ClusterManager`](crate::engine::seam::ClusterManager) is.

#[cfg(feature = "local")]
pub mod local;

#[cfg(feature = "mesos")]
pub mod mesos;

#[cfg(feature = "simulated")]
pub mod simulated;
