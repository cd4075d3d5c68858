//! The interface between the engine and cluster managers: the [`ClusterManager`] trait, the [`Event`]s that a manager
//! sends, and the [`Call`]s that it carries out.
//!
//! It serves three kinds of manager:
//! * Managers that *make offers* (Mesos) send [`Event::Offers`] or [`Event::Encoded`] and carry out [`Call::Accept`]
//!   and [`Call::Decline`].
//! * Managers whose *workers register* (standalone, the embedded cluster) do the same with one offer per worker, made
//!   anew whenever the worker's free resources change; [`Call::Suppress`] and [`Call::Revive`] switch offers off and
//!   on.
//! * Managers that are *asked for executors* (Kubernetes) learn from [`Call::Want`] how many executors of each
//!   [`Shape`] could be started, and make offers of exactly that size, whose [`OwnedOffer::shape`] names the shape.
//!
//! Events and calls are plain data. Neither side calls the other while it holds a lock.
//!
//! # Example
//! A whole manager in one process, a cluster of one agent whose executors are threads, with an engine that runs
//! executors on it (`examples/cluster_manager.rs`):
//!
//! ```
#![doc = include_str!("../../examples/cluster_manager.rs")]
//! ```

use std::time::{Duration, SystemTime};

use crate::error::Error;
use crate::launch::Command;
use crate::offer::{Offer, Resource};
use crate::resources::{ExecutorResources, Mebibytes, MilliCpus};

pub use super::encoded::{
    EncodedOffer, EncodedOffers, OfferPlace, ReadBatch, ReadOffers, UnreadableOffer,
};
pub use super::owned::{
    OwnedOffer, OwnedReservation, OwnedReservations, OwnedReservedBy, OwnedResource, OwnedValue,
    RecoveredExecutor,
};
pub use super::shape::Shape;
pub use crate::kernel::Amount;
pub use crate::offer::attributes::{OwnedAttribute, OwnedAttributeValue};
use crate::status::{TaskState, UpdateReason};

/// A cluster manager: connects the engine to one kind of cluster. The [module's documentation](self) has a whole one.
///
/// The engine calls `start` once; if that succeeds, it calls `call` from any of its threads, and finally `stop` once.
///
/// Calls must take effect in the order in which they are made: a call that returned before another began comes first.
/// The engine reconciles an executor by name, and kills it, only after the [`Call::Accept`] that launches it has
/// returned. If a manager let one of these calls overtake the launch, the cluster wouldn't know the executor.
///
/// # Panics
/// If `call` or a reader panics, the engine [reports it](super::Engine#panics-in-foreign-code), and the rest of the
/// program goes on.
///
/// # Blocking
/// A call that hangs holds up the thread that makes it: a handler's batch, or the control thread with all updates. A
/// shutdown doesn't wait for it for longer than its [slack](super::EngineOptions::shutdown_slack).
pub trait ClusterManager: Send + Sync + 'static {
    /// Connects or starts up. Until [`ClusterManager::stop`] returns, the manager sends events to `events`, from any of
    /// its threads.
    ///
    /// # Errors
    /// If the cluster can't be used at all; then nothing was started.
    fn start(&self, events: EventSink) -> Result<(), Error>;

    /// Carries out a call, or queues it. Must not wait for the engine, as sending an [`Event`] on this thread could.
    ///
    /// # Errors
    /// If the call surely had no effect and will have none. An unknown outcome is not an error: the cluster's updates
    /// decide it.
    fn call(&self, call: Call<'_>) -> Result<(), Error>;

    /// Returns a reader for the offers that this manager sends as [`Event::Encoded`]. Called once by each handler
    /// thread, perhaps before `start`, and again after a reader has panicked. Without a reader such offers are
    /// declined.
    fn offer_reader(&self) -> Option<Box<dyn ReadOffers>> {
        None
    }

    /// Ends everything that the manager started: connections, threads, processes. After it has returned, the manager
    /// must not send events.
    fn stop(&self);
}

/// Receives a cluster manager's events; the engine implements it.
pub trait Events: Send + Sync {
    /// Sends `event` to the engine. Events that one thread sends keep their order.
    ///
    /// * Waits for room if the engine's queue is full. So an observer or a call that hangs blocks the threads that
    ///   send, until the engine is shut down.
    /// * While the engine stops the manager, waits for at most an eighth of the
    ///   [slack](super::EngineOptions::shutdown_slack). Then events that find no room are dropped, and
    ///   [counted](super::Shutdown::events_dropped); offers are dropped at once, because no call can answer them.
    /// * After the shutdown, even if a stop still hangs, and while the engine is [broken](super::Engine::broken), never
    ///   waits: events are dropped. Offers are dropped too, except those that the offer queue of a broken engine has
    ///   room for, which it declines.
    fn send(&self, event: Event);
}

