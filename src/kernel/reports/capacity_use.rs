//! What executors use of each agent, for a picture of the cluster's capacity.
//!
//! Executors lie all over the table of agents. They are counted shard by shard, so that what is read of agents comes
//! from memory once and in order.

use std::sync::Arc;

use super::agent_use::{AgentUse, ExecutorUse};
use super::capacity_shard::{AgentShard, SHARD};
use super::executor_row::Row;
use crate::kernel::state::adopted::Adopted;
use crate::kernel::state::agent_binding::NO_AGENT;
use crate::kernel::state::offered_amounts::ResourceSums;

/// Executors in the order of the shards of their agents.
#[derive(Debug, Default)]
pub(super) struct ShardOrder {
    /// By shards: where those of the shard end in `order`.
    ends: Vec<u32>,
    /// The executors' positions.
    order: Vec<u32>,
}

impl ShardOrder {
    /// Puts the executors that are bound to an agent into the order of `shards` shards; those of one shard stay in
    /// their order.
    fn sort(&mut self, rows: &[Row], shards: usize) {
        let ShardOrder { ends, order } = self;
        // First the number of executors in the shard before each, then where each begins.
        ends.clear();
        ends.resize(shards, 0);
        let mut bound = 0;
        for shard in rows.iter().filter_map(shard_of) {
            if let Some(count) = ends.get_mut(shard) {
                *count += 1;
                bound += 1;
            }
        }
        let mut start = 0;
        for end in ends.iter_mut() {
            start += std::mem::replace(end, start);
        }
        order.clear();
        order.resize(bound, 0);
        for (row, at) in rows.iter().zip(0u32..) {
            let Some(end) = shard_of(row).and_then(|shard| ends.get_mut(shard)) else { continue };
            if let Some(place) = order.get_mut(*end as usize) {
                *place = at;
            }
            *end += 1;
        }
    }

    /// The positions of the executors of each shard.
    fn shards(&self) -> impl Iterator<Item = &[u32]> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let end = *end as usize;
            self.order.get(std::mem::replace(&mut start, end)..end).unwrap_or_default()
        })
    }
}

/// The number of the shard of the executor's agent; none if it isn't bound.
fn shard_of(Row { allocation, .. }: &Row) -> Option<usize> {
    (allocation.agent != NO_AGENT).then_some(allocation.agent as usize / SHARD)
}

impl AgentUse {
    /// Adds an executor of which `record` says when the agent was recorded.
    #[inline]
    fn add(&mut self, row: &Row, since: Option<u64>, adopted: &Adopted) {
        let Row { id, stage, allocation, .. } = row;
        let resources = ResourceSums::from(allocation.resources);
        if stage.counted() {
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
    /// Counts executors on their agents, as these are in the shards, and calls `counted` with the number of each shard
    /// once its executors are counted. The memory of `spare` and `order` is used again.
    pub(super) fn count(
        spare: ExecutorUse,
        order: &mut ShardOrder,
        rows: &[Row],
        shards: &[Arc<AgentShard>],
        adopted: &Adopted,
        mut counted: impl FnMut(usize, &AgentShard, &ExecutorUse),
    ) -> ExecutorUse {
        let mut executors = ExecutorUse::default();
        if !rows.is_empty() {
            executors = spare;
            executors.clear(shards.len());
        }
        order.sort(rows, shards.len());
        for ((number, shard), own) in shards.iter().enumerate().zip(order.shards()) {
            let own = own.iter().filter_map(|at| rows.get(*at as usize));
            own.for_each(|row| executors.add(row, shard, adopted));
            executors.ends.push(executors.list.len() as u32);
            counted(number, shard, &executors);
        }
        executors.unbound = unbound(rows);
        executors
    }

    fn clear(&mut self, shards: usize) {
        self.by_cell.clear();
        self.by_cell.resize(shards * SHARD, 0);
        self.list.clear();
        self.ends.clear();
    }

    /// Adds an executor, whose agent is in `shard`.
    #[inline]
    fn add(&mut self, row: &Row, shard: &AgentShard, adopted: &Adopted) {
        let cell = row.allocation.agent;
        let Some(agent) = shard.rows.get(cell as usize % SHARD) else { return };
        let Some(at) = self.by_cell.get_mut(cell as usize) else { return };
        if *at == 0 {
            self.list.push(AgentUse { cell, ..AgentUse::NONE });
            *at = self.list.len() as u32;
        }
        if let Some(executors) = self.list.get_mut(*at as usize - 1) {
            executors.add(row, agent.record.as_ref().map(|record| record.since), adopted);
        }
    }
}

/// What counted executors use that aren't bound to an agent.
fn unbound(rows: &[Row]) -> ResourceSums {
    let unbound = rows.iter().filter(|row| row.allocation.agent == NO_AGENT && row.stage.counted());
    unbound.fold(ResourceSums::NONE, |sum, row| sum.saturating_add(row.allocation.resources.into()))
}
