//! What a journal keeps.

use std::time::Duration;

use crate::engine::cluster_manager::{OwnedOffer, RecoveredExecutor};
use crate::engine::owned::{BorrowedParts, borrow_offers};
use crate::ids::ExecutorId;
use crate::kernel::{
    Accepted, Change, Decisions, Decline, DemandCall, Exclusion, Freed, Kernel, LimitRule, Piece,
    Placed, Target, Totals,
};
use crate::offer::Offer;
use crate::resources::{Gpus, Mebibytes, MilliCpus};
use crate::status::{TaskState, UpdateReason};
use crate::time::Timestamp;

/// An operation and what came of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Entry {
    /// When it took effect.
    pub at: Timestamp,
    /// What was done.
    pub operation: Operation,
    /// What came of it.
    pub outcome: Outcome,
    /// The kernel's sums after it.
    pub totals: Totals,
    /// The executor limit in force after it.
    pub limit: Option<u32>,
}

/// What was done to a kernel.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Operation {
    /// A batch of offers was answered.
    Offers(Vec<OwnedOffer>),
    /// The last batch's answers had left only after a revive that came meanwhile:
    /// [`Kernel::answers_sent`](crate::Kernel::answers_sent). Where no revive came in between, that does nothing and
    /// is not recorded.
    AnswersLeftLate,
    /// A status update was applied.
    Update {
        /// The executor's id.
        executor: String,
        /// Its state.
        state: TaskState,
        /// Why.
        reason: UpdateReason,
        /// What it did to the executor limit, if the executor finished.
        limit: LimitRule,
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
    /// A new executor limit was put in force.
    Limit(Option<u32>),
    /// A new executor limit and wanted hosts were put in force.
    Request {
        /// The limit.
        limit: Option<u32>,
        /// The hosts.
        hosts: Vec<String>,
    },
    /// These executors were noted as asked to end.
    Kill(Vec<String>),
    /// Executors of a former run were taken over.
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
    /// Nothing: recorded at each full minute and at the end, so that the passage of time is on record.
    Wait,
    /// A point of the grid, with its poll and perhaps its tick, that something came of. No input: a player makes all
    /// points by itself.
    Point,
}

/// What came of an operation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// Of [`Operation::Registered`], [`Operation::Disconnected`], [`Operation::AnswersLeftLate`], [`Operation::Limit`],
    /// [`Operation::Request`] and [`Operation::Wait`].
    Done,
    /// Of [`Operation::Limit`] and [`Operation::Request`]: the limit is none that there can be.
    Refused,
    /// Of [`Operation::Offers`].
    Answers(Answers),
    /// Of [`Operation::Update`].
    Updated {
        /// What changed.
        change: Change,
        /// What was freed.
        freed: Option<Freed>,
        /// Whether the executor must be killed.
        kill: bool,
        /// The agent that is excluded from now on.
        excluded: Option<Exclusion>,
    },
    /// Of [`Operation::AgentLost`], [`Operation::ExecutorLost`], [`Operation::Kill`] and [`Operation::Close`]: the
    /// executors that are to be asked about or to be killed, and their agents.
    Targets(Vec<(String, String)>),
    /// Of [`Operation::Recovered`]: for each executor whether there was room for it. Empty if there was an adoption
    /// before.
    Adopted(Vec<bool>),
    /// Of [`Operation::Point`].
    Passed {
        /// The call that was due.
        demand: Option<DemandCall>,
        /// Executors whose resources are counted no more.
        given_up: Vec<String>,
        /// Executors that are forgotten.
        forgotten: Vec<String>,
        /// So many agents were forgotten.
        agents_forgotten: usize,
    },
}

/// How a batch was answered. Offers are named by their positions in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers {
    /// What was accepted, in order.
    pub accepts: Vec<Acceptance>,
    /// What was declined, in order.
    pub declines: Vec<Decline>,
}

