//! A real Mesos cluster, over its v1 scheduler HTTP API, without libmesos.

mod cluster;
mod config;
mod masters;
mod secret;
pub mod wire;

pub use cluster::MesosCluster;
pub use config::{Credential, Encoding, Least, MesosConfig};
pub use masters::{Master, Masters};
pub use secret::Secret;
