//! The agents of a snapshot: each is read once, and its executors are named with what was read.

use std::sync::Arc;

use super::agent_state::AgentState;
use crate::kernel::state::agent_binding::NO_AGENT;
use crate::kernel::state::agents::AgentTable;
use crate::time::Timestamp;

/// All agents, found by their cells. For each executor the caller must know that it held its agent at the time of
/// [`AgentRows::read`]; otherwise the cell may be another agent's.
#[derive(Default)]
pub(super) struct AgentRows {
    pub(super) states: Vec<AgentState>,
    /// The generations of the same agents.
    generations: Vec<u64>,
    /// By the indices of the cells: the position in `states`, plus one; 0 if there is no agent.
    by_cell: Vec<u32>,
    /// The id of no agent, once an executor isn't bound.
    unbound: Option<Arc<str>>,
}

impl AgentRows {
    /// Reads all agents. The names of those that were read before stay.
    pub(super) fn read(&mut self, agents: &AgentTable, now: Timestamp) {
        let last = std::mem::take(self);
        self.states.reserve(agents.len());
        self.generations.reserve(agents.len());
        let known = |cell: u32, generation: u64| {
            let at = last.position(cell)?;
            let state = last.states.get(at)?;
            let is_same = last.generations.get(at) == Some(&generation);
            is_same.then(|| (Arc::clone(&state.agent_id), Arc::clone(&state.hostname)))
        };
        for (cell, view, (agent_id, hostname)) in agents.named_views(now, known) {
            let executors = view.executors.into();
            let excluded_until = view.excluded_until;
            self.states.push(AgentState { agent_id, hostname, executors, excluded_until });
            self.generations.push(view.generation);
            self.by_cell.resize(cell as usize, 0);
            self.by_cell.push(self.states.len() as u32);
        }
    }

    fn position(&self, cell: u32) -> Option<usize> {
        (*self.by_cell.get(cell as usize)? as usize).checked_sub(1)
    }

    /// Returns the id of the agent in the cell. That of no agent is empty.
    #[inline]
    pub(super) fn id(&mut self, cell: u32) -> Option<Arc<str>> {
        if cell == NO_AGENT {
            return Some(Arc::clone(self.unbound.get_or_insert_with(|| "".into())));
        }
        self.states.get(self.position(cell)?).map(|state| Arc::clone(&state.agent_id))
    }
}
