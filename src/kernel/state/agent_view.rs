//! What is read of an agent's cell: plain data.

use std::sync::Arc;

use crate::time::Timestamp;

/// What an agent takes, if it is usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AgentCapacity {
    /// The number of executors.
    pub(crate) executors: u16,
    /// Whether an executor failed there recently and none was placed since: other agents are used first.
    pub(crate) failed: bool,
    /// The fingerprint of what is recorded of its offers.
    pub(crate) offered: u32,
}

/// Why an agent takes no executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentRefusal {
    /// The agent was forgotten since it was looked up.
    Retired,
    Excluded(Timestamp),
    Suspect(Timestamp),
    Full,
}

/// The agent's names, for reports.
#[derive(Debug)]
pub(crate) struct AgentName {
    pub(crate) id: Arc<str>,
    /// Empty if it is unknown.
    pub(crate) hostname: Arc<str>,
}

/// An agent without its name, for reports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgentView {
    pub(crate) generation: u64,
    pub(crate) executors: u16,
    /// When its exclusion or suspicion ends, if it is in force.
    pub(crate) excluded_until: Option<Timestamp>,
    pub(crate) suspect_until: Option<Timestamp>,
    /// When it was last seen, in seconds.
    pub(crate) seen: u32,
}

impl AgentView {
    /// Whether it is excluded or suspect.
    pub(crate) fn is_withheld(&self) -> bool {
        self.excluded_until.is_some() || self.suspect_until.is_some()
    }
}

/// Whole seconds since the origin.
pub(crate) fn seconds(now: Timestamp) -> u32 {
    u32::try_from(now.as_millis() / 1000).unwrap_or(u32::MAX)
}
