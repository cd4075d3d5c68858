//! Notices: what the engine reports to its observer.

use std::time::{Duration, SystemTime};

use crate::ids::ExecutorId;
use crate::kernel::{Change, DemandCall};
use crate::resources::ExecutorResources;
use crate::status::{ProcessReport, TaskState, UpdateReason};
use crate::time::Timestamp;

/// Observes an engine. Called on the engine's control thread, in the order of events, without locks held. Its work
/// delays status updates. Offers go on until about 16 000 items wait for the control thread; then handlers and the
/// manager's threads wait, too.
pub trait Observer: Send {
    /// Receives a notice; `at` is the engine's time.
    fn notice(&mut self, at: Timestamp, notice: Notice);

    /// Whether it makes use of notices. If `false`, the engine need not make them, and may leave out calls of
    /// [`notice`](Observer::notice). Asked once, when the engine starts.
    fn is_observing(&self) -> bool {
        true
    }
}

/// A closure observes.
impl<F: FnMut(Timestamp, Notice) + Send> Observer for F {
    fn notice(&mut self, at: Timestamp, notice: Notice) {
        self(at, notice);
    }
}

/// An observer that ignores all notices.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn notice(&mut self, _at: Timestamp, _notice: Notice) {}

    fn is_observing(&self) -> bool {
        false
    }
}

/// A notice of something that happened in the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Notice {
    /// A subscription began.
    Registered {
        /// The cluster's id for this framework.
        framework_id: String,
        /// Whether the framework was registered before.
        again: bool,
    },
    /// The subscription ended.
    Disconnected,
    /// An executor was placed. Precedes every update about it.
    Placed(PlacedExecutor),
    /// A former run is resumed.
    Resumed {
        /// The number of executors that had finished in it. With
        /// [`finished_count_down`](super::EngineOptions::finished_count_down) they lower the executor limit.
        finished: u64,
    },
    /// An executor of a former run was adopted. Whether it still runs is being reconciled. Precedes every update about
    /// it.
    Adopted(PlacedExecutor),
    /// A status update was applied.
    Updated {
        /// The executor's id.
        executor: String,
        /// The tag of the [task](crate::Task) that it is, if it was alive before.
        #[cfg_attr(feature = "serde", serde(default))]
        tag: Option<u64>,
        /// The state that the cluster reported.
        state: TaskState,
        /// The change that it made.
        change: Change,
        /// The cluster's message; may be empty.
        message: String,
        /// When the executor was in this state for the first time, by the cluster's clock, if the cluster says so.
        /// A time before 1970 is serialized as none.
        #[cfg_attr(feature = "serde", serde(serialize_with = "crate::time::serialize_clock_time"))]
        reported_at: Option<SystemTime>,
        /// The reason for the state.
        #[cfg_attr(feature = "serde", serde(default))]
        reason: UpdateReason,
        /// What the cluster says of the executor's process.
        #[cfg_attr(feature = "serde", serde(default))]
        process: Option<Box<ProcessReport>>,
    },
    /// An executor was [bound](crate::Kernel::bind) to the agent on which the cluster has started it.
    Bound {
        /// The executor's id.
        executor: String,
        /// The agent.
        agent_id: String,
        /// The agent's host name; empty if it is unknown.
        hostname: String,
    },
    /// The agent on which the cluster has started an executor doesn't take it: it is killed. Reported once per
    /// executor.
    Unwelcome {
        /// The executor's id.
        executor: String,
        /// The agent.
        agent_id: String,
        /// Why the agent doesn't take it.
        why: String,
    },
    /// Why an executor has not started yet, in the cluster's words; empty if it waits no more.
    Waiting {
        /// The executor's id.
        executor: String,
        /// The reason.
        why: String,
    },
    /// An agent was excluded, because too many executors failed on it.
    AgentExcluded {
        /// The agent.
        agent_id: String,
        /// The end of the exclusion; [`Timestamp::MAX`] if it has none.
        until: Timestamp,
    },
    /// The cluster reported an agent lost.
    AgentLost {
        /// The agent.
        agent_id: String,
    },
    /// The cluster reported an executor process lost. What becomes of its executor is being reconciled, if the kernel
    /// knows it.
    ExecutorLost {
        /// The executor's id.
        executor: String,
    },
    /// An executor sent a message. The cluster delivers such messages at most once.
    Message {
        /// The executor's id.
        executor: String,
        /// The agent that it is on.
        agent_id: String,
        /// The message.
        data: Vec<u8>,
    },
    /// An executor was unreachable for too long: its resources are free for others.
    GivenUp {
        /// The executor's id.
        executor: String,
    },
    /// An executor was unreachable for too long, and is forgotten.
    Forgotten {
        /// The executor's id.
        executor: String,
    },
    /// The cluster was called to stop or to resume offers.
    Demand(DemandCall),
    /// Offers found no room in the offer queue and were declined.
    Overflow {
        /// The number of offers.
        offers: usize,
        /// How long they were refused for.
        refuse: Duration,
    },
    /// Offers of an agent could not be read. Those whose ids could be read were declined. Each cause is reported once
    /// per agent; later offers are declined without a notice. At most 256 agents and causes are told apart; of further
    /// ones, the number of offers is reported whenever it reaches a power of ten.
    Unreadable {
        /// The number of offers in the batch in which they came first, or in which a count reached a power of ten.
        offers: usize,
        /// The number of those whose ids could not be read, so that they could not be declined.
        unanswered: usize,
        /// The agent, if its id could be read.
        agent_id: Option<String>,
        /// Why they could not be read.
        why: String,
        /// How long they were refused for.
        refuse: Duration,
    },
    /// The cluster manager could not carry out a call; or updates were of an agent that doesn't have the executor, or
    /// of a running executor that the kernel doesn't know, each reported a bounded number of times; or a subscriber of
    /// the crate `tracing` panicked, which is reported once per engine.
    CallFailed {
        /// What failed, and the reason.
        why: String,
    },
    /// The journal was given up: further operations are not recorded. Comes at most once.
    JournalEnded {
        /// The reason.
        why: String,
    },
    /// A handler thread panicked, in the launcher, in a call, or in the reader of offers. The unanswered offers of its
    /// batch were declined, executors whose launch had not begun are taken back, and the thread continues. The outcome
    /// of a call that panicked is unknown until the cluster's updates decide it.
    HandlerPanicked {
        /// The panic's message.
        why: String,
    },
    /// The control thread panicked, in a call or in this observer: the engine is [broken](super::Engine::broken). It
    /// launches no more executors and applies no more updates. The last notice.
    Broken {
        /// The panic's message.
        why: String,
    },
    /// The cluster refuses this framework permanently: nothing can be launched any more, and the engine is to be shut
    /// down. Few notices follow: updates that were under way, those about the shutdown, and a framework that can't be
    /// torn down ([`Notice::CallFailed`]). The engine itself refuses a framework's id that it can't use
    /// ([`foreign_text`](crate::foreign_text)).
    Refused {
        /// The cluster's message.
        why: String,
    },
}

/// An executor that was placed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PlacedExecutor {
    /// Its id inside the kernel.
    pub id: ExecutorId,
    /// Its id as the cluster knows it.
    pub executor: String,
    /// Its agent; empty until it is [bound](crate::Kernel::bind), as the host name is.
    pub agent_id: String,
    /// The agent's host name.
    pub hostname: String,
    /// The resources that it takes.
    pub resources: ExecutorResources,
    /// The tag of the [task](crate::Task) that it is; `None` if it isn't one, or was adopted.
    #[cfg_attr(feature = "serde", serde(default))]
    pub tag: Option<u64>,
}
