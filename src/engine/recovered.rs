//! [`RecoveredExecutor`]: an executor of a former run, as a manager's records have it.

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
        }
    }

    /// Creates the record of an executor that was not bound to an agent yet, as far as is known.
    #[must_use]
    pub fn late(executor: impl Into<String>, resources: ExecutorResources) -> RecoveredExecutor {
        let binding = Binding::Late;
        RecoveredExecutor { binding, ..RecoveredExecutor::new(executor, "", "", resources) }
    }
}

/// Borrows executors of a former run as a kernel takes them.
pub(super) fn borrow_former(former: &[RecoveredExecutor]) -> Vec<Recovered<'_>> {
    let borrowed = former.iter().map(|it| Recovered {
        queue: None,
        executor: &it.executor,
        agent_id: &it.agent_id,
        hostname: &it.hostname,
        resources: it.resources,
        binding: it.binding,
        tag: None,
    });
    borrowed.collect()
}
