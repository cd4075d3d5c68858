//! The model of a journal: entries, operations on a kernel, and their outcomes.

use std::time::Duration;

use crate::config::Config;
use crate::engine::agent_facts::bind_to;
use crate::engine::cluster_manager::{AgentFacts, OwnedOffer, RecoveredExecutor};
use crate::engine::owned::{BorrowedParts, borrow_offers};
use crate::engine::recovered::borrow_former;
use crate::ids::ExecutorId;
use crate::kernel::{
    Accepted, Bound, Change, Decisions, Decline, DemandCall, Exclusion, Handler, Kernel, LimitRule,
    Piece, Placed, Target, Totals,
};
use crate::offer::{BoundAgent, Offer};
use crate::resources::{ExecutorResources, Mebibytes, MilliCpus};
use crate::status::{StatusUpdate, TaskState, UpdateReason};
use crate::time::Timestamp;

/// An operation and its outcome.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct JournalEntry {
    /// When it took effect.
    pub at: Timestamp,
    /// The operation.
    pub operation: Operation,
    /// Its outcome.
    pub outcome: OperationOutcome,
    /// The kernel's totals after it.
    pub totals: Totals,
    /// The executor limit in force after it.
    pub limit: Option<u32>,
}

/// An operation on a kernel. [`Player::play`](super::Player::play) runs it again.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Operation {
    /// A batch of offers was answered.
    Offers(Vec<OwnedOffer>),
    /// The last batch's answers were sent, and a revive had come since the batch was decided:
    /// [`Kernel::answers_sent`](crate::Kernel::answers_sent). Without such a revive, that changes nothing and is not
    /// recorded.
    AnswersLeftLate,
    /// A status update was applied.
    Update {
        /// The executor's id.
        executor: String,
        /// Its state.
        state: TaskState,
        /// The reason for the state.
        reason: UpdateReason,
        /// Its effect on the executor limit, if the executor finished.
        limit: LimitRule,
    },
    /// An executor was found on an agent that the cluster chose: [`Kernel::bind`](crate::Kernel::bind). The update that
    /// said so follows.
    Bind {
        /// The executor's id.
        executor: String,
        /// The agent's id.
        agent_id: String,
        /// What is known of the agent.
        facts: AgentFacts,
    },
    /// An agent was reported lost.
    AgentLost {
        /// The agent's id.
        agent_id: String,
    },
    /// An executor was reported lost.
    ExecutorLost {
        /// The executor's id.
        executor: String,
    },
    /// An agent was readmitted: [`Kernel::readmit_agent`](crate::Kernel::readmit_agent).
    AgentReadmitted {
        /// The agent's id.
        agent_id: String,
    },
    /// The executor limit was set.
    Limit(Option<u32>),
    /// The executor limit and the wanted hosts were set.
    Request {
        /// The limit.
        limit: Option<u32>,
        /// The hosts.
        hosts: Vec<String>,
    },
    /// The wanted hosts were set: [`Kernel::set_locality`](crate::Kernel::set_locality).
    Locality(Vec<String>),
    /// The settings were replaced: [`Kernel::reconfigure`](crate::Kernel::reconfigure).
    Reconfigured(Box<Config>),
    /// These executors were marked as killed.
    Kill(Vec<String>),
    /// Executors of a former run were adopted.
    Recovered(Vec<RecoveredExecutor>),
    /// A subscription began.
    Registered {
        /// The cluster's id for this framework.
        framework_id: String,
    },
    /// The subscription ended.
    Disconnected,
    /// The kernel was closed.
    Close,
    /// No operation: recorded at each full minute and at the end, so that the journal shows the passage of time.
    Wait,
    /// A point of the grid whose poll or tick had a result. Not an input: a player runs all points by itself.
    Point,
}

