//! Agents' ids for reports about many executors: each is looked up and copied once, and then shared.

use std::sync::Arc;

use super::agents::Agents;

/// What the agents of one report are called. A cell that changes hands meanwhile keeps the name that was found first:
/// executors of both can't be counted at one moment.
pub(super) struct Directory<'a> {
    agents: &'a Agents,
    /// By the agent's cell.
    ids: Vec<Option<Arc<str>>>,
}

impl<'a> Directory<'a> {
    pub(super) fn new(agents: &'a Agents) -> Directory<'a> {
        Directory { agents, ids: Vec::new() }
    }

    /// The id of the agent in the cell, if there ever was one.
    pub(super) fn id(&mut self, cell: u32) -> Option<Arc<str>> {
        match self.ids.get(cell as usize) {
            Some(Some(id)) => Some(Arc::clone(id)),
            _ => {
                let name = self.agents.name(cell)?;
                Some(self.note(cell, &name.id))
            }
        }
    }

    /// Notes the id of the agent in the cell, which somebody has found already.
    pub(super) fn note(&mut self, cell: u32, id: &str) -> Arc<str> {
        let at = cell as usize;
        if self.ids.len() <= at {
            self.ids.resize(at + 1, None);
        }
        let id: Arc<str> = id.into();
        if let Some(noted) = self.ids.get_mut(at) {
            *noted = Some(Arc::clone(&id));
        }
        id
    }
}
