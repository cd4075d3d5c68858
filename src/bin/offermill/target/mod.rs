//! Where a run takes place. What differs from one kind of cluster to another is settled here, once and before the
//! start; the rest of the run reads what came out and doesn't ask which kind it was.

mod local;
mod mesos;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use offermill::Config;
use offermill::cluster::mesos::MesosCluster;
use offermill::config::text::format_duration;
use offermill::engine::cluster_manager::ClusterManager;

use crate::model::state::RunState;
use crate::settings::draft::Draft;
use crate::settings::master::Master;
use crate::settings::preflight;
use crate::text::format::printable;

/// Where a run takes place.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The master as it was given.
    pub(crate) master: String,
    /// The agents, where it is known beforehand which there are.
    pub(crate) agents: Option<Agents>,
    /// How many executors there is room for at a time, if that can be counted.
    pub(crate) fitting: Option<u32>,
    /// Where executors' output is.
    pub(crate) sandboxes: Sandboxes,
    /// What there is to know when no offers come.
    pub(crate) silence: Option<&'static str>,
    /// What becomes of executors that this program leaves behind.
    pub(crate) leavings: OnExit,
    /// What the cluster keeps of the framework at the end.
    pub(crate) remains: Remains,
    /// How long the cluster's stop may take before it is left alone.
    pub(crate) stop_within: Duration,
}

/// What the cluster keeps of the framework at the end: known once the engine has shut down.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remains(Option<Arc<MesosCluster>>);

impl Remains {
    /// Why the framework may still be there, although it was to be ended.
    pub(crate) fn why(&self) -> Option<&str> {
        self.0.as_ref().and_then(|cluster| cluster.why_left())
    }
}

/// Agents that don't come and go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agents {
    /// How many there are.
    pub(crate) all: usize,
    /// How many of them can get executors.
    pub(crate) usable: usize,
}

/// Where executors' output is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sandboxes {
    /// In this folder of this machine.
    Here(PathBuf),
    /// In the work folder of each agent, which only agents know.
    OnAgents,
}

/// What becomes of executors when this program ends without ending them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnExit {
    /// They are killed.
    Killed,
    /// The cluster keeps them for so long, for a next run.
    Kept(Duration),
}

/// What became of executors that had not ended in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Late {
    /// As in `1 killed by force`.
    pub(crate) state: &'static str,
    /// As in `2 executors had not …`.
    pub(crate) sentence: &'static str,
}

/// A site, and what carries out the engine's calls there.
pub(crate) type Prepared = (Target, Arc<dyn ClusterManager>);

/// The command as the cluster's machines can find it. Complains if it is to be found on this one and can't.
pub(crate) fn find_command(command: &[String], draft: &mut Draft) -> Option<Vec<String>> {
    match draft.master {
        Some((_, Master::Mesos(_))) => Some(command.to_vec()),
        _ => preflight::find_command(command, draft),
    }
}

/// Checks what can be checked before the start, and makes the cluster's manager. `None` if there was something to
/// complain about.
pub(crate) fn prepare(draft: &mut Draft, name: &str, config: &Config) -> Option<Prepared> {
    let (text, master) = draft.master.clone()?;
    let prepared = match master {
        Master::Local(master) => local::prepare(draft, text, &master, config),
        Master::Mesos(masters) => mesos::prepare(draft, text, masters, name, config),
    };
    prepared.filter(|_| draft.problems.is_empty())
}

impl Sandboxes {
    /// Where they are, for people: a heading and a sentence each.
    pub(crate) fn told(&self, roster: &RunState) -> Vec<(&'static str, String)> {
        let framework_id = &roster.framework_id;
        let is_empty = *self == Sandboxes::OnAgents && roster.agents.is_empty();
        if framework_id.is_empty() || is_empty {
            return Vec::new();
        }
        match self {
            Sandboxes::Here(_) => vec![("output in", self.place(framework_id))],
            Sandboxes::OnAgents => {
                let mut agents: Vec<(&str, &str)> =
                    roster.agents.iter().map(|(id, agent)| (&*agent.host, &**id)).collect();
                agents.sort_unstable();
                let folders = agents.into_iter().take(AGENTS_TOLD_MAX).map(|(host, id)| {
                    let host = printable(host);
                    ("", format!("{host}: slaves/{id}/frameworks/{framework_id}"))
                });
                let first = "agents' work folders, in executors/EXECUTOR/runs/latest of".to_owned();
                [("output in", first)].into_iter().chain(folders).collect()
            }
        }
    }

    /// The folder of a framework's sandboxes; on agents that of one sandbox, from an agent's work folder.
    pub(crate) fn place(&self, framework_id: &str) -> String {
        match self {
            Sandboxes::Here(folder) => folder.join(framework_id).display().to_string(),
            Sandboxes::OnAgents => {
                let run = "executors/{executor}/runs/latest";
                format!("slaves/{{agent_id}}/frameworks/{framework_id}/{run}")
            }
        }
    }
}

/// So many agents are told with their ids.
const AGENTS_TOLD_MAX: usize = 20;

impl OnExit {
    /// What is said when the run is ended at once.
    pub(crate) fn at_once(self) -> String {
        match self {
            OnExit::Killed => "ended at once, executors are killed".to_owned(),
            OnExit::Kept(Duration::ZERO) => {
                "ended at once; the master ends the executors when it misses this framework, now \
                 (see --failover-timeout)"
                    .to_owned()
            }
            OnExit::Kept(timeout) => format!(
                "ended at once; executors run on until the master has missed this framework for {}",
                format_duration(timeout)
            ),
        }
    }

    /// What becomes of executors while the cluster is out of sight.
    pub(crate) fn meanwhile(self) -> String {
        match self {
            OnExit::Killed => "executors run on".to_owned(),
            OnExit::Kept(Duration::ZERO) => {
                "without --failover-timeout it ends the executors".to_owned()
            }
            OnExit::Kept(timeout) => {
                format!("executors run on for up to {}", format_duration(timeout))
            }
        }
    }

    /// What becomes of a framework that could not be ended, for that reason.
    pub(crate) fn framework(self, why: &str) -> String {
        let why = printable(why);
        match self {
            OnExit::Kept(timeout) if !timeout.is_zero() => format!(
                "the framework could not be torn down, and the master may keep it for {} ({why})",
                format_duration(timeout)
            ),
            OnExit::Killed | OnExit::Kept(_) => format!(
                "the framework could not be torn down, and ends when the master misses it ({why})"
            ),
        }
    }

    /// Whether the cluster keeps a framework that it wasn't told to end.
    pub(crate) fn are_kept(self) -> bool {
        matches!(self, OnExit::Kept(timeout) if !timeout.is_zero())
    }

    /// What became of executors that had not ended in time, given whether the cluster listened.
    pub(crate) fn late(self, is_heard: bool) -> Late {
        match self {
            OnExit::Kept(_) if !is_heard => Late {
                state: "left behind",
                sentence: "had not ended in time, and the master can't be told to end them",
            },
            OnExit::Killed | OnExit::Kept(_) => Late {
                state: "killed by force",
                sentence: "had not ended in time and had to be killed",
            },
        }
    }
}
