//! Queues: which there are, their guarantees, and whether they have demand.

use std::sync::Arc;

use crate::config::{Config, QueueId};
use crate::kernel::state::queues::QueueTable;
use crate::kernel::{Core, Kernel};

impl Kernel {
    /// Says whether a queue has demand: tasks that wait, or executors that are wanted. Each has at first. What is
    /// [guaranteed](crate::config::Queue::guaranteed_cores) to a queue without demand may be used by others; what is in
    /// use when it has demand again, it gets as their executors end.
    ///
    /// It has no effect while the kernel has no queues: each has demand when they are made. Journals don't record it:
    /// in a replay each queue has demand.
    ///
    /// # Guarantees
    /// The *footprint* of a queue is what it holds or, while it has demand, what is guaranteed to it, if that is more.
    /// At every instant: if the footprints are together no more than the core cap (for memory:
    /// [`queued_memory`](crate::ConfigBuilder::queued_memory)), nothing is booked with which they would be more; if
    /// they are more, because the settings or the demand were changed, nothing is booked with which a footprint grows.
    /// So once they are no more, other queues leave a queue the rest of its guarantee, as long as settings and demand
    /// don't change. That concerns cores and memory of executors in queues: other queues may reach the executor limit
    /// or the cap of GPUs, and executors that were placed before there were queues are in no footprint, though they
    /// count in the core cap.
    ///
    /// A guarantee is booked when this, or [`Kernel::reconfigure`], returns. Before, other queues may take what they
    /// leave by then; a batch that has booked that may be placed after.
    ///
    /// # Blocking
    /// Waits for other threads that set demand or settings. Handlers never wait for it.
    pub fn set_queue_demand(&self, queue: QueueId, has_demand: bool) {
        let Some(queues) = self.0.queues.get() else { return };
        let _open = self.0.open_claims();
        if queues.set_demand(queue, has_demand) {
            // While it is set, more may be booked than is in the end.
            self.0.record_claim_return();
            if !has_demand {
                self.0.demand.request_revive();
            }
        }
    }
}

impl Core {
    /// Makes the words of queues, if these settings have queues. Before the settings are published.
    pub(in crate::kernel) fn make_queues(&self, config: &Config) {
        if !config.queues.is_empty() {
            self.queues.get_or_init(|| Box::new(QueueTable::new()));
        }
    }

    /// Has the guarantees of the settings in force. After they were published.
    pub(in crate::kernel) fn apply_guarantees(&self) {
        if let Some(queues) = self.queues.get() {
            let _open = self.open_claims();
            // Loaded under the lock: of two threads that replace the settings, the later one to get it sees the last.
            queues.set_guarantees(|| Arc::clone(&self.policy.load().config.queues));
            self.record_claim_return();
        }
    }
}
