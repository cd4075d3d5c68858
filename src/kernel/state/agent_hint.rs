//! A hint on which agent the executor in a cell is, for searches through all cells.

use crate::sync::{AtomicU16, Ordering};

use super::agent_binding::NO_AGENT;

/// The lower 16 bits of the index of an executor's agent, apart from the executor's cell: a search for an agent's
/// executors reads 2 bytes per cell instead of a cache line, and only those cells whose hints are equal.
///
/// It is written before the executor is reserved, and stays when the executor ends. So a cell
/// with an equal hint may be vacant or another agent's; but as long as an executor is in its cell, its hint is right.
/// The hint of an executor that is bound late always says that it may be on any agent: the thread that binds it could
/// not change the hint together with the [binding](super::agent_binding).
#[derive(Debug)]
pub(crate) struct AgentHint(AtomicU16);

/// The hint of executors that are bound late, and of those on agents with such an index.
const ANY_AGENT: u16 = NO_AGENT as u16;

impl Default for AgentHint {
    fn default() -> AgentHint {
        AgentHint(AtomicU16::new(ANY_AGENT))
    }
}

impl AgentHint {
    /// Whether the cell may hold an executor of the agent with this index.
    pub(crate) fn may_be(&self, agent: u32) -> bool {
        // Relaxed: what orders the reader after the executor's reservation or admission orders it after the store.
        let hint = self.0.load(Ordering::Relaxed);
        hint == agent as u16 || hint == ANY_AGENT
    }

    /// Must be called before an executor is reserved in its cell.
    pub(crate) fn set(&self, agent: u32) {
        // Relaxed: the store of the executor's state publishes it.
        self.0.store(agent as u16, Ordering::Relaxed);
    }
}
