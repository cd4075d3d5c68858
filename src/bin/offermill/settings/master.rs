//! The master string: which kind of cluster, and where.

use std::str::FromStr;

use offermill::cluster::local::LocalMaster;
use offermill::cluster::mesos::Masters;

/// A cluster that can be had by one string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Master {
    /// Agents in this process.
    Local(LocalMaster),
    /// The masters of a Mesos cluster.
    Mesos(Masters),
}

/// The kinds of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Local,
    Mesos,
}

impl Master {
    /// What it is the master of.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Master::Local(_) => Kind::Local,
            Master::Mesos(_) => Kind::Mesos,
        }
    }
}

impl FromStr for Master {
    /// What a master string may be.
    type Err = String;

    fn from_str(text: &str) -> Result<Master, String> {
        let local = match text.parse() {
            Ok(local) => return Ok(Master::Local(local)),
            Err(error) => error,
        };
        let mesos = match text.parse() {
            Ok(masters) => return Ok(Master::Mesos(masters)),
            Err(error) => error,
        };
        // Whoever wrote an address means one.
        let mut allowed = match text.contains("://") {
            true => allowed_by(&mesos),
            false => format!("{}; or {}", allowed_by(&local), allowed_by(&mesos)),
        };
        if text.contains("zk://") {
            allowed.push_str("; ZooKeeper isn't asked, any of the masters tells which one leads");
        }
        Err(allowed)
    }
}

/// What the library's complaint says is allowed.
fn allowed_by(error: &offermill::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(", but must be ").map_or(text.clone(), |(_, allowed)| allowed.to_owned())
}
