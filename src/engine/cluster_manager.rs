//! The one seam between the engine and the world: what a cluster manager is told, and what it tells.
//!
//! One shape serves three kinds of manager:
//! * Those that *make offers* (Mesos) send [`Event::Offers`] or [`Event::Encoded`] and carry out [`Call::Accept`] and
//!   [`Call::Decline`].
//! * Those whose *workers register* (standalone, the embedded cluster) do the same with an offer a worker, made anew
//!   whenever the worker's free resources change; [`Call::Suppress`] and [`Call::Revive`] switch them off and on.
//! * Those that are *asked for executors* (Kubernetes) learn from [`Call::Want`] how many executors of each
//!   [`Shape`] there could be, and offer room of just that size; [`OwnedOffer::shape`] says for which.
//!
//! Everything that crosses the seam is data. Neither side calls the other while it holds a lock.

use std::time::Duration;

use crate::error::Error;
use crate::launch::Command;
use crate::offer::{Offer, Resource};
use crate::resources::{Gpus, Mebibytes, MilliCpus};

pub use super::encoded::{EncodedOffer, EncodedOffers, OfferPlace, ReadBatch, ReadOffers};
pub use super::owned::{
    OwnedOffer, OwnedReservation, OwnedReservations, OwnedReservedBy, OwnedResource, OwnedValue,
};
pub use crate::kernel::Amount;
pub use crate::offer::attributes::{OwnedAttribute, OwnedAttributeValue};
use crate::status::{TaskState, UpdateReason};

/// A cluster, as the engine sees it.
///
/// `start` is called once; if it succeeds, `call` from any of the engine's threads, then `stop` once.
///
/// Calls must take effect in the order in which they are made: one that returned before another began comes first. An
/// executor is asked about by name, and asked to end, only after the [`Call::Accept`] that launches it has returned; a
/// manager that lets either overtake it hears of an executor that the cluster doesn't know.
pub trait ClusterManager: Send + Sync + 'static {
    /// Connects or starts up. From now until [`ClusterManager::stop`] returns, events go to `events`, from any thread
    /// of the manager's own.
    ///
    /// # Errors
    /// When the cluster can't be had at all; nothing was started then.
    fn start(&self, events: EventSink) -> Result<(), Error>;

    /// Carries out a call, or queues it; must not wait for the engine (sending an [`Event`] on this thread could).
    ///
    /// # Errors
    /// When the call surely had no effect and won't have one. A call whose outcome is not known is not an error: the
    /// cluster's own updates settle it.
    fn call(&self, call: Call<'_>) -> Result<(), Error>;

    /// A reader for the offers that this manager sends as [`Event::Encoded`]; each handler's thread asks for one,
    /// perhaps before `start`. Without one such offers are declined unread.
    fn offer_reader(&self) -> Option<Box<dyn ReadOffers>> {
        None
    }

    /// Ends everything that the manager started: connections, threads, processes. No event comes after it returned.
    fn stop(&self);
}

/// Where a cluster manager sends its events.
pub trait Events: Send + Sync {
    /// Takes in `event`. Events of one thread keep their order.
    ///
    /// * May wait while the engine is behind: what waits is bounded. An observer or a call that hangs so holds up the
    ///   threads that send, until the engine is ended.
    /// * While the engine stops the manager it waits for an eighth of the
    ///   [slack](super::EngineOptions::shutdown_slack) at most. Then events that find no room are dropped, and
    ///   [counted](super::Shutdown::events_dropped); offers are dropped at once, for no call can answer them.
    /// * After the engine's end, also while a stop that hung goes on, and while the engine is
    ///   [broken](super::Engine::broken), it never waits for room: events are dropped. Offers are, too, but for those
    ///   that a broken engine has room for in its offer queue, which it declines.
    fn send(&self, event: Event);
}

/// The shared handle on [`Events`].
pub type EventSink = std::sync::Arc<dyn Events>;

/// What a cluster manager tells.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Executors that a former run has left on the cluster, by the manager's own records. Comes once, before the first
    /// [`Event::Registered`]; those that the kernel has no room for are asked to end.
    Recovered {
        /// The executors that had not ended, as far as was known.
        executors: Vec<RecoveredExecutor>,
        /// How many had finished.
        finished: u64,
    },
    /// A subscription begins: the first, or, with `again`, a further one after a disconnection or a failover of the
    /// master. Offers of earlier subscriptions are dead.
    Registered {
        /// The cluster's id for this framework.
        framework_id: String,
        /// Whether this framework was registered before, by this run or a former one.
        again: bool,
    },
    /// The subscription ended. Offers are dead; executors run on.
    Disconnected,
    /// Offers, of the current subscription.
    Offers(Vec<OwnedOffer>),
    /// Offers, of the current subscription, in the form in which they came. A [`ClusterManager::offer_reader`] reads
    /// them, on a handler's thread.
    Encoded(EncodedOffers),
    /// An offer is no longer valid.
    Rescinded {
        /// The offer's id.
        offer_id: String,
    },
    /// An executor's state.
    Update(Update),
    /// An agent is lost, as far as the cluster knows: its executors' own updates may follow, precede, or never come.
    AgentLost {
        /// The agent's id.
        agent_id: String,
    },
    /// An executor process is lost, as far as the cluster knows; its update may follow, precede, or never come.
    ExecutorLost {
        /// The executor's id.
        executor: String,
    },
    /// Something failed that will be tried again, or that others make good.
    CallFailed {
        /// What was tried and why it failed.
        why: String,
    },
    /// The cluster refuses this framework for good.
    Refused {
        /// In the cluster's words.
        why: String,
    },
}

