//! What the plain loop tells of itself: what the kernel's reports tell, as rows. Texts are shared, not copied.
//!
//! It notes no nearest misses: an explanation is without them.

use std::sync::Arc;

use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{ReasonKind, Timestamp};

use super::Plain;

/// All executors and agents.
pub(crate) struct Picture {
    pub(crate) executors: Vec<ExecutorRow>,
    pub(crate) agents: Vec<AgentRow>,
}

pub(crate) struct ExecutorRow {
    pub(crate) sequence: u64,
    pub(crate) slot: u32,
    pub(crate) running: bool,
    pub(crate) agent_id: Arc<str>,
    pub(crate) cores: MilliCpus,
    pub(crate) memory: Mebibytes,
}

pub(crate) struct AgentRow {
    pub(crate) agent_id: Arc<str>,
    pub(crate) hostname: Arc<str>,
    pub(crate) executors: u32,
    pub(crate) excluded_until: Timestamp,
}

/// Why more executors are waited for.
pub(crate) struct Explanation {
    pub(crate) wanted: u64,
    pub(crate) offers: u64,
    pub(crate) agents: usize,
    pub(crate) excluded: usize,
    /// The most frequent first.
    pub(crate) declined: Vec<(ReasonKind, u64)>,
}

impl Plain {
    pub(crate) fn picture(&self) -> Picture {
        let mut executors = Vec::with_capacity(self.live as usize);
        let live = self.executors.iter().zip(0u32..).filter(|(executor, _)| executor.live);
        executors.extend(live.map(|(executor, slot)| ExecutorRow {
            sequence: executor.sequence,
            slot,
            running: executor.running,
            agent_id: Arc::clone(&self.agents.names[executor.agent as usize].id),
            cores: MilliCpus::from_millis(executor.cores),
            memory: Mebibytes::new(executor.memory),
        }));
        let agents = self.agents.names.iter().zip(&self.agents.accounts);
        let agents = agents.map(|(name, accounts)| AgentRow {
            agent_id: Arc::clone(&name.id),
            hostname: Arc::clone(&name.hostname),
            executors: accounts.executors,
            excluded_until: accounts.excluded_until,
        });
        Picture { executors, agents: agents.collect() }
    }

    pub(crate) fn explain(&self, now: Timestamp) -> Explanation {
        let excluded = self.agents.accounts.iter().filter(|accounts| now < accounts.excluded_until);
        let declined =
            ReasonKind::ALL.into_iter().map(|kind| (kind, self.counts.declined[kind as usize]));
        let mut declined: Vec<_> = declined.filter(|(_, offers)| *offers > 0).collect();
        declined.sort_by_key(|(_, offers)| std::cmp::Reverse(*offers));
        Explanation {
            wanted: (self.cap.millis() - self.acquired) / self.cores_each,
            offers: self.counts.offers,
            agents: self.agents.names.len(),
            excluded: excluded.count(),
            declined,
        }
    }
}
