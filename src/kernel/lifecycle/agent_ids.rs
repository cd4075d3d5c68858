//! [`AgentIds`]: a thread's own copy of agents' ids, by the cells that the agents are in.
//!
//! Each update names an agent, and it must be that of the executor. The id that the kernel keeps is behind a lock and
//! two pointers, in lines that other threads use too. The copy is one line, which only this thread reads.

use crate::kernel::state::agents::AgentTable;
use crate::kernel::state::inline_id::InlineId;
use crate::sync::prefetch;

/// The most ids that are kept: 1 MiB of them. Beyond that, agents whose cells are so far apart replace each other.
const KEEP: usize = 1 << 14;

/// The ids of agents. It grows with the table of agents, up to [`KEEP`] ids.
#[derive(Debug, Default)]
pub(crate) struct AgentIds {
    /// The id of the agent in cell `i` is at `i` modulo the length, which is zero or a power of two.
    ids: Vec<Option<KnownId>>,
}

#[derive(Debug)]
#[repr(align(64))]
struct KnownId {
    /// Of the agent that has the id. No two agents have one.
    generation: u64,
    id: InlineId,
}

impl AgentIds {
    /// Whether the agent in the cell has this id; `None` if there is no agent.
    #[inline]
    pub(super) fn is_named(&mut self, agents: &AgentTable, index: u32, id: &str) -> Option<bool> {
        let generation = agents.generation(index)?;
        match self.ids.get(self.position(index)) {
            Some(Some(known)) if known.generation == generation => {
                Some(known.id.as_bytes() == id.as_bytes())
            }
            _ => self.learn(agents, index, generation, id),
        }
    }

    /// Asks memory for the copy of an agent's id.
    #[inline]
    pub(super) fn prefetch(&self, index: u32) {
        if let Some(known) = self.ids.get(self.position(index)) {
            prefetch(known);
        }
    }

    fn position(&self, index: u32) -> usize {
        index as usize & self.ids.len().wrapping_sub(1)
    }

    /// As [`AgentIds::is_named`], of an agent whose id isn't kept.
    #[cold]
    fn learn(
        &mut self,
        agents: &AgentTable,
        index: u32,
        generation: u64,
        id: &str,
    ) -> Option<bool> {
        let name = agents.name_of(index, generation)?;
        let length = (index as usize).saturating_add(1).next_power_of_two().min(KEEP);
        if length > self.ids.len() {
            // All had a place below their index, or at it.
            self.ids.resize_with(length, || None);
        }
        let position = self.position(index);
        self.ids[position] = Some(KnownId { generation, id: InlineId::new(&name.id) });
        Some(*name.id == *id)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    /// Goal: what is said of a cell is true whatever was said before. Method: more agents than are kept, so that some
    /// share places, from the last to the first; then one of them is forgotten, and its cell is another's.
    #[test]
    fn copies_follow_the_table() {
        let agents = AgentTable::new();
        let mut ids = AgentIds::default();
        let now = Timestamp::ORIGIN;
        let add = |name: &str| agents.find_or_insert(name, "host", now).unwrap();
        let name = |number: usize| format!("S{number}");
        let keys: Vec<_> = (0..KEEP + 9).map(|number| add(&name(number))).collect();
        for _ in 0..2 {
            for (number, key) in keys.iter().enumerate().rev() {
                assert_eq!(ids.is_named(&agents, key.index(), &name(number)), Some(true));
                assert_eq!(ids.is_named(&agents, key.index(), "S"), Some(false));
            }
        }
        assert_eq!(ids.ids.len(), KEEP);
        assert!(agents.retire(keys[7], now));
        assert_eq!(ids.is_named(&agents, keys[7].index(), "S7"), None);
        assert_eq!(add("T").index(), keys[7].index());
        assert_eq!(ids.is_named(&agents, keys[7].index(), "S7"), Some(false));
        assert_eq!(ids.is_named(&agents, keys[7].index(), "T"), Some(true));
        assert_eq!(ids.is_named(&agents, u32::MAX, "T"), None);
    }
}
