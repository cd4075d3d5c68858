//! The value of `--master`: the kind of the cluster, and its masters or local agents.

use std::str::FromStr;

use offermill::cluster::local::LocalMaster;
use offermill::cluster::mesos::Masters;

/// A cluster, as `--master` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClusterMaster {
    /// Agents in this process.
    Local(LocalMaster),
    /// The masters of a Mesos cluster.
    Mesos(Masters),
}

/// The kind of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClusterKind {
    Local,
    Mesos,
}

impl ClusterMaster {
    /// The kind of the cluster.
    pub(crate) fn kind(&self) -> ClusterKind {
        match self {
            ClusterMaster::Local(_) => ClusterKind::Local,
            ClusterMaster::Mesos(_) => ClusterKind::Mesos,
        }
    }
}

impl FromStr for ClusterMaster {
    /// What a value may be.
    type Err = String;

    fn from_str(text: &str) -> Result<ClusterMaster, String> {
        let local = match text.parse() {
            Ok(local) => return Ok(ClusterMaster::Local(local)),
            Err(error) => error,
        };
        let mesos = match text.parse() {
            Ok(masters) => return Ok(ClusterMaster::Mesos(masters)),
            Err(error) => error,
        };
        // A text with one of these schemes is meant as the address of a master of Mesos.
        let schemes = ["mesos://", "http://", "https://", "zk://"];
        let mut allowed = match schemes.iter().any(|scheme| text.contains(scheme)) {
            true => allowed_by(&mesos),
            false => format!("{}; or {}", allowed_by(&local), allowed_by(&mesos)),
        };
        if text.contains("zk://") {
            allowed
                .push_str("; ZooKeeper is not supported; any of the masters knows the leading one");
        }
        Err(allowed)
    }
}

/// What an error of the library says is allowed.
fn allowed_by(error: &offermill::Error) -> String {
    let setting = error.invalid_setting();
    setting.map_or_else(|| error.to_string(), |setting| setting.allowed.to_owned())
}
