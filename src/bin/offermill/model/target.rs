//! The cluster that a run uses: its master, its agents, where sandboxes are, and what becomes of executors if this
//! program ends without ending them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use offermill::cluster::kubernetes::KubernetesCluster;
use offermill::cluster::mesos::MesosCluster;

use crate::model::local_names::LocalNames;

/// The cluster that a run uses.
#[derive(Clone, Debug)]
pub(crate) struct RunTarget {
    /// The text of `--master`.
    pub(crate) master: String,
    /// The number of agents, if it is known before the start.
    pub(crate) agents: Option<AgentCounts>,
    /// How many executors fit at the same time, if that is known before the start.
    pub(crate) fitting: Option<u32>,
    /// Where the sandboxes are.
    pub(crate) sandboxes: SandboxPlace,
    /// The names of this machine, if agents are on it.
    pub(crate) local_names: Option<LocalNames>,
    /// What to add to a message that no offers come.
    pub(crate) no_offers_hint: Option<String>,
    /// What becomes of executors if this program ends without ending them.
    pub(crate) on_exit: OnExit,
    /// What the cluster keeps of the framework after the end.
    pub(crate) remains: FrameworkRemains,
    /// Where an operator can end a framework that is left behind.
    pub(crate) teardown_url: Option<String>,
    /// The longest that the cluster's stop may take before it is abandoned.
    pub(crate) stop_timeout: Duration,
}

/// The agents of a cluster that neither gains nor loses any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgentCounts {
    /// How many agents there are.
    pub(crate) all: usize,
    /// How many of them can run executors.
    pub(crate) usable: usize,
}

/// Where executors' sandboxes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SandboxPlace {
    /// In this folder of this machine.
    Here(PathBuf),
    /// In each agent's work folder, whose path only the agent knows.
    OnAgents,
    /// In the work folder of each worker of a standalone master.
    OnWorkers,
    /// In pods, with which they end.
    InPods,
}

impl SandboxPlace {
    /// The folder of a framework's sandboxes; on agents and workers the path of one sandbox, relative to their work
    /// folder.
    pub(crate) fn path(&self, framework_id: &str) -> String {
        match self {
            SandboxPlace::Here(folder) => folder.join(framework_id).display().to_string(),
            SandboxPlace::InPods => String::new(),
            SandboxPlace::OnWorkers => {
                format!("sandboxes/{framework_id}/{{agent_id}}/{{executor}}")
            }
            SandboxPlace::OnAgents => {
                let run = "executors/{executor}/runs/latest";
                format!("slaves/{{agent_id}}/frameworks/{framework_id}/{run}")
            }
        }
    }
}

/// What becomes of executors if this program ends without ending them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnExit {
    /// They are killed.
    Killed,
    /// The cluster keeps them for this long, for the next run.
    Kept(Duration),
    /// They run on until the next run of the same name takes them over, or they are deleted by hand.
    Left,
}

impl OnExit {
    /// Whether the cluster keeps a framework that was not torn down.
    pub(crate) fn are_kept(self) -> bool {
        match self {
            OnExit::Killed => false,
            OnExit::Kept(timeout) => !timeout.is_zero(),
            OnExit::Left => true,
        }
    }
}

/// What the cluster keeps of the framework after the end. Known once the engine has shut down.
#[derive(Clone, Debug, Default)]
pub(crate) enum FrameworkRemains {
    /// Nothing.
    #[default]
    Nothing,
    /// What this cluster's master keeps.
    Mesos(Arc<MesosCluster>),
    /// What pods and leases this cluster has.
    Kubernetes(Arc<KubernetesCluster>),
}

impl FrameworkRemains {
    /// Why the framework may still exist although it should have been torn down.
    pub(crate) fn why(&self) -> Option<&str> {
        match self {
            FrameworkRemains::Nothing => None,
            FrameworkRemains::Mesos(cluster) => cluster.why_left(),
            FrameworkRemains::Kubernetes(cluster) => cluster.why_left(),
        }
    }

    /// Whether the master has torn the framework down.
    pub(crate) fn is_torn_down(&self) -> bool {
        matches!(self, FrameworkRemains::Mesos(cluster) if cluster.is_torn_down())
    }
}
