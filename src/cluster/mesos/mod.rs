//! A real Mesos cluster, over its v1 scheduler HTTP API, without libmesos.

mod backoff;
mod cluster;
mod config;
mod http;
mod ledger;
mod masters;
mod secret;
mod tls;
pub mod wire;

pub use cluster::MesosCluster;
pub use config::{AtEnd, Credential, Encoding, Least, MesosConfig};
pub use masters::{Master, Masters};
pub use secret::Secret;