/// An executor of a former run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredExecutor {
    /// Its id.
    pub executor: String,
    /// The agent that it is on.
    pub agent_id: String,
    /// The agent's host name.
    pub hostname: String,
    /// The cores that it takes.
    pub cores: MilliCpus,
    /// The memory that it takes, overhead included.
    pub memory: Mebibytes,
    /// The GPUs that it takes.
    pub gpus: Gpus,
    /// The fixed port that it takes.
    pub port: Option<u16>,
}

/// A report about one executor, owned.
#[derive(Clone, Debug)]
pub struct Update {
    /// The executor's id.
    pub executor: String,
    /// The agent that it is on, where the cluster says.
    pub agent_id: Option<String>,
    /// Its state.
    pub state: TaskState,
    /// Why.
    pub reason: UpdateReason,
    /// In the cluster's words; may be empty.
    pub message: String,
    /// What an acknowledgement has to bear; without it the update must not be acknowledged.
    pub uuid: Option<Vec<u8>>,
}

/// What a cluster manager is told.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Call<'a> {
    /// Start executors on an agent.
    Accept(Accept<'a>),
    /// Use none of these offers.
    Decline {
        /// The subscription that the offers came under.
        epoch: u64,
        /// The offers' ids.
        offers: &'a [&'a str],
        /// How long the agent's resources are not to be offered again.
        refuse: Duration,
    },
    /// Offer again, to all roles, and forget what was refused.
    Revive {
        /// The subscription that this is said in. Managers with several drop it under any other: a new subscription
        /// begins with offers, and what the engine wants under it is said anew.
        epoch: u64,
    },
    /// Offer nothing until revived.
    Suppress {
        /// As with [`Call::Revive`].
        epoch: u64,
    },
    /// How many executors of each shape could be started now, beyond those that run. Managers that make offers by
    /// themselves ignore it.
    Want(&'a [Want]),
    /// End an executor: politely first, by force after `grace`. Made again until the end is reported: a call about an
    /// executor that is ending changes nothing, or no more than `grace`.
    Kill {
        /// The executor's id.
        executor: &'a str,
        /// The agent that it is on, if known.
        agent_id: Option<&'a str>,
        /// How long it may take to end by itself.
        grace: Duration,
    },
    /// Nothing will be asked about this executor any more: it was out of sight for too long. Managers that keep records
    /// forget it.
    Forget {
        /// The executor's id.
        executor: &'a str,
    },
    /// Report the state of these executors, or of all if there are none.
    Reconcile(&'a [ReconcileTask<'a>]),
    /// The update was applied.
    Acknowledge {
        /// The update.
        update: &'a Update,
        /// Its acknowledgement token.
        uuid: &'a [u8],
    },
}

/// Executors to start on one agent, from offers of one role.
#[derive(Clone, Copy, Debug)]
pub struct Accept<'a> {
    /// The subscription that the offers came under.
    pub epoch: u64,
    /// The agent.
    pub agent_id: &'a str,
    /// The offers, all of this agent and one role. What the executors leave of them counts as declined.
    pub offers: &'a [&'a Offer<'a>],
    /// The executors, in the order in which they were placed.
    pub executors: &'a [Launch<'a>],
    /// How long the agent's remaining resources are not to be offered again.
    pub refuse: Duration,
}

/// One executor to start.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// Its id.
    pub executor: &'a str,
    /// Its shape.
    pub shape: Shape,
    /// The cores that it takes from the offers.
    pub cores: MilliCpus,
    /// The memory that it takes, overhead included.
    pub memory: Mebibytes,
    /// The GPUs that it takes.
    pub gpus: Gpus,
    /// The port that it takes.
    pub port: Option<u16>,
    /// The same, piece by piece as the offers have it.
    pub pieces: Vec<Taken<'a>>,
    /// What to start.
    pub command: Command,
}

/// A piece of an offered resource.
#[derive(Clone, Copy, Debug)]
pub struct Taken<'a> {
    /// The resource as it was offered: the piece bears its reservations, in their form, and its standing.
    pub resource: &'a Resource<'a>,
    /// What is taken of it.
    pub amount: Amount,
}

/// A kind of executor. A policy has one today; the seam carries the number so that it can have several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape(pub u32);

/// A wish for executors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// Of this shape.
    pub shape: Shape,
    /// So many more.
    pub executors: u32,
    /// Cores of each; `None` takes what there is.
    pub cores: Option<MilliCpus>,
    /// Memory of each, overhead included.
    pub memory: Mebibytes,
}

/// An executor whose state is in question.
#[derive(Clone, Copy, Debug)]
pub struct ReconcileTask<'a> {
    /// Its id.
    pub executor: &'a str,
    /// The agent that it was started on.
    pub agent_id: &'a str,
}
