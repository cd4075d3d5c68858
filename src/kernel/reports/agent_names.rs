//! Agents' ids for reports about many executors: each id is looked up and copied once, then shared.

use std::sync::Arc;

use crate::kernel::state::agent_binding::NO_AGENT;
use crate::kernel::state::agents::AgentTable;

/// The ids of the agents in one report. If a cell is reused for another agent, the id that was found first stays. So
/// for each executor the caller must know that it held its agent when its id was looked up; otherwise the id may be
/// another agent's.
pub(crate) struct AgentNames<'a> {
    agents: &'a AgentTable,
    /// By the index of the agent's cell.
    ids: Vec<Option<Arc<str>>>,
    /// The id of no agent, once an executor isn't bound.
    unbound: Option<Arc<str>>,
}

impl<'a> AgentNames<'a> {
    pub(crate) fn new(agents: &'a AgentTable) -> AgentNames<'a> {
        AgentNames { agents, ids: Vec::new(), unbound: None }
    }

    /// Looks up the id of the agent in the cell, unless that was done.
    #[inline]
    fn find(&mut self, cell: u32) {
        if cell == NO_AGENT {
            self.unbound.get_or_insert_with(|| "".into());
            return;
        }
        let at = cell as usize;
        if self.ids.len() <= at {
            self.ids.resize(at + 1, None);
        }
        if let Some(id @ None) = self.ids.get_mut(at) {
            *id = self.agents.id(cell);
        }
    }

    /// Returns the id for the cell; looks it up if that was not done.
    pub(crate) fn id_now(&mut self, cell: u32) -> Option<Arc<str>> {
        self.find(cell);
        self.id(cell)
    }

    /// Returns the id that was found for the cell. That of no agent is empty.
    pub(crate) fn id(&self, cell: u32) -> Option<Arc<str>> {
        if cell == NO_AGENT {
            return self.unbound.clone();
        }
        self.ids.get(cell as usize)?.clone()
    }
}
