//! The agents of a snapshot: each is read once, and its executors are named with what was read.
//!
//! What agents are called is kept from one snapshot to the next, so that the lock of a name is taken once.

use std::sync::Arc;

use super::agent_state::AgentState;
use crate::kernel::state::agent::AgentCell;
use crate::kernel::state::agent_binding::NO_AGENT;
use crate::kernel::state::agents::AgentTable;
use crate::sync::{Mutex, lock, prefetch_text};
use crate::time::Timestamp;

/// The number of agents whose texts are asked for ahead: to count an owner of a text is a read-modify-write, which
/// waits for its line and lets no later load pass.
const TEXTS_AHEAD: usize = 8;

/// What the agent in a cell is called.
#[derive(Clone, Debug, Default)]
struct KnownName {
    /// Whose name it is: a generation has one id, and one host name once it is known.
    generation: u64,
    /// The id and the host name; none if no agent is there.
    names: Option<(Arc<str>, Arc<str>)>,
}

impl KnownName {
    /// The id and the host name of the agent in `cell`, if it still is of this generation. The cell's lock is taken
    /// only if they aren't known.
    #[inline]
    fn of(&mut self, cell: &AgentCell, generation: u64) -> Option<&(Arc<str>, Arc<str>)> {
        let is_whole = self.names.as_ref().is_some_and(|(_, hostname)| !hostname.is_empty());
        if !is_whole || self.generation != generation {
            *self = KnownName { generation, names: cell.names_of(generation) };
        }
        self.names.as_ref()
    }
}

/// The names that the last snapshot has read, by the indices of the agents' cells. Its lock is held while they are
/// taken out and put back, by snapshots alone: one that finds none there reads its own.
#[derive(Debug, Default)]
pub(crate) struct NameMemory(Mutex<Vec<KnownName>>);

impl NameMemory {
    pub(crate) fn new() -> NameMemory {
        NameMemory(Mutex::new(Vec::new()))
    }
}

/// All agents, found by their cells. For each executor the caller must know that it held its agent at the time of
/// [`AgentRows::read`]; otherwise the cell may be another agent's.
pub(super) struct AgentRows {
    states: Vec<AgentState>,
    /// By the indices of the cells: the names of the agents in `states`, none in cells without an agent.
    known: Vec<KnownName>,
    /// The id of no agent, once an executor isn't bound.
    unbound: Option<Arc<str>>,
}

impl AgentRows {
    pub(super) fn new(memory: &NameMemory) -> AgentRows {
        let known = std::mem::take(&mut *lock(&memory.0));
        AgentRows { states: Vec::new(), known, unbound: None }
    }

    /// Reads all agents, instead of those that were read before.
    pub(super) fn read(&mut self, agents: &AgentTable, now: Timestamp) {
        let AgentRows { states, known, .. } = self;
        states.clear();
        states.reserve(agents.len());
        let mut end = 0;
        for (index, cell, ends) in agents.cells() {
            let at = index as usize;
            if known.len() <= at {
                known.resize(at + 1, KnownName::default());
            }
            end = at + 1;
            let later = known.get(at + TEXTS_AHEAD).and_then(|later| later.names.as_ref());
            if let Some((agent_id, hostname)) = later {
                prefetch_text(agent_id);
                prefetch_text(hostname);
            }
            let Some(known) = known.get_mut(at) else { continue };
            let Some(view) = cell.view(now, ends) else {
                *known = KnownName::default();
                continue;
            };
            let Some((agent_id, hostname)) = known.of(cell, view.generation).cloned() else {
                continue;
            };
            let executors = view.executors.into();
            let excluded_until = view.excluded_until;
            states.push(AgentState { agent_id, hostname, executors, excluded_until });
        }
        known.truncate(end);
    }

    /// Asks memory for the text that [`AgentRows::id`] will return.
    #[inline]
    pub(super) fn prefetch(&self, cell: u32) {
        let known = self.known.get(cell as usize).and_then(|known| known.names.as_ref());
        if let Some((agent_id, _)) = known {
            prefetch_text(agent_id);
        }
    }

    /// Returns the id of the agent in the cell. That of no agent is empty.
    #[inline]
    pub(super) fn id(&mut self, cell: u32) -> Option<Arc<str>> {
        if cell == NO_AGENT {
            return Some(Arc::clone(self.unbound.get_or_insert_with(|| "".into())));
        }
        let (agent_id, _) = self.known.get(cell as usize)?.names.as_ref()?;
        Some(Arc::clone(agent_id))
    }

    /// Returns the agents. Leaves their names to the next snapshot.
    pub(super) fn finish(self, memory: &NameMemory) -> Vec<AgentState> {
        *lock(&memory.0) = self.known;
        self.states
    }
}
