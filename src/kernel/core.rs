//! The kernel's shared state, which handles and handlers refer to.

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use super::offers::fingerprint::DetailsFingerprint;
use super::reports::agent_rows::NameMemory;
use super::reports::capacity::CapacityCell;
use super::state::admission::Admission;
use super::state::adopted::Adopted;
use super::state::agents::AgentTable;
use super::state::budget::Budget;
use super::state::counters::AllCounters;
use super::state::demand::DemandState;
use super::state::drain::Drain;
use super::state::executors::ExecutorCell;
use super::state::locality::LocalityClock;
use super::state::numbers::NumberTable;
use super::state::policy::PolicyCell;
use super::state::queues::{OpenClaims, QueueAmount, QueueTable};
use super::state::slab::Slab;
use super::state::subscription::Subscription;
use super::state::tags::{ExecutorMark, TagCursor, TagTable};
use crate::config::{Config, QueueId};
use crate::ids::{ExecutorId, IdScheme};
use crate::sync::{AtomicU64, UntrackedOnceLock};

/// The parts of a kernel. Each part guards its own invariants.
pub(crate) struct Core {
    pub(super) ids: IdScheme,
    pub(crate) policy: PolicyCell,
    pub(crate) subscription: Subscription,
    pub(crate) agents: AgentTable,
    /// Tells whether the details of what agents offer have changed.
    pub(super) details: DetailsFingerprint,
    pub(crate) executors: Slab<ExecutorCell>,
    /// The cells of executors by sequence number, for ids that don't contain their slot.
    pub(super) numbers: Option<Box<NumberTable>>,
    /// Names of adopted executors.
    pub(super) adopted: Adopted,
    /// The tags and queues of executors; none before the first one.
    pub(super) tags: UntrackedOnceLock<Box<TagTable>>,
    /// What queues hold; none before there are queues.
    pub(super) queues: UntrackedOnceLock<Box<QueueTable>>,
    pub(crate) drain: Drain,
    pub(super) counters: CachePadded<AllCounters>,
    pub(crate) demand: DemandState,
    pub(crate) admission: CachePadded<Admission>,
    pub(crate) gpus: CachePadded<Budget>,
    pub(crate) locality_clock: CachePadded<LocalityClock>,
    /// The next executor's sequence number. Relaxed: it only hands out numbers.
    pub(super) sequence: CachePadded<AtomicU64>,
    /// An upper bound of the number of executors that are unreachable or given up: each is counted before it becomes
    /// unreachable, until after it has returned or ended. Relaxed: it only saves a tick from searching for them.
    pub(super) unreachable: CachePadded<AtomicU64>,
    /// The number of updates of unknown executors. Relaxed: a counter. Not beside words that each batch reads.
    pub(super) unknown_updates: CachePadded<AtomicU64>,
    /// The next snapshot's number. Relaxed: it only hands out numbers.
    pub(super) snapshots: CachePadded<AtomicU64>,
    pub(super) agent_names: CachePadded<NameMemory>,
    pub(super) capacity: CachePadded<CapacityCell>,
    /// When agents were last searched for those to forget, in milliseconds.
    pub(super) swept_at: CachePadded<AtomicU64>,
}

impl Core {
    pub(super) fn new(config: Config, ids: IdScheme) -> Arc<Core> {
        let core = Arc::new(Core::without_queues(config, ids));
        core.make_queues(&core.policy.load().config);
        core.apply_guarantees();
        core
    }

    fn without_queues(config: Config, ids: IdScheme) -> Core {
        Core {
            numbers: ids.needs_table().then(|| Box::new(NumberTable::new())),
            ids,
            adopted: Adopted::new(),
            tags: UntrackedOnceLock::new(),
            queues: UntrackedOnceLock::new(),
            policy: PolicyCell::new(config),
            subscription: Subscription::new(),
            agents: AgentTable::new(),
            details: DetailsFingerprint::new(),
            executors: Slab::new(),
            drain: Drain::new(),
            counters: CachePadded::new(AllCounters::default()),
            demand: DemandState::new(),
            admission: CachePadded::new(Admission::new()),
            gpus: CachePadded::new(Budget::new()),
            locality_clock: CachePadded::new(LocalityClock::new()),
            sequence: CachePadded::new(AtomicU64::new(0)),
            unreachable: CachePadded::new(AtomicU64::new(0)),
            unknown_updates: CachePadded::new(AtomicU64::new(0)),
            snapshots: CachePadded::new(AtomicU64::new(1)),
            agent_names: CachePadded::new(NameMemory::new()),
            capacity: CachePadded::new(CapacityCell::new()),
            swept_at: CachePadded::new(AtomicU64::new(0)),
        }
    }

    /// For setting the marks of executors that are about to be reserved in cells of this thread's.
    pub(super) fn marks(&self) -> TagCursor<'_> {
        self.tags.get_or_init(|| Box::new(TagTable::new())).cursor()
    }

    /// The tag of an executor, if it is a task. The caller has seen the executor in its cell, and either keeps the cell
    /// from being freed, or looks at it again after an Acquire fence; see [`tags`](super::state::tags).
    #[inline]
    pub(super) fn read_tag(&self, id: ExecutorId) -> Option<u64> {
        self.read_mark(id)?.tag
    }

    /// The tag and the queue of an executor, likewise.
    #[inline]
    pub(super) fn read_mark(&self, id: ExecutorId) -> Option<ExecutorMark> {
        self.tags.get()?.get(id)
    }

    /// The queue that an executor is booked in, likewise.
    #[inline]
    pub(super) fn read_queue(&self, id: ExecutorId) -> Option<QueueId> {
        self.read_mark(id)?.queue
    }

    /// Releases what is booked in a queue.
    #[inline]
    pub(super) fn release_queue(&self, queue: Option<QueueId>, amount: QueueAmount) {
        if let (Some(queue), Some(queues)) = (queue, self.queues.get()) {
            queues.release(queue, amount);
        }
    }

    /// Called before claims are made; none if there are no queues.
    #[inline]
    pub(super) fn open_claims(&self) -> Option<OpenClaims<'_>> {
        self.queues.get().map(|queues| OpenClaims::new(queues))
    }

    /// Releases what was booked for an executor that isn't counted.
    pub(super) fn give_back_claim(&self, queue: Option<QueueId>, amount: QueueAmount) {
        if queue.is_some() {
            self.release_queue(queue, amount);
            self.record_claim_return();
        }
    }
}
