//! Messages to the cluster's thread: calls that own their parts, events of processes, and the owner's requests.

use std::time::Duration;

use crate::cluster::process::ProcessEvent;
use crate::cluster::task_host::HostEvent;
use crate::cluster::worker_offers::CpuMemory;
use crate::engine::cluster_manager::{Accept, Call, Launch};
use crate::launch::Command;
use crate::resources::Gpus;

/// One message to the cluster's thread.
#[derive(Debug)]
pub(super) enum ActorMessage {
    Accept(AcceptRequest),
    Decline {
        epoch: u64,
        offers: Vec<String>,
        refuse: Duration,
    },
    Revive,
    Suppress,
    Kill {
        executor: String,
        grace: Duration,
    },
    /// Report the state of these executors, or of all if there are none.
    Reconcile(Vec<ReconcileRequest>),
    Process(ProcessEvent),
    /// Something of the connection to this host of tasks.
    Host(String, HostEvent),
    LoseAgent(usize),
    RestoreAgent(usize),
    Stop,
}

/// An [`Accept`] that owns its parts.
#[derive(Debug)]
pub(super) struct AcceptRequest {
    pub(super) epoch: u64,
    pub(super) agent_id: String,
    pub(super) offers: Vec<String>,
    pub(super) executors: Vec<LaunchRequest>,
    pub(super) refuse: Duration,
}

/// A [`Launch`] that owns its parts. Agents have no reservations, so totals suffice.
#[derive(Debug)]
pub(super) struct LaunchRequest {
    pub(super) executor: String,
    pub(super) amounts: CpuMemory,
    pub(super) gpus: Gpus,
    pub(super) port: Option<u16>,
    pub(super) command: Command,
}

/// What the cluster keeps of an executor that has, or will have, processes: its share of an agent.
#[derive(Debug)]
pub(super) struct AgentShare {
    pub(super) agent: usize,
    pub(super) agent_id: String,
    pub(super) amounts: CpuMemory,
    pub(super) port: Option<u16>,
}

/// An executor to reconcile, and the agent on which it was started.
#[derive(Debug)]
pub(super) struct ReconcileRequest {
    pub(super) executor: String,
    pub(super) agent_id: String,
}

impl ActorMessage {
    /// Converts a call to a message. `None` for calls that have no effect here: agents make offers without being asked,
    /// and updates are not sent again.
    pub(super) fn from_call(call: Call<'_>) -> Option<ActorMessage> {
        Some(match call {
            Call::Accept(accept) => ActorMessage::Accept(AcceptRequest::new(&accept)),
            Call::Decline { epoch, offers, refuse } => {
                let offers = offers.iter().map(|id| (*id).to_owned()).collect();
                ActorMessage::Decline { epoch, offers, refuse }
            }
            Call::Revive { .. } => ActorMessage::Revive,
            Call::Suppress { .. } => ActorMessage::Suppress,
            Call::Kill { executor, grace, agent_id: _ } => {
                ActorMessage::Kill { executor: executor.to_owned(), grace }
            }
            Call::Reconcile(tasks) => ActorMessage::Reconcile(
                tasks
                    .iter()
                    .map(|one| ReconcileRequest {
                        executor: one.executor.to_owned(),
                        agent_id: one.agent_id.to_owned(),
                    })
                    .collect(),
            ),
            Call::RequestExecutors(_)
            | Call::Avoid(_)
            | Call::Forget { .. }
            | Call::Acknowledge { .. } => {
                return None;
            }
        })
    }
}

impl AcceptRequest {
    fn new(accept: &Accept<'_>) -> AcceptRequest {
        AcceptRequest {
            epoch: accept.epoch,
            agent_id: accept.agent_id.to_owned(),
            offers: accept.offers.iter().map(|offer| offer.id.to_owned()).collect(),
            executors: accept.executors.iter().map(LaunchRequest::new).collect(),
            refuse: accept.refuse,
        }
    }
}

impl LaunchRequest {
    fn new(launch: &Launch<'_>) -> LaunchRequest {
        LaunchRequest {
            executor: launch.executor.to_owned(),
            amounts: CpuMemory { cores: launch.resources.cores, memory: launch.resources.memory },
            gpus: launch.resources.gpus,
            port: launch.resources.port,
            command: launch.command.clone(),
        }
    }
}
