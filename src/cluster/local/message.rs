//! What reaches the cluster's thread: calls in a form that outlives the caller, exits, and
//! requests.

use std::io;
use std::time::Duration;

use super::agent::Room;
use super::process::Unstarted;
use super::starts::Started;
use super::warden::Warden;
use crate::engine::cluster_manager::{Accept, Call, Launch};
use crate::launch::Command;
use crate::resources::Gpus;

/// One message to the cluster's thread.
#[derive(Debug)]
pub(super) enum Message {
    Accept(Acceptance),
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
    /// Empty: all that are alive.
    Reconcile(Vec<Question>),
    /// The process of the executor with this number has ended.
    Ended(u64),
    /// The start of the executor with this number has come to an end.
    Started {
        number: u64,
        started: Result<Started, Unstarted>,
    },
    /// Another warden for the executor with this number.
    Relief {
        number: u64,
        warden: io::Result<Warden>,
    },
    LoseAgent(usize),
    RestoreAgent(usize),
    Stop,
}

/// An [`Accept`] that owns its parts.
#[derive(Debug)]
pub(super) struct Acceptance {
    pub(super) epoch: u64,
    pub(super) agent_id: String,
    pub(super) offers: Vec<String>,
    pub(super) executors: Vec<Order>,
    pub(super) refuse: Duration,
}

/// A [`Launch`] that owns its parts. Agents have no reservations, so the totals say all.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) executor: String,
    pub(super) room: Room,
    pub(super) gpus: Gpus,
    pub(super) port: Option<u16>,
    pub(super) command: Command,
}

/// An executor whose state is in question, and where it was started.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) executor: String,
    pub(super) agent_id: String,
}

impl Message {
    /// The call, owned. `None` for calls that mean nothing here: agents offer unasked, and updates
    /// are not sent again.
    pub(super) fn of(call: Call<'_>) -> Option<Message> {
        Some(match call {
            Call::Accept(accept) => Message::Accept(Acceptance::of(&accept)),
            Call::Decline { epoch, offers, refuse } => {
                let offers = offers.iter().map(|id| (*id).to_owned()).collect();
                Message::Decline { epoch, offers, refuse }
            }
            Call::Revive { .. } => Message::Revive,
            Call::Suppress { .. } => Message::Suppress,
            Call::Kill { executor, grace, agent_id: _ } => {
                Message::Kill { executor: executor.to_owned(), grace }
            }
            Call::Reconcile(questions) => Message::Reconcile(
                questions
                    .iter()
                    .map(|one| Question {
                        executor: one.executor.to_owned(),
                        agent_id: one.agent_id.to_owned(),
                    })
                    .collect(),
            ),
            Call::Want(_) | Call::Forget { .. } | Call::Acknowledge { .. } => return None,
        })
    }
}

impl Acceptance {
    fn of(accept: &Accept<'_>) -> Acceptance {
        Acceptance {
            epoch: accept.epoch,
            agent_id: accept.agent_id.to_owned(),
            offers: accept.offers.iter().map(|offer| offer.id.to_owned()).collect(),
            executors: accept.executors.iter().map(Order::of).collect(),
            refuse: accept.refuse,
        }
    }
}

impl Order {
    fn of(launch: &Launch<'_>) -> Order {
        Order {
            executor: launch.executor.to_owned(),
            room: Room { cores: launch.resources.cores, memory: launch.resources.memory },
            gpus: launch.resources.gpus,
            port: launch.resources.port,
            command: launch.command.clone(),
        }
    }
}
