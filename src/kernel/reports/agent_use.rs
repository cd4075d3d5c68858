//! Executors by agents, in a picture of the cluster's capacity.

use crate::kernel::state::offered_amounts::ResourceSums;

/// Executors on one agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct AgentUse {
    /// The position of the agent's cell.
    pub(super) cell: u32,
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
    /// Those of one shard's agents together, in the order of the shards.
    pub(super) list: Vec<AgentUse>,
    /// By shards: where those of the shard's agents end in `list`. Empty if there are none at all.
    pub(super) ends: Vec<u32>,
    /// What counted executors use that aren't bound to an agent yet.
    pub(super) unbound: ResourceSums,
}

impl AgentUse {
    pub(super) const NONE: AgentUse = AgentUse {
        cell: u32::MAX,
        used: ResourceSums::NONE,
        placed_since: ResourceSums::NONE,
        before: 0,
        has_given_up: false,
    };
}

impl ExecutorUse {
    /// The executors on the agent in the cell.
    #[inline]
    pub(super) fn at(&self, cell: usize) -> &AgentUse {
        let found = self.by_cell.get(cell).and_then(|at| (*at as usize).checked_sub(1));
        found.and_then(|at| self.list.get(at)).unwrap_or(&AgentUse::NONE)
    }

    /// The executors on the agents of the shard with this number.
    pub(super) fn in_shard(&self, shard: usize) -> &[AgentUse] {
        let end = |shard: usize| self.ends.get(shard).map_or(0, |end| *end as usize);
        let start = shard.checked_sub(1).map_or(0, end);
        self.list.get(start..end(shard)).unwrap_or_default()
    }
}
