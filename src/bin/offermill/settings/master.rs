//! The value of `--master`: the kind of the cluster, and its masters, its API server or its local agents.

use std::str::FromStr;

use offermill::cluster::local::LocalMaster;
use offermill::cluster::mesos::Masters;

use crate::settings::api_address::{ALLOWED, ApiAddress};

/// A cluster, as `--master` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClusterMaster {
    /// Agents in this process.
    Local(LocalMaster),
    /// The masters of a Mesos cluster.
    Mesos(Masters),
    /// The API server of a Kubernetes cluster.
    Kubernetes(ApiAddress),
}

/// The kind of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClusterKind {
    Local,
    Mesos,
    Kubernetes,
}

impl ClusterMaster {
    /// The kind of the cluster.
    pub(crate) fn kind(&self) -> ClusterKind {
        match self {
            ClusterMaster::Local(_) => ClusterKind::Local,
            ClusterMaster::Mesos(_) => ClusterKind::Mesos,
            ClusterMaster::Kubernetes(_) => ClusterKind::Kubernetes,
        }
    }
}

impl FromStr for ClusterMaster {
    /// What a value may be.
    type Err = String;

    fn from_str(text: &str) -> Result<ClusterMaster, String> {
        if is_kubernetes(text) {
            return text.parse().map(ClusterMaster::Kubernetes);
        }
        let local = match text.parse() {
            Ok(local) => return Ok(ClusterMaster::Local(local)),
            Err(error) => error,
        };
        let mesos = match text.parse() {
            Ok(masters) => return Ok(ClusterMaster::Mesos(masters)),
            Err(error) => error,
        };
        // A text with one of these schemes is meant as the address of a master of Mesos.
        let schemes = ["mesos://", "offermill://", "http://", "https://", "zk://"];
        let mut allowed = match schemes.iter().any(|scheme| text.contains(scheme)) {
            true => allowed_by(&mesos),
            false => {
                format!("{}; or {}; or {ALLOWED}", allowed_by(&local), allowed_by(&mesos))
            }
        };
        if text.contains("zk://") {
            allowed
                .push_str("; ZooKeeper is not supported; any of the masters knows the leading one");
        }
        Err(allowed)
    }
}

/// Whether a text is meant as the address of an API server of Kubernetes.
pub(crate) fn is_kubernetes(text: &str) -> bool {
    text.trim_start().starts_with("k8s:")
}

/// Whether a text is meant as the address of a standalone master.
pub(crate) fn is_standalone(text: &str) -> bool {
    text.trim_start().starts_with("offermill://")
}

impl ClusterKind {
    /// The kind in a sentence.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ClusterKind::Local => "local agents",
            ClusterKind::Mesos => "Mesos",
            ClusterKind::Kubernetes => "Kubernetes",
        }
    }
}

/// What an error of the library says is allowed.
fn allowed_by(error: &offermill::Error) -> String {
    let setting = error.invalid_setting();
    setting.map_or_else(|| error.to_string(), |setting| setting.allowed.to_owned())
}
