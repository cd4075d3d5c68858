//! What executors use of each agent, for a picture of the cluster's capacity.

use std::sync::Arc;

use super::agent_use::{AgentUse, ExecutorUse};
use super::capacity_shard::{AgentShard, SHARD};
use super::executor_row::Row;
use crate::kernel::state::adopted::Adopted;
use crate::kernel::state::agent_binding::NO_AGENT;
use crate::kernel::state::offered_amounts::ResourceSums;

impl AgentUse {
    /// Adds an executor of which `record` says when the agent was recorded.
    fn add(&mut self, row: &Row, since: Option<u64>, adopted: &Adopted) {
        let (id, state, allocation, _) = row;
        let resources = ResourceSums::from(allocation.resources);
        if state.stage.counted() {
            self.used = self.used.saturating_add(resources);
        } else {
            self.has_given_up = true;
        }
        if since.is_none_or(|since| id.sequence < since) {
            self.before = self.before.saturating_add(1);
        } else if !adopted.has_number(id.sequence) {
            // One that was adopted since was on the agent before: what it uses wasn't offered.
            self.placed_since = self.placed_since.saturating_add(resources);
        }
    }
}

impl ExecutorUse {
    /// Counts each executor on its agent, as it is in the shards. The memory of `spare` is used again.
    pub(super) fn count(
        spare: ExecutorUse,
        rows: &[Row],
        shards: &[Arc<AgentShard>],
        adopted: &Adopted,
    ) -> ExecutorUse {
        if rows.is_empty() {
            return ExecutorUse::default();
        }
        let ExecutorUse { mut by_cell, mut list, .. } = spare;
        by_cell.clear();
        by_cell.resize(shards.len() * SHARD, 0);
        list.clear();
        let mut unbound = ResourceSums::NONE;
        for row in rows {
            let (_, state, allocation, _) = row;
            if allocation.agent == NO_AGENT {
                if state.stage.counted() {
                    unbound = unbound.saturating_add(allocation.resources.into());
                }
                continue;
            }
            let cell = allocation.agent as usize;
            let agent = shards.get(cell / SHARD).and_then(|shard| shard.rows.get(cell % SHARD));
            let (Some(agent), Some(at)) = (agent, by_cell.get_mut(cell)) else { continue };
            if *at == 0 {
                list.push(AgentUse::NONE);
                *at = list.len() as u32;
            }
            if let Some(executors) = list.get_mut(*at as usize - 1) {
                executors.add(row, agent.record.as_ref().map(|record| record.since), adopted);
            }
        }
        ExecutorUse { by_cell, list, unbound }
    }
}
