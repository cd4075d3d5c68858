//! Preparation of the cluster of a run. Differences between kinds of clusters are resolved here, before the start; the
//! rest of the run uses the resulting [`RunTarget`].

pub(crate) mod kubernetes;
mod local;
mod mesos;

use std::sync::Arc;

use offermill::Config;
use offermill::engine::cluster_manager::ClusterManager;

use crate::model::target::RunTarget;
use crate::settings::draft::SettingsDraft;
use crate::settings::master::ClusterMaster;

/// The target, and the manager that executes the engine's calls there.
pub(crate) type PreparedTarget = (RunTarget, Arc<dyn ClusterManager>);

/// Checks what can be checked before the start, and makes the cluster's manager. `None` if there are problems.
pub(crate) fn prepare(
    draft: &mut SettingsDraft,
    name: &str,
    config: &Config,
) -> Option<PreparedTarget> {
    let (text, master) = draft.master.clone()?;
    let prepared = match master {
        ClusterMaster::Local(master) => local::prepare(draft, text, &master, config),
        ClusterMaster::Mesos(masters) => mesos::prepare(draft, text, masters, name, config),
        ClusterMaster::Kubernetes(address) => {
            kubernetes::prepare(draft, text, &address, name, config)
        }
    };
    prepared.filter(|_| draft.problems.is_empty())
}
