//! Executors by agents, in a picture of the cluster's capacity.

use crate::kernel::state::offered_amounts::ResourceSums;

/// Executors on one agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct AgentUse {
    pub(super) used: ResourceSums,
    /// Of executors placed since the record; the number of those placed before it that live.
    pub(super) placed_since: ResourceSums,
    pub(super) before: u32,
    /// Whether executors that were given up are there, which count neither as used nor as free.
    pub(super) has_given_up: bool,
}

/// Executors by agents.
#[derive(Debug, Default)]
pub(super) struct ExecutorUse {
    /// By the positions of agents' cells: the position in `list`, plus one; 0 if no executors are there. Empty if there
    /// are none at all.
    pub(super) by_cell: Vec<u32>,
    pub(super) list: Vec<AgentUse>,
    /// What counted executors use that aren't bound to an agent yet.
    pub(super) unbound: ResourceSums,
}

impl AgentUse {
    pub(super) const NONE: AgentUse = AgentUse {
        used: ResourceSums::NONE,
        placed_since: ResourceSums::NONE,
        before: 0,
        has_given_up: false,
    };
}

impl ExecutorUse {
    /// The executors on the agent in the cell, if there are some.
    #[inline]
    pub(super) fn find(&self, cell: usize) -> Option<&AgentUse> {
        let at = *self.by_cell.get(cell)?;
        self.list.get((at as usize).checked_sub(1)?)
    }

    /// The executors on the agent in the cell.
    pub(super) fn at(&self, cell: usize) -> &AgentUse {
        self.find(cell).unwrap_or(&AgentUse::NONE)
    }
}
