//! [`RecoveredExecutor`]: an executor of a former run, as a manager's records have it.

use crate::config::{QueueId, Queues};
use crate::kernel::Recovered;
use crate::offer::Binding;
use crate::resources::ExecutorResources;

/// An executor of a former run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct RecoveredExecutor {
    /// Its id.
    pub executor: String,
    /// The agent that it is on.
    pub agent_id: String,
    /// The agent's host name.
    pub hostname: String,
    /// The resources that it takes.
    pub resources: ExecutorResources,
    /// See [`Recovered::binding`].
    #[cfg_attr(feature = "serde", serde(default))]
    pub binding: Binding,
    /// The queue that it is in, if the manager knows it; see [`Recovered::queue`].
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub queue: Option<QueueId>,
    /// What its queue was called in the former run. The engine finds the queue of this name, if there is one and the
    /// manager doesn't know better.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub queue_name: Option<String>,
}

impl RecoveredExecutor {
    /// Creates the record of an executor of a former run.
    #[must_use]
    pub fn new(
        executor: impl Into<String>,
        agent_id: impl Into<String>,
        hostname: impl Into<String>,
        resources: ExecutorResources,
    ) -> RecoveredExecutor {
        RecoveredExecutor {
            executor: executor.into(),
            agent_id: agent_id.into(),
            hostname: hostname.into(),
            resources,
            binding: Binding::Immediate,
            queue: None,
            queue_name: None,
        }
    }

    /// Creates the record of an executor that was not bound to an agent yet, as far as is known.
    #[must_use]
    pub fn late(executor: impl Into<String>, resources: ExecutorResources) -> RecoveredExecutor {
        let binding = Binding::Late;
        RecoveredExecutor { binding, ..RecoveredExecutor::new(executor, "", "", resources) }
    }

    /// The same executor in the queue of this name, if there is one.
    #[must_use]
    pub fn in_queue_called(mut self, name: impl Into<String>) -> RecoveredExecutor {
        self.queue_name = Some(name.into());
        self
    }

    /// The same executor in this queue.
    #[must_use]
    pub const fn in_queue(mut self, queue: QueueId) -> RecoveredExecutor {
        self.queue = Some(queue);
        self
    }
}

/// Finds the queues of executors by what these were called. One that isn't there any more is as none.
pub(super) fn find_queues(former: &mut [RecoveredExecutor], queues: &Queues) {
    for it in former.iter_mut().filter(|it| it.queue.is_none()) {
        it.queue = it.queue_name.as_deref().and_then(|name| queues.id(name));
    }
}

/// Borrows executors of a former run as a kernel takes them.
pub(super) fn borrow_former(former: &[RecoveredExecutor]) -> Vec<Recovered<'_>> {
    let borrowed = former.iter().map(|it| Recovered {
        queue: it.queue,
        executor: &it.executor,
        agent_id: &it.agent_id,
        hostname: &it.hostname,
        resources: it.resources,
        binding: it.binding,
        tag: None,
    });
    borrowed.collect()
}
