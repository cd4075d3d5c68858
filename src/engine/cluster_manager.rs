//! The interface between the engine and cluster managers: the [`ClusterManager`] trait, the [`Event`]s that a manager
//! sends, and the [`Call`]s that it carries out.
//!
//! It serves three kinds of manager:
//! * Managers that *make offers* (Mesos) send [`Event::Offers`] or [`Event::Encoded`] and carry out [`Call::Accept`]
//!   and [`Call::Decline`].
//! * Managers whose *workers register* (standalone, the embedded cluster) do the same with one offer per worker, made
//!   anew whenever the worker's free resources change; [`Call::Suppress`] and [`Call::Revive`] switch offers off and
//!   on.
//! * Managers that are *asked for executors* (Kubernetes) learn from [`Call::RequestExecutors`] how many executors of
//!   each [resource profile](ResourceProfileId) could be started, and make offers of exactly that size, whose
//!   [`OwnedOffer::profile`] names the profile. If the cluster has a scheduler of its own, these offers are
//!   [permits](OwnedOffer::late): each is for one executor and names no agent. The first [`Update`] that names one
//!   binds the executor to it; [`Update::with_facts`] says what constraints are matched against. If the agent is
//!   excluded, or doesn't meet the constraint, the engine kills the executor, and the manager makes another permit.
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

use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::launch::Command;
use crate::offer::{Offer, Resource};
use crate::resources::{ExecutorResources, Mebibytes, MilliCpus};

pub use super::agent_facts::AgentFacts;
pub use super::encoded::{
    EncodedOffer, EncodedOffers, OfferPlace, ReadBatch, ReadOffers, UnreadableOffer,
};
pub use super::owned::{
    OwnedOffer, OwnedReservation, OwnedReservations, OwnedReservedBy, OwnedResource, OwnedValue,
};
pub use super::recovered::RecoveredExecutor;
pub use super::resource_profile::ResourceProfileId;
pub use super::unreadable_offers::RefusedOffer;
pub use super::update::Update;
pub use crate::kernel::Amount;
pub use crate::offer::attributes::{OwnedAttribute, OwnedAttributeValue};

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
    /// its threads. Events that are sent before `start` has returned may cause calls before it has: what a call needs
    /// must be ready before the first event is sent.
    ///
    /// # Errors
    /// If the cluster can't be used at all; then nothing was started.
    fn start(&self, events: EventSink) -> Result<(), Error>;

    /// Carries out a call, or queues it. Must not wait for the engine, as sending an [`Event`] on this thread could.
    ///
    /// # Errors
    /// If the call surely had no effect and will have none. An unknown outcome is not an error: the cluster's updates
    /// decide it. The observer gets each error as [`Notice::CallFailed`](super::Notice::CallFailed). What the engine
    /// does besides:
    ///
    /// | call | after an error |
    /// |---|---|
    /// | [`Call::Accept`], also of a subscription that has ended | frees the resources of its executors, which are reported as [dropped](crate::TaskState::Dropped) and blame no agent. It doesn't decline the offers: a manager whose cluster waits for an answer declines them itself, or offers the resources anew |
    /// | [`Call::Decline`] | nothing: the cluster's timeout for offers, or the manager, must end the offers |
    /// | [`Call::Kill`] | repeats it as if it had been lost |
    /// | [`Call::Reconcile`] | repeats it for the executors without an answer |
    /// | [`Call::Avoid`] | repeats it each second |
    /// | [`Call::Revive`], [`Call::Suppress`], [`Call::RequestExecutors`] | nothing at once. It revives again if no offers come, and says what it wants with the next subscription, which begins with offers |
    /// | [`Call::Acknowledge`] | nothing: the cluster sends the update again |
    fn call(&self, call: Call<'_>) -> Result<(), Error>;

    /// Returns a reader for the offers that this manager sends as [`Event::Encoded`]. Called once by each handler
    /// thread, perhaps before `start`, and again after a reader has panicked. Without a reader such offers are
    /// declined.
    fn offer_reader(&self) -> Option<Box<dyn ReadOffers>> {
        None
    }

    /// Whether the cluster chooses the agents of executors itself, so that this manager's offers are
    /// [permits](OwnedOffer::late) without an agent. Only then are executors bound to the agents that updates name, and
    /// does the engine tell by [`Call::Avoid`] which agents it must leave out. Called once, before `start`.
    fn binds_late(&self) -> bool {
        false
    }

    /// Ends everything that the manager started: connections, threads, processes, and executors that still run, unless
    /// the manager is configured to leave them for a next run. The engine doesn't kill them before if it is dropped
    /// rather than [shut down](super::Engine::shutdown). After it has returned, the manager must not send events.
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
    /// A subscription begins: the first of the framework, or, with `again`, a further one, after a disconnection, a
    /// failover of the master, or as the first of a run that continues a former one. Offers of earlier subscriptions
    /// are void.
    Registered {
        /// The cluster's id for this framework.
        framework_id: String,
        /// Whether this framework was registered before, in this run or a former one. If so, the engine reconciles all
        /// executors.
        again: bool,
    },
    /// The subscription ended. Its offers are void; executors keep running.
    Disconnected,
    /// Offers of the current subscription.
    Offers(Vec<OwnedOffer>),
    /// Offers of the current subscription, still encoded. A [`ClusterManager::offer_reader`] reads them on a handler
    /// thread.
    Encoded(EncodedOffers),
    /// Offers of the current subscription that the manager can't decode. The engine declines them, and
    /// [reports](super::Notice::Unreadable) each cause once per agent.
    Unreadable(Vec<RefusedOffer>),
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
    /// Why an executor has not started yet, in the cluster's words, such as `0/3 nodes are available: 3 Insufficient
    /// cpu`. Replaces what was said before; an empty text says that the executor waits no more.
    Waiting {
        /// The executor's id.
        executor: String,
        /// The reason; cut to [`MESSAGE_BYTES_MAX`](crate::limits::MESSAGE_BYTES_MAX).
        why: String,
    },
    /// A call failed that the manager retries, or whose effect later calls or updates restore.
    CallFailed {
        /// What was tried and why it failed.
        why: String,
    },
    /// The cluster refuses this framework permanently. The engine reports it as
    /// [`Notice::Refused`](super::Notice::Refused) and runs on, without executors to launch, until its owner shuts it
    /// down. A manager sends no offers after it; updates, and failures of its [stop](ClusterManager::stop), may follow.
    Refused {
        /// The cluster's message.
        why: String,
    },
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
    /// The number of executors of each resource profile that could be started now, beyond those that run. Made when a
    /// number or a profile's size changes, and after each [`Event::Registered`]. Managers that make offers on their own
    /// ignore it.
    RequestExecutors(&'a [ExecutorRequest]),
    /// The agents on which no executor may start now: all of them, those first that are avoided longest. Replaces the
    /// former list, which was empty at first. Agents are listed while they are excluded, and for 10 min after they were
    /// full or didn't meet the constraint when an executor was bound to them: the latest 1024 of these, and none once
    /// the constraint has changed.
    ///
    /// Made only for managers that [bind late](ClusterManager::binds_late), while there is a subscription: within about
    /// a second when the list changes; once any list was told, after each [`Event::Registered`], even if it is empty;
    /// and each second again while the call fails.
    Avoid(&'a [AvoidedAgent<'a>]),
    /// End an executor: by request first, by force after `grace`. The call is repeated until the end is reported, for
    /// an executor that the kernel doesn't know 20 times at most (it is killed again when an update names it). For an
    /// executor that is already ending it must change at most `grace`.
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
    /// Acknowledge an update, which was applied, or ignored because its agent doesn't have the executor.
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
    /// The agent; empty if the offer is a [permit](OwnedOffer::late).
    pub agent_id: &'a str,
    /// The offers, all of this agent and one role; if it is a permit, that alone. The resources that the executors
    /// leave count as declined.
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
    /// Its resource profile.
    pub profile: ResourceProfileId,
    /// The resources that it takes.
    pub resources: ExecutorResources,
    /// The same resources, piece by piece as the offers have them.
    pub pieces: Vec<TakenResource<'a>>,
    /// The command to start.
    pub command: Command,
    /// The name of its [queue](crate::ConfigBuilder::queue), if there are queues: a manager that keeps records for a
    /// later run keeps it with them, as [`RecoveredExecutor::queue_name`].
    pub queue: Option<Arc<str>>,
}

