//! Commands to the manager's thread: the engine's calls, which own their parts.

use std::time::Duration;

use super::manifest::PodLaunch;
use super::pod_placement::PodPlacement;
use crate::engine::cluster_manager::{Call, ExecutorRequest};

/// A command to the manager's thread.
#[derive(Debug)]
pub(super) enum ActorCommand {
    /// Create the pods of these executors, by these permits.
    Accept {
        permits: Vec<String>,
        launches: Vec<PodLaunch>,
    },
    /// Close these permits for some time.
    Decline {
        permits: Vec<String>,
        refuse: Duration,
    },
    /// In the subscription of this number.
    Revive(u64),
    /// In the subscription of this number.
    Suppress(u64),
    Request(ExecutorRequest),
    /// Leave these nodes out, of which the latest excluded come first.
    Avoid(Vec<String>),
    Kill {
        executor: String,
        grace: Duration,
    },
    /// Report the states of these executors, or of all if there are none.
    Reconcile(Vec<String>),
    Acknowledge {
        executor: String,
        token: Vec<u8>,
    },
    /// Place executors so from now on.
    Place(PodPlacement),
    Stop,
}

impl ActorCommand {
    /// Converts a call. `None` for calls that have no effect here.
    pub(super) fn from_call(call: Call<'_>) -> Option<ActorCommand> {
        Some(match call {
            Call::Accept(accept) => {
                let launches = accept.executors.iter().map(|launch| PodLaunch {
                    executor: launch.executor.to_owned(),
                    resources: launch.resources,
                    command: launch.command.clone(),
                    queue: launch.queue.clone(),
                });
                ActorCommand::Accept {
                    permits: accept.offers.iter().map(|offer| offer.id.to_owned()).collect(),
                    launches: launches.collect(),
                }
            }
            Call::Decline { offers, refuse, epoch: _ } => ActorCommand::Decline {
                permits: offers.iter().map(|id| (*id).to_owned()).collect(),
                refuse,
            },
            Call::Revive { epoch } => ActorCommand::Revive(epoch),
            Call::Suppress { epoch } => ActorCommand::Suppress(epoch),
            Call::RequestExecutors(requests) => ActorCommand::Request(*requests.first()?),
            Call::Avoid(agents) => {
                ActorCommand::Avoid(agents.iter().map(|agent| agent.agent_id.to_owned()).collect())
            }
            Call::Kill { executor, grace, agent_id: _ } => {
                ActorCommand::Kill { executor: executor.to_owned(), grace }
            }
            Call::Reconcile(tasks) => {
                ActorCommand::Reconcile(tasks.iter().map(|task| task.executor.to_owned()).collect())
            }
            Call::Acknowledge { update, uuid } => ActorCommand::Acknowledge {
                executor: update.executor.clone(),
                token: uuid.to_vec(),
            },
            Call::Forget { .. } => return None,
        })
    }
}
