//! The queues of a run, as they are shown.

use offermill::QueueUse;

/// A bound of a queue that was changed. Values are texts, as `--queues` has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BoundChange {
    pub(crate) queue: String,
    /// As in `max-cores`.
    pub(crate) bound: &'static str,
    pub(crate) from: String,
    pub(crate) to: String,
}

/// A queue with its bounds, and what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueInfo {
    /// What it takes now. Its guarantees are those of the settings, also while nothing is kept for it.
    pub(crate) taken: QueueUse,
    pub(crate) content: QueueContent,
}

/// How many of what are in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueContent {
    /// Tasks in flight, tasks that are yet to start, and hosts.
    Tasks { running: u64, waiting: u64, hosts: u64 },
    /// Executors of a run without tasks.
    Executors(u32),
}

impl QueueInfo {
    /// Whether it takes more than it may.
    pub(crate) fn is_too_full(&self) -> bool {
        let QueueUse { cores, memory, max_cores, max_memory, .. } = &self.taken;
        max_cores.is_some_and(|most| *cores > most) || max_memory.is_some_and(|most| *memory > most)
    }
}
