//! What the executors of a run are, and how many are on which agents.

use super::RunState;
use crate::model::executor::{ExecutorRecord, ExecutorState};
use crate::model::executor_kind::{ExecutorKind, KindCounts};

impl RunState {
    /// What an executor is.
    pub(crate) fn kind_of(&self, record: &ExecutorRecord) -> ExecutorKind {
        self.kind_of_tag(record.tag)
    }

    /// What an executor with this tag is.
    pub(super) fn kind_of_tag(&self, tag: Option<u64>) -> ExecutorKind {
        match (self.first_host, tag) {
            (Some(first), Some(tag)) if tag >= first => ExecutorKind::Host,
            (Some(_), _) => ExecutorKind::Task,
            (None, _) => ExecutorKind::Executor,
        }
    }

    /// Counts an executor in this state on its agent, if it has one.
    pub(super) fn count_on_agent(
        &mut self,
        agent_id: &str,
        host: &str,
        state: ExecutorState,
        kind: ExecutorKind,
    ) {
        if agent_id.is_empty() {
            return;
        }
        let agent = self.agents.entry(agent_id.to_owned()).or_default();
        host.clone_into(&mut agent.host);
        agent.counts_of(kind).for_each(|counts| counts[state as usize] += 1);
    }

    /// How many executors of each kind are alive.
    pub(crate) fn living(&self) -> KindCounts {
        let living = self.records().filter(|record| !record.state.is_end());
        KindCounts::of(living.map(|record| self.kind_of(record)))
    }

    /// How many of the agents that have had executors aren't lost.
    pub(crate) fn agents_there(&self) -> usize {
        self.agents.values().filter(|agent| !agent.is_lost).count()
    }
}
