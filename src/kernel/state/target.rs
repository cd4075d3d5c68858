//! [`Target`]: an executor and its agent, for calls to the cluster.

use std::sync::Arc;

use crate::ids::ExecutorId;

/// An executor and its agent, as kills and reconciliations name them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Target {
    /// The executor.
    pub id: ExecutorId,
    /// The id of its agent; empty if the executor is [bound late](crate::Binding::Late) and isn't bound yet.
    pub agent_id: Arc<str>,
    /// Its [tag](crate::Task::tag), if it is a task.
    pub tag: Option<u64>,
}