/// Offers that were accepted together.
#[derive(Clone, Debug, PartialEq)]
pub struct Acceptance {
    /// The offers.
    pub offers: Vec<u32>,
    /// The executors, in the order in which they were placed.
    pub executors: Vec<Launched>,
    /// How long the agent's remaining resources are refused for.
    pub refuse: Duration,
}

/// An executor that was placed.
#[derive(Clone, Debug, PartialEq)]
pub struct Launched {
    /// Its id.
    pub executor: String,
    /// The cores that it takes.
    pub cores: MilliCpus,
    /// The cores that it is told.
    pub advertised_cores: MilliCpus,
    /// The memory that it takes, overhead included.
    pub memory: Mebibytes,
    /// The memory that it is told.
    pub advertised_memory: Mebibytes,
    /// The GPUs that it takes.
    pub gpus: Gpus,
    /// The port that it takes.
    pub port: Option<u16>,
    /// The same, piece by piece.
    pub pieces: Vec<Piece>,
}

impl Entry {
    /// With the state of the kernel as it is now.
    pub(super) fn after(
        kernel: &Kernel,
        at: Timestamp,
        operation: Operation,
        outcome: Outcome,
    ) -> Entry {
        let (totals, limit) = (kernel.totals(), kernel.executor_limit());
        Entry { at, operation, outcome, totals, limit }
    }
}

impl Operation {
    /// How much of a queue's room it takes: an offer is about as large as any other operation.
    pub(super) fn weight(&self) -> usize {
        match self {
            Operation::Offers(offers) => 1 + offers.len(),
            Operation::Kill(executors) => 1 + executors.len() / 8,
            Operation::Request { hosts, .. } => 1 + hosts.len() / 8,
            Operation::Recovered(executors) => 1 + executors.len() / 4,
            _ => 1,
        }
    }

    /// The batch of [`Operation::Offers`] as a kernel takes it; of others nothing.
    pub fn with_batch<R>(&self, use_it: impl FnOnce(&[Offer<'_>]) -> R) -> R {
        match self {
            Operation::Offers(offers) => use_it(borrow_offers(offers, &BorrowedParts::default())),
            _ => use_it(&[]),
        }
    }

    /// A batch as it is recorded.
    #[must_use]
    pub fn offers(batch: &[Offer<'_>]) -> Operation {
        Operation::Offers(batch.iter().map(OwnedOffer::from).collect())
    }
}

impl Outcome {
    pub(crate) fn answers(kernel: &Kernel, decisions: &Decisions) -> Outcome {
        let accepts = decisions.accepts().map(|accepted| Acceptance {
            offers: accepted.offers.to_vec(),
            executors: accepted
                .executors
                .iter()
                .map(|it| launched(kernel, &accepted, it))
                .collect(),
            refuse: accepted.refuse,
        });
        let declines = decisions.declines().to_vec();
        Outcome::Answers(Answers { accepts: accepts.collect(), declines })
    }

    pub(crate) fn adopted(ids: &[Option<ExecutorId>]) -> Outcome {
        Outcome::Adopted(ids.iter().map(Option::is_some).collect())
    }

    pub(crate) fn targets(kernel: &Kernel, targets: &[Target]) -> Outcome {
        let name = |it: &Target| (kernel.executor_name(it.id).to_string(), it.agent_id.to_string());
        Outcome::Targets(targets.iter().map(name).collect())
    }
}

impl From<&crate::kernel::Outcome> for Outcome {
    fn from(outcome: &crate::kernel::Outcome) -> Outcome {
        let crate::kernel::Outcome { change, freed, kill, excluded, .. } = outcome;
        Outcome::Updated { change: *change, freed: *freed, kill: *kill, excluded: excluded.clone() }
    }
}

fn launched(kernel: &Kernel, accepted: &Accepted<'_>, placed: &Placed) -> Launched {
    Launched {
        executor: kernel.executor_name(placed.id).to_string(),
        cores: placed.cores,
        advertised_cores: placed.advertised_cores,
        memory: placed.memory,
        advertised_memory: placed.advertised_memory,
        gpus: placed.gpus,
        port: placed.port,
        pieces: accepted.pieces(placed).to_vec(),
    }
}