impl<'a> Launch<'a> {
    /// Creates a launch of the default resource profile, for tests of a manager.
    #[must_use]
    pub const fn new(
        executor: &'a str,
        resources: ExecutorResources,
        pieces: Vec<TakenResource<'a>>,
        command: Command,
    ) -> Launch<'a> {
        let (profile, queue) = (ResourceProfileId::DEFAULT, None);
        Launch { executor, profile, resources, pieces, command, queue }
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

/// The demand for executors of one resource profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecutorRequest {
    /// Their resource profile.
    pub profile: ResourceProfileId,
    /// How many more are wanted.
    pub executors: u32,
    /// The cores of each; `None` takes all cores of an offer.
    pub cores: Option<MilliCpus>,
    /// The memory of each, overhead included.
    pub memory: Mebibytes,
}

/// An agent on which no executor may start: too many failed there, or it refused one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AvoidedAgent<'a> {
    /// The agent.
    pub agent_id: &'a str,
    /// How much longer the agent is to be avoided, from the time of the call; `None` is without end. A manager needn't
    /// watch it, because another list says when an agent is not to be avoided any more.
    pub remaining: Option<Duration>,
}

impl<'a> AvoidedAgent<'a> {
    /// Creates an entry of the list, for tests of a manager.
    #[must_use]
    pub const fn new(agent_id: &'a str, remaining: Option<Duration>) -> AvoidedAgent<'a> {
        AvoidedAgent { agent_id, remaining }
    }
}

/// An executor to be reconciled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReconcileTask<'a> {
    /// Its id.
    pub executor: &'a str,
    /// The agent that it was started on; empty if that isn't known yet.
    pub agent_id: &'a str,
}

impl ExecutorRequest {
    /// Creates the demand for executors of the default resource profile, for tests of a manager.
    #[must_use]
    pub const fn new(
        executors: u32,
        cores: Option<MilliCpus>,
        memory: Mebibytes,
    ) -> ExecutorRequest {
        ExecutorRequest { profile: ResourceProfileId::DEFAULT, executors, cores, memory }
    }
}

impl<'a> ReconcileTask<'a> {
    /// Creates a question about an executor, for tests of a manager.
    #[must_use]
    pub const fn new(executor: &'a str, agent_id: &'a str) -> ReconcileTask<'a> {
        ReconcileTask { executor, agent_id }
    }
}