/// A shared handle on [`Events`].
pub type EventSink = std::sync::Arc<dyn Events>;

/// An event that a cluster manager sends.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// Executors that a former run has left on the cluster, according to the manager's records. Sent at most once,
    /// before the first [`Event::Registered`]. Executors that the kernel has no room for are killed.
    Recovered {
        /// The executors that had not ended, as far as the records say.
        executors: Vec<RecoveredExecutor>,
        /// The number of executors that had finished.
        finished: u64,
    },
    /// A subscription begins: the first, or, with `again`, a further one after a disconnection or a failover of the
    /// master. Offers of earlier subscriptions are void.
    Registered {
        /// The cluster's id for this framework.
        framework_id: String,
        /// Whether this framework was registered before, in this run or a former one.
        again: bool,
    },
    /// The subscription ended. Its offers are void; executors keep running.
    Disconnected,
    /// Offers of the current subscription.
    Offers(Vec<OwnedOffer>),
    /// Offers of the current subscription, still encoded. A [`ClusterManager::offer_reader`] reads them on a handler
    /// thread.
    Encoded(EncodedOffers),
    /// An offer is no longer valid.
    Rescinded {
        /// The offer's id.
        offer_id: String,
    },
    /// A report about an executor's state.
    Update(Update),
    /// An agent is lost, as far as the cluster knows. The updates of its executors may follow, precede, or never come.
    AgentLost {
        /// The agent's id.
        agent_id: String,
    },
    /// An executor process is lost, as far as the cluster knows. Its update may follow, precede, or never come.
    ExecutorLost {
        /// The executor's id.
        executor: String,
    },
    /// An executor sent a message to the framework. The cluster delivers such messages at most once.
    Message {
        /// The executor's id.
        executor: String,
        /// The agent that it is on.
        agent_id: String,
        /// The message.
        data: Vec<u8>,
    },
    /// A call failed that the manager retries, or whose effect later calls or updates restore.
    CallFailed {
        /// What was tried and why it failed.
        why: String,
    },
    /// The cluster refuses this framework permanently.
    Refused {
        /// The cluster's message.
        why: String,
    },
}

/// A report about one executor, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Update {
    /// The executor's id.
    pub executor: String,
    /// The agent that it is on, if the cluster names it.
    pub agent_id: Option<String>,
    /// Its state.
    pub state: TaskState,
    /// The reason for the state.
    pub reason: UpdateReason,
    /// The cluster's message; may be empty.
    pub message: String,
    /// The token that an acknowledgement must carry; without one the update must not be acknowledged.
    pub uuid: Option<Vec<u8>>,
    /// When the executor was in this state for the first time, by the cluster's clock, if the cluster says so. Only for
    /// the observer.
    pub reported_at: Option<SystemTime>,
}

impl Update {
    /// Creates a report without a reason, agent or message, which must not be acknowledged.
    #[must_use]
    pub fn new(executor: impl Into<String>, state: TaskState) -> Update {
        Update {
            executor: executor.into(),
            agent_id: None,
            state,
            reason: UpdateReason::Other,
            message: String::new(),
            uuid: None,
            reported_at: None,
        }
    }

    /// Sets the agent that the executor is on.
    #[must_use]
    pub fn with_agent(self, agent_id: impl Into<String>) -> Update {
        Update { agent_id: Some(agent_id.into()), ..self }
    }

    /// Sets the reason for the state.
    #[must_use]
    pub fn with_reason(self, reason: UpdateReason) -> Update {
        Update { reason, ..self }
    }

    /// Sets the cluster's message.
    #[must_use]
    pub fn with_message(self, message: impl Into<String>) -> Update {
        Update { message: message.into(), ..self }
    }

    /// Sets when, by the cluster's clock, the executor was first in this state.
    #[must_use]
    pub fn with_reported_at(self, reported_at: SystemTime) -> Update {
        Update { reported_at: Some(reported_at), ..self }
    }

    /// Sets the token that the acknowledgement must carry.
    #[must_use]
    pub fn with_uuid(self, uuid: Vec<u8>) -> Update {
        Update { uuid: Some(uuid), ..self }
    }
}

