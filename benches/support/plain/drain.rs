//! The plain loop's drain: the live executors, and how each ended. The caller must offer nothing after the close.

use std::sync::Arc;

use super::Plain;

/// The executors that were live at the close.
pub(crate) struct DrainList(Vec<Entry>);

struct Entry {
    sequence: u64,
    slot: u32,
    agent_id: Arc<str>,
}

/// One executor's part in a drain.
pub(crate) struct Drained {
    pub(crate) sequence: u64,
    pub(crate) slot: u32,
    pub(crate) agent_id: Arc<str>,
    pub(crate) ended: bool,
}

impl DrainList {
    /// The executors to be asked to end, in a list of their own, as from the kernel.
    pub(crate) fn targets(&self) -> Vec<(u64, u32, Arc<str>)> {
        let target = |entry: &Entry| (entry.sequence, entry.slot, Arc::clone(&entry.agent_id));
        self.0.iter().map(target).collect()
    }
}

impl Plain {
    pub(crate) fn drain_list(&self) -> DrainList {
        let live = self.executors.iter().zip(0u32..).filter(|(executor, _)| executor.live);
        let entries = live.map(|(executor, slot)| Entry {
            sequence: executor.sequence,
            slot,
            agent_id: Arc::clone(&self.agents.names[executor.agent as usize].id),
        });
        DrainList(entries.collect())
    }

    /// What became of those on the list.
    pub(crate) fn report(&self, list: &DrainList) -> Vec<Drained> {
        let fates = list.0.iter().map(|entry| {
            let executor = &self.executors[entry.slot as usize];
            let Entry { sequence, slot, .. } = *entry;
            let ended = executor.sequence != sequence || !executor.live;
            Drained { sequence, slot, agent_id: Arc::clone(&entry.agent_id), ended }
        });
        fates.collect()
    }
}
