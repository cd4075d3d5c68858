//! Agents' ids for reports about many executors: each is looked up and copied once, and then shared.

use std::sync::Arc;

use crate::kernel::state::agents::Agents;

/// What the agents of one report are called. A cell that becomes another agent's meanwhile keeps the name that was
/// found first. So the caller has to know of each executor that it held its agent at the moment of
/// [`AgentNames::look_up`], or else must not name it by what is found.
pub(crate) struct AgentNames<'a> {
    agents: &'a Agents,
    /// By the agent's cell.
    ids: Vec<Option<Arc<str>>>,
}

impl<'a> AgentNames<'a> {
    pub(crate) fn new(agents: &'a Agents) -> AgentNames<'a> {
        AgentNames { agents, ids: Vec::new() }
    }

    /// Looks up what the agents in these cells are called now.
    pub(crate) fn look_up(&mut self, cells: impl Iterator<Item = u32>) {
        self.ids.fill(None);
        cells.for_each(|cell| self.find(cell));
    }

    /// Looks up what the agent in the cell is called, unless that was done.
    #[inline]
    fn find(&mut self, cell: u32) {
        let at = cell as usize;
        if self.ids.len() <= at {
            self.ids.resize(at + 1, None);
        }
        if let Some(id @ None) = self.ids.get_mut(at) {
            *id = self.agents.id(cell);
        }
    }

    /// The id of the agent in the cell, looked up now if need be.
    pub(crate) fn id_now(&mut self, cell: u32) -> Option<Arc<str>> {
        self.find(cell);
        self.id(cell)
    }

    /// The id that was found for the cell, if there was one.
    pub(crate) fn id(&self, cell: u32) -> Option<Arc<str>> {
        self.ids.get(cell as usize)?.clone()
    }

    /// The same text as `id`: the one that was found for the cell, if it is equal.
    pub(crate) fn share(&self, cell: u32, id: &str) -> Arc<str> {
        let found = self.ids.get(cell as usize).and_then(Option::as_ref);
        found.filter(|found| ***found == *id).map_or_else(|| id.into(), Arc::clone)
    }
}
