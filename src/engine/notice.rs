//! What the engine tells whoever watches it.

use std::time::Duration;

use crate::ids::ExecutorId;
use crate::kernel::{Change, DemandCall};
use crate::resources::{Gpus, Mebibytes, MilliCpus};
use crate::status::TaskState;
use crate::time::Timestamp;

/// Watches an engine. Called on the engine's control thread, in the order of events, with nothing held: what it does
/// delays status updates, not offers.
pub trait Observer: Send {
    /// Something happened at `at`, on the engine's clock.
    fn notice(&mut self, at: Timestamp, notice: Notice);
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn notice(&mut self, _at: Timestamp, _notice: Notice) {}
}

/// Something that happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Notice {
    /// A subscription began.
    Registered {
        /// The cluster's id for this framework.
        framework_id: String,
        /// Whether it was registered before.
        again: bool,
    },
    /// The subscription ended.
    Disconnected,
    /// An executor was placed. Precedes every update about it.
    Placed(PlacedExecutor),
    /// A former run is gone on with.
    Resumed {
        /// So many executors had finished in it. With
        /// [`finished_count_down`](super::EngineOptions::finished_count_down) they lower the executor limit.
        finished: u64,
    },
    /// An executor of a former run was taken over. Whether it still runs is being asked; precedes every update about
    /// it.
    Adopted(PlacedExecutor),
    /// A status update was applied.
    Updated {
        /// The executor's id.
        executor: String,
        /// The state that the cluster reported.
        state: TaskState,
        /// What it changed.
        change: Change,
        /// In the cluster's words; may be empty.
        message: String,
    },
    /// Too many executors failed on an agent.
    AgentExcluded {
        /// The agent.
        agent_id: String,
        /// Until then; [`Timestamp::MAX`] is for ever.
        until: Timestamp,
    },
    /// The cluster reported an agent lost.
    AgentLost {
        /// The agent.
        agent_id: String,
    },
    /// An executor was out of sight for so long that its resources are given to others.
    GivenUp {
        /// The executor's id.
        executor: String,
    },
    /// An executor was out of sight for so long that it is forgotten.
    Forgotten {
        /// The executor's id.
        executor: String,
    },
    /// The cluster was told to stop or to resume offering.
    Demand(DemandCall),
    /// Offers found no room in the offer queue and were declined.
    Overflow {
        /// How many.
        offers: usize,
        /// How long they were refused for.
        refuse: Duration,
    },
    /// Offers could not be read and were declined, as far as their ids could.
    Unreadable {
        /// How many.
        offers: usize,
        /// How long they were refused for.
        refuse: Duration,
    },
    /// The cluster manager could not carry out a call.
    CallFailed {
        /// What was tried and why it failed.
        why: String,
    },
    /// The journal was given up: what comes now is not recorded. Told once.
    JournalEnded {
        /// Why.
        why: String,
    },
    /// A handler's thread panicked, in the launcher, in a call, or in the reader of offers. What it had not answered of
    /// its batch was declined, executors whose launch it had not begun are taken back, and it goes on. A call in which
    /// it panicked has an unknown outcome: the cluster's updates settle it.
    HandlerPanicked {
        /// What the panic said.
        why: String,
    },
    /// The control thread panicked, in a call or in this observer: the engine is [broken](super::Engine::broken). It
    /// launches nothing more and applies no update. The last notice there is.
    Broken {
        /// What the panic said.
        why: String,
    },
    /// The cluster refuses this framework for good. Nothing more will come.
    Refused {
        /// In the cluster's words.
        why: String,
    },
}

/// An executor that was placed.
#[derive(Clone, Debug)]
pub struct PlacedExecutor {
    /// Its id inside the kernel.
    pub id: ExecutorId,
    /// Its id as the cluster knows it.
    pub executor: String,
    /// Its agent.
    pub agent_id: String,
    /// The agent's host name.
    pub hostname: String,
    /// The cores that it takes.
    pub cores: MilliCpus,
    /// The memory that it takes, overhead included.
    pub memory: Mebibytes,
    /// The GPUs that it takes.
    pub gpus: Gpus,
    /// The port that it takes.
    pub port: Option<u16>,
}
