//! An agent in a snapshot.

use std::sync::Arc;

use crate::time::Timestamp;

/// One agent in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct AgentState {
    /// Its id.
    pub agent_id: Arc<str>,
    /// Its host name; empty if it was reported lost and not offered yet.
    pub hostname: Arc<str>,
    /// The number of executors on it, including those that were given up.
    pub executors: u32,
    /// When its exclusion ends, if it is excluded; [`Timestamp::MAX`] is never.
    pub excluded_until: Option<Timestamp>,
}