/// The outcome of an operation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OperationOutcome {
    /// Of [`Operation::Registered`], [`Operation::Disconnected`], [`Operation::AnswersLeftLate`], [`Operation::Limit`],
    /// [`Operation::Request`], [`Operation::Locality`], [`Operation::Reconfigured`] and [`Operation::Wait`].
    Done,
    /// Of [`Operation::Limit`] and [`Operation::Request`]: the limit is out of range.
    Refused,
    /// Of [`Operation::Offers`].
    Answers(BatchAnswers),
    /// Of [`Operation::Update`].
    Updated {
        /// The change of the executor's state.
        change: Change,
        /// The resources that were freed.
        freed: Option<ExecutorResources>,
        /// Whether the executor must be killed.
        kill: bool,
        /// The agent that was excluded by it.
        excluded: Option<Exclusion>,
    },
    /// Of [`Operation::Bind`].
    Bound(Bound),
    /// Of [`Operation::AgentLost`], [`Operation::ExecutorLost`], [`Operation::Kill`] and [`Operation::Close`]: the
    /// executors to be reconciled or killed, and their agents.
    Targets(Vec<(String, String)>),
    /// Of [`Operation::AgentReadmitted`].
    Readmitted {
        /// Whether the agent was excluded or suspect.
        was_refused: bool,
    },
    /// Of [`Operation::Recovered`]: for each executor, whether there was room for it. Empty if executors had been
    /// adopted before.
    Adopted(Vec<bool>),
    /// Of [`Operation::Point`].
    Point {
        /// The call that was due.
        demand: Option<DemandCall>,
        /// Executors whose resources are no longer counted.
        given_up: Vec<String>,
        /// Executors that are forgotten.
        forgotten: Vec<String>,
        /// The number of agents that were forgotten.
        agents_forgotten: usize,
    },
}

/// The answers to a batch. Offers are given by their positions in it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct BatchAnswers {
    /// The acceptances, in order.
    pub accepts: Vec<AcceptedOffers>,
    /// The declined offers, in order.
    pub declines: Vec<Decline>,
}

/// Offers that were accepted together.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AcceptedOffers {
    /// The offers.
    pub offers: Vec<u32>,
    /// The executors, in the order in which they were placed.
    pub executors: Vec<Launched>,
    /// How long the agent's remaining resources are refused for.
    pub refuse: Duration,
}

/// An executor that was placed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Launched {
    /// Its id.
    pub executor: String,
    /// The resources that it takes.
    pub resources: ExecutorResources,
    /// The cores in its command.
    pub advertised_cores: MilliCpus,
    /// The memory in its command.
    pub advertised_memory: Mebibytes,
    /// The same resources, piece by piece.
    pub pieces: Vec<Piece>,
}

impl JournalEntry {
    /// An entry with the kernel's present totals and limit.
    pub(super) fn after(
        kernel: &Kernel,
        at: Timestamp,
        operation: Operation,
        outcome: OperationOutcome,
    ) -> JournalEntry {
        let totals = kernel.totals();
        let limit = kernel.executor_limit();
        JournalEntry { at, operation, outcome, totals, limit }
    }
}

impl Operation {
    /// Its weight in the queue to the journal's thread: an offer weighs as much as any other operation.
    pub(super) fn weight(&self) -> usize {
        match self {
            Operation::Offers(offers) => 1 + offers.len(),
            Operation::Kill(executors) => 1 + executors.len() / 8,
            Operation::Request { hosts, .. } | Operation::Locality(hosts) => 1 + hosts.len() / 8,
            Operation::Recovered(executors) => 1 + executors.len() / 4,
            _ => 1,
        }
    }

    /// Returns the batch of [`Operation::Offers`] as a kernel takes it; for other operations, an empty batch. The
    /// offers borrow from the operation and from `parts`, which must be new.
    #[must_use]
    pub fn batch<'a>(&'a self, parts: &'a BorrowedParts<'a>) -> &'a [Offer<'a>] {
        match self {
            Operation::Offers(offers) => borrow_offers(offers, parts),
            _ => &[],
        }
    }

    /// The operation of answering a batch.
    #[must_use]
    pub fn offers(batch: &[Offer<'_>]) -> Operation {
        Operation::Offers(batch.iter().map(OwnedOffer::from).collect())
    }
}

