//! What each queue holds, and its bounds.

use std::fmt;
use std::sync::Arc;

use crate::config::{Queue, QueueId};
use crate::kernel::state::policy::Policy;
use crate::kernel::{Core, Kernel};
use crate::resources::{Mebibytes, MilliCpus};

/// A queue: what its executors hold, and its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct QueueUse {
    /// Its number.
    pub id: QueueId,
    /// Its name.
    pub name: Arc<str>,
    /// The cores that are booked in it.
    pub cores: MilliCpus,
    /// The memory that is booked in it.
    pub memory: Mebibytes,
    /// The most cores that it may hold; `None` is no maximum.
    pub max_cores: Option<MilliCpus>,
    /// The most memory that it may hold; `None` is no maximum.
    pub max_memory: Option<Mebibytes>,
    /// The cores that are kept for it: its guarantee, or none while it has no demand.
    pub guaranteed_cores: MilliCpus,
    /// The memory that is kept for it, likewise.
    pub guaranteed_memory: Mebibytes,
}

impl Kernel {
    /// Returns what each queue holds, the default queue first; empty if there are no queues.
    ///
    /// # Consistency
    /// Each amount is read by itself. While a batch is committed, or an executor of a queue that is full returns, its
    /// amounts may be booked already, or still, though it isn't counted in the [totals](Kernel::totals); never the
    /// other way round.
    ///
    /// Lock-free. O(queues).
    #[must_use]
    pub fn queues(&self) -> Vec<QueueUse> {
        self.0.queue_uses(&self.0.policy.load())
    }
}

impl Core {
    pub(super) fn queue_uses(&self, policy: &Policy) -> Vec<QueueUse> {
        let Some(queues) = self.queues.get() else { return Vec::new() };
        let all = policy.config.queues.iter();
        let use_of = |(id, queue): (QueueId, &Queue)| {
            let quotas = queues.quotas(id);
            QueueUse {
                id,
                name: Arc::clone(&queue.name),
                cores: MilliCpus::from_millis(quotas.cores.held()),
                memory: Mebibytes::new(quotas.memory.held()),
                max_cores: queue.max_cores,
                max_memory: queue.max_memory,
                guaranteed_cores: MilliCpus::from_millis(quotas.cores.guaranteed()),
                guaranteed_memory: Mebibytes::new(quotas.memory.guaranteed()),
            }
        };
        all.map(use_of).collect()
    }
}

impl QueueUse {
    /// Whether something is booked in it, or it has a bound.
    pub(super) fn is_of_interest(&self) -> bool {
        self.cores > MilliCpus::ZERO
            || self.max_cores.is_some()
            || self.max_memory.is_some()
            || self.guaranteed_cores > MilliCpus::ZERO
            || self.guaranteed_memory > Mebibytes::ZERO
    }
}

impl fmt::Display for QueueUse {
    /// For example `14 of at most 16 cores, at least 4; 28672 MiB of at most 32768 MiB`, without the name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.max_cores {
            Some(most) => write!(f, "{} of at most {most:#}", self.cores)?,
            None => write!(f, "{:#}", self.cores)?,
        }
        if self.guaranteed_cores > MilliCpus::ZERO {
            write!(f, ", {} guaranteed", self.guaranteed_cores)?;
        }
        match self.max_memory {
            Some(most) => write!(f, "; {} of at most {most}", self.memory)?,
            None => write!(f, "; {}", self.memory)?,
        }
        if self.guaranteed_memory > Mebibytes::ZERO {
            write!(f, ", {} guaranteed", self.guaranteed_memory)?;
        }
        Ok(())
    }
}