/// A call that a cluster manager carries out.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Call<'a> {
    /// Start executors on an agent.
    Accept(Accept<'a>),
    /// Return these offers unused.
    Decline {
        /// The subscription that the offers came under.
        epoch: u64,
        /// The offers' ids.
        offers: &'a [&'a str],
        /// How long the resources must not be offered again.
        refuse: Duration,
    },
    /// Resume offers for all roles, and clear all refusals.
    Revive {
        /// The subscription that the call is for. A manager must drop the call in any other: a new subscription begins
        /// with offers, and the engine makes this call again if it is needed.
        epoch: u64,
    },
    /// Stop offers until the next [`Call::Revive`].
    Suppress {
        /// As with [`Call::Revive`].
        epoch: u64,
    },
    /// The number of executors of each shape that could be started now, beyond those that run. Made when a number or a
    /// shape's size changes, and after each [`Event::Registered`]. Managers that make offers on their own ignore it.
    Want(&'a [Want]),
    /// End an executor: by request first, by force after `grace`. The call is repeated until the end is reported. For
    /// an executor that is already ending it must change at most `grace`.
    Kill {
        /// The executor's id.
        executor: &'a str,
        /// The agent that it is on, if known.
        agent_id: Option<&'a str>,
        /// How long it may take to end on request.
        grace: Duration,
    },
    /// Forget an executor that was unreachable for too long: no further call will name it. Managers that keep records
    /// remove it from them.
    Forget {
        /// The executor's id.
        executor: &'a str,
    },
    /// Report the states of these executors, or of all executors if the list is empty.
    Reconcile(&'a [ReconcileTask<'a>]),
    /// Acknowledge an update, which was applied.
    Acknowledge {
        /// The update.
        update: &'a Update,
        /// Its acknowledgement token.
        uuid: &'a [u8],
    },
}

/// Executors to start on one agent, from offers of one role.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Accept<'a> {
    /// The subscription that the offers came under.
    pub epoch: u64,
    /// The agent.
    pub agent_id: &'a str,
    /// The offers, all of this agent and one role. The resources that the executors leave count as declined.
    pub offers: &'a [&'a Offer<'a>],
    /// The executors, in the order in which they were placed.
    pub executors: &'a [Launch<'a>],
    /// How long the agent's remaining resources must not be offered again.
    pub refuse: Duration,
}

impl<'a> Accept<'a> {
    /// Creates an acceptance in a subscription, for tests of a manager. `refuse` is zero.
    #[must_use]
    pub const fn new(
        epoch: u64,
        agent_id: &'a str,
        offers: &'a [&'a Offer<'a>],
        executors: &'a [Launch<'a>],
    ) -> Accept<'a> {
        Accept { epoch, agent_id, offers, executors, refuse: Duration::ZERO }
    }

    /// Sets how long the agent's remaining resources must not be offered again.
    #[must_use]
    pub const fn with_refuse(self, refuse: Duration) -> Accept<'a> {
        Accept { refuse, ..self }
    }
}

/// One executor to start.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Launch<'a> {
    /// Its id.
    pub executor: &'a str,
    /// Its shape.
    pub shape: Shape,
    /// The resources that it takes.
    pub resources: ExecutorResources,
    /// The same resources, piece by piece as the offers have them.
    pub pieces: Vec<TakenResource<'a>>,
    /// The command to start.
    pub command: Command,
}

impl<'a> Launch<'a> {
    /// Creates a launch of the default shape, for tests of a manager.
    #[must_use]
    pub const fn new(
        executor: &'a str,
        resources: ExecutorResources,
        pieces: Vec<TakenResource<'a>>,
        command: Command,
    ) -> Launch<'a> {
        Launch { executor, shape: Shape::DEFAULT, resources, pieces, command }
    }
}

/// A piece of an offered resource.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TakenResource<'a> {
    /// The offered resource: the piece has its reservations, in the same form, and its revocability.
    pub resource: &'a Resource<'a>,
    /// The amount that is taken of it.
    pub amount: Amount,
}

impl<'a> TakenResource<'a> {
    /// Creates a piece, for tests of a manager.
    #[must_use]
    pub const fn new(resource: &'a Resource<'a>, amount: Amount) -> TakenResource<'a> {
        TakenResource { resource, amount }
    }
}

/// The demand for executors of one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Want {
    /// Their shape.
    pub shape: Shape,
    /// How many more are wanted.
    pub executors: u32,
    /// The cores of each; `None` takes all cores of an offer.
    pub cores: Option<MilliCpus>,
    /// The memory of each, overhead included.
    pub memory: Mebibytes,
}

/// An executor to be reconciled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReconcileTask<'a> {
    /// Its id.
    pub executor: &'a str,
    /// The agent that it was started on.
    pub agent_id: &'a str,
}

impl Want {
    /// Creates the demand for executors of the default shape, for tests of a manager.
    #[must_use]
    pub const fn new(executors: u32, cores: Option<MilliCpus>, memory: Mebibytes) -> Want {
        Want { shape: Shape::DEFAULT, executors, cores, memory }
    }
}

impl<'a> ReconcileTask<'a> {
    /// Creates a question about an executor, for tests of a manager.
    #[must_use]
    pub const fn new(executor: &'a str, agent_id: &'a str) -> ReconcileTask<'a> {
        ReconcileTask { executor, agent_id }
    }
}