impl Operation {
    /// Runs the operation on a kernel and its handler.
    pub(super) fn apply(
        &self,
        kernel: &Kernel,
        handler: &mut Handler,
        decisions: &mut Decisions,
        at: Timestamp,
    ) -> OperationOutcome {
        match self {
            Operation::Offers(_) => {
                let parts = BorrowedParts::default();
                handler.resource_offers(self.batch(&parts), at, decisions);
                return OperationOutcome::answers(kernel, decisions);
            }
            Operation::AnswersLeftLate => kernel.answers_sent(decisions),
            Operation::Update { executor, state, reason, limit } => {
                let update = StatusUpdate::new(executor, *state).because(*reason);
                return OperationOutcome::from(&kernel.status_update_with(&update, *limit, at));
            }
            Operation::Bind { executor, agent_id, facts } => {
                let bind = |agent: &BoundAgent<'_>| kernel.bind(executor, agent, at);
                return OperationOutcome::Bound(bind_to(agent_id, Some(facts), bind));
            }
            Operation::AgentLost { agent_id } => {
                return OperationOutcome::targets(kernel, &kernel.agent_lost(agent_id, at));
            }
            Operation::ExecutorLost { executor } => {
                return OperationOutcome::targets(
                    kernel,
                    kernel.executor_lost(executor).as_slice(),
                );
            }
            Operation::AgentReadmitted { agent_id } => {
                let was_refused = kernel.readmit_agent(agent_id, at);
                return OperationOutcome::Readmitted { was_refused };
            }
            Operation::Limit(limit) => {
                return OperationOutcome::set(&kernel.set_executor_limit(*limit));
            }
            Operation::Request { limit, hosts } => {
                let hosts = hosts.iter().map(String::as_str);
                return OperationOutcome::set(&kernel.request_executors(*limit, hosts, at));
            }
            Operation::Locality(hosts) => kernel.set_locality(hosts.iter().map(String::as_str)),
            Operation::Reconfigured(config) => kernel.reconfigure(Config::clone(config)),
            Operation::Kill(executors) => {
                let ids = executors.iter().filter_map(|executor| kernel.executor_id(executor));
                return OperationOutcome::targets(kernel, &kernel.kill_executors(ids));
            }
            Operation::Recovered(former) => {
                let adopted = kernel.adopt(&borrow_former(former), at);
                return OperationOutcome::adopted(adopted.as_deref().unwrap_or_default());
            }
            Operation::Registered { .. } => {
                kernel.registered();
            }
            Operation::Disconnected => kernel.disconnected(),
            Operation::Close => return OperationOutcome::targets(kernel, &kernel.close()),
            Operation::Wait | Operation::Point => {}
        }
        OperationOutcome::Done
    }
}

impl AcceptedOffers {
    /// The record of an acceptance by `kernel`.
    #[must_use]
    pub fn of(kernel: &Kernel, accepted: &Accepted<'_>) -> AcceptedOffers {
        let executors = accepted.executors.iter();
        AcceptedOffers {
            offers: accepted.offers.to_vec(),
            executors: executors.map(|placed| launched(kernel, accepted, placed)).collect(),
            refuse: accepted.refuse,
        }
    }
}

impl OperationOutcome {
    pub(crate) fn answers(kernel: &Kernel, decisions: &Decisions) -> OperationOutcome {
        let accepts = decisions.accepts().map(|accepted| AcceptedOffers::of(kernel, &accepted));
        let declines = decisions.declines().to_vec();
        OperationOutcome::Answers(BatchAnswers { accepts: accepts.collect(), declines })
    }

    pub(crate) fn adopted(ids: &[Option<ExecutorId>]) -> OperationOutcome {
        OperationOutcome::Adopted(ids.iter().map(Option::is_some).collect())
    }

    /// The outcome of setting a limit.
    pub(crate) fn set<E>(set: &Result<(), E>) -> OperationOutcome {
        if set.is_ok() { OperationOutcome::Done } else { OperationOutcome::Refused }
    }

    pub(crate) fn targets(kernel: &Kernel, targets: &[Target]) -> OperationOutcome {
        let name = |it: &Target| (kernel.executor_name(it.id).to_string(), it.agent_id.to_string());
        OperationOutcome::Targets(targets.iter().map(name).collect())
    }
}

impl From<&crate::kernel::Outcome> for OperationOutcome {
    fn from(outcome: &crate::kernel::Outcome) -> OperationOutcome {
        let crate::kernel::Outcome { change, freed, kill, excluded, .. } = outcome;
        OperationOutcome::Updated {
            change: *change,
            freed: *freed,
            kill: *kill,
            excluded: excluded.clone(),
        }
    }
}

fn launched(kernel: &Kernel, accepted: &Accepted<'_>, placed: &Placed) -> Launched {
    Launched {
        executor: kernel.executor_name(placed.id).to_string(),
        resources: placed.resources,
        advertised_cores: placed.advertised_cores,
        advertised_memory: placed.advertised_memory,
        pieces: accepted.pieces(placed).to_vec(),
    }
}
