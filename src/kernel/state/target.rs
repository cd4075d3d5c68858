//! [`Target`]: an executor and its agent, for calls to the cluster.

use std::sync::Arc;

use crate::ids::ExecutorId;

/// An executor and its agent, as kills and reconciliations name them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Target {
    /// The executor.
    pub id: ExecutorId,
    /// The id of its agent.
    pub agent_id: Arc<str>,
}
