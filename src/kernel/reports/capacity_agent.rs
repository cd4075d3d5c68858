//! An agent in a picture of the cluster's capacity, and sums over agents.

use std::fmt;

use super::agent_use::{AgentUse, ExecutorUse};
use super::capacity_shard::{
    AddedUp, AgentDetails, AgentRow, AgentShard, CapacitySums, Positions, RecordRow, SHARD,
    Withheld,
};
use crate::kernel::state::agent::AgentName;
use crate::kernel::state::offered_amounts::{AmountKind, OfferedAmounts, ResourceSums};
use crate::kernel::state::offered_details::{OfferedToRole, RecordedAttributes};
use crate::offer::DEFAULT_ROLE;
use crate::offer::attributes::OwnedAttribute;
use crate::time::Timestamp;

/// An agent in a [`ClusterCapacity`](crate::ClusterCapacity).
#[derive(Clone, Copy)]
pub struct AgentResources<'a> {
    pub(super) shard: &'a AgentShard,
    /// Its position there.
    pub(super) at: usize,
    pub(super) row: &'a AgentRow,
    pub(super) executors: &'a AgentUse,
}

/// What an agent offered to one role, in the last batch in which it offered something else than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RoleOffer<'a> {
    /// The role; [`DEFAULT_ROLE`] if it is unknown.
    pub role: &'a str,
    /// What was reserved for the role or an ancestor of it.
    pub reserved: ResourceSums,
    /// What was not reserved.
    pub unreserved: ResourceSums,
    /// What was revocable, if revocable resources are enabled.
    pub revocable: ResourceSums,
}

impl fmt::Debug for AgentResources<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentResources")
            .field("agent_id", &self.agent_id())
            .field("offered", &self.offered())
            .field("used", &self.used())
            .field("free", &self.free())
            .finish_non_exhaustive()
    }
}

impl<'a> AgentResources<'a> {
    /// Returns its id.
    #[must_use]
    pub fn agent_id(&self) -> &'a str {
        self.name().map_or("", |name| &name.id)
    }

    /// Returns its host name; empty if it was never offered.
    #[must_use]
    pub fn hostname(&self) -> &'a str {
        self.name().map_or("", |name| &name.hostname)
    }

    /// Returns the number of executors on it, including those that were given up.
    #[must_use]
    pub fn executors(&self) -> u32 {
        self.row.executors()
    }

    /// Returns what its [counted](crate::Totals::executors) executors use.
    #[must_use]
    pub fn used(&self) -> ResourceSums {
        self.executors.used
    }

    /// Returns all that it offered, to whichever role, when it last offered something else than before; nothing if it
    /// was never offered.
    #[must_use]
    pub fn offered(&self) -> ResourceSums {
        self.row.record.map_or(ResourceSums::NONE, |record| record.offered())
    }

    /// Returns when that was: the time of the batch. None if it was never offered.
    #[must_use]
    pub fn offered_at(&self) -> Option<Timestamp> {
        self.row.record.map(|record| record.at)
    }

    /// Returns when it was last offered or had a failure, if not by more than a minute later, in whole seconds.
    #[must_use]
    pub fn seen_at(&self) -> Timestamp {
        self.row.seen()
    }

    /// Returns what is free there: what was offered, less executors placed since, plus those ended since.
    #[must_use]
    pub fn free(&self) -> ResourceSums {
        let Some(record) = &self.row.record else { return ResourceSums::NONE };
        let given_back = record.given_back(self.ended(record), || self.executor_size(record));
        given_back.saturating_sub(self.executors.placed_since)
    }

    /// Returns what it offered, by role.
    pub fn roles(&self) -> impl Iterator<Item = RoleOffer<'a>> + use<'a> {
        self.shard.roles(self.at)
    }

    /// Returns its attributes. They are read when what it offers changes.
    #[must_use]
    pub fn attributes(&self) -> &'a [OwnedAttribute] {
        self.recorded_attributes().map_or(&[], |attributes| &attributes.list)
    }

    /// Returns a hash of its attributes, which is the same for equal attributes in equal order, in each process of one
    /// build; 0 if it has none.
    #[must_use]
    pub fn attributes_fingerprint(&self) -> u64 {
        self.recorded_attributes().map_or(0, |attributes| attributes.fingerprint)
    }

    /// Returns when its exclusion ends, if it is excluded; [`Timestamp::MAX`] is never.
    #[must_use]
    pub fn excluded_until(&self) -> Option<Timestamp> {
        self.withheld()?.excluded_until
    }

    /// Returns until when nothing is placed on it because it was reported lost, if that is so.
    #[must_use]
    pub fn suspect_until(&self) -> Option<Timestamp> {
        self.withheld()?.suspect_until
    }

    /// What it has for executors of this kernel, free or used.
    pub(super) fn free_or_used(&self) -> ResourceSums {
        self.free().saturating_add(self.used())
    }

    /// Whether the agent may have more than is free and used there.
    pub(super) fn may_have_more(&self) -> bool {
        match &self.row.record {
            None => self.executors.has_given_up || self.row.may_be_offered(),
            // Executors have ended whose sizes aren't known.
            Some(record) => {
                self.executors.has_given_up
                    || self.ended(record) > 0 && self.executor_size(record) == ResourceSums::NONE
            }
        }
    }

    pub(super) fn is_withheld(&self) -> bool {
        self.row.is_withheld()
    }

    /// The number of executors that were there when it was recorded and have ended since.
    fn ended(&self, record: &RecordRow) -> u32 {
        record.executors().saturating_sub(self.executors.before)
    }

    fn name(&self) -> Option<&'a AgentName> {
        self.details().and_then(|details| details.name.as_deref())
    }

    fn recorded_attributes(&self) -> Option<&'a RecordedAttributes> {
        self.details().and_then(|details| details.attributes.as_deref())
    }

    /// What each executor takes, if that was fixed when it was recorded; otherwise nothing.
    fn executor_size(&self, record: &RecordRow) -> ResourceSums {
        self.shard.executor_size(self.at, record)
    }

    fn details(&self) -> Option<&'a AgentDetails> {
        self.shard.details.get(self.at)
    }

    fn withheld(&self) -> Option<&'a Withheld> {
        if self.is_withheld() { self.shard.withheld(self.at) } else { None }
    }
}

impl RoleOffer<'_> {
    pub(super) fn add(&mut self, other: &RoleOffer<'_>) {
        self.reserved = self.reserved.saturating_add(other.reserved);
        self.unreserved = self.unreserved.saturating_add(other.unreserved);
        self.revocable = self.revocable.saturating_add(other.revocable);
    }
}

impl CapacitySums {
    #[inline]
    pub(crate) fn add(&mut self, agent: &AgentResources<'_>) {
        self.agents += 1;
        self.offered = self.offered.saturating_add(agent.offered());
        self.used = self.used.saturating_add(agent.used());
        let free = if agent.is_withheld() { &mut self.withheld } else { &mut self.free };
        *free = free.saturating_add(agent.free());
    }

    /// Adds sums over other agents.
    pub(super) fn add_all(&mut self, others: &CapacitySums) {
        self.agents += others.agents;
        self.offered = self.offered.saturating_add(others.offered);
        self.used = self.used.saturating_add(others.used);
        self.free = self.free.saturating_add(others.free);
        self.withheld = self.withheld.saturating_add(others.withheld);
    }
}

impl AgentShard {
    /// The agent at this position, with its executors.
    pub(super) fn agent<'a>(
        &'a self,
        at: usize,
        executors: &'a AgentUse,
    ) -> Option<AgentResources<'a>> {
        let row = self.rows.get(at)?;
        row.generation()?;
        Some(AgentResources { shard: self, at, row, executors })
    }

    /// The agents, with their executors. Their cells begin with `first_cell`.
    pub(super) fn agents<'a>(
        &'a self,
        first_cell: usize,
        executors: &'a ExecutorUse,
    ) -> impl Iterator<Item = AgentResources<'a>> {
        let agent = move |at| self.agent(at, executors.at(first_cell + at));
        (0..self.rows.len()).filter_map(agent)
    }

    /// What the agent at this position offered, by role.
    pub(super) fn roles(&self, at: usize) -> impl Iterator<Item = RoleOffer<'_>> {
        let record = self.rows.get(at).and_then(|row| row.record.as_ref());
        let is_parted = record.is_some_and(|record| record.kind == AmountKind::Several);
        let one = record.filter(|_| !is_parted).map(|record| {
            let role = self.details.get(at).and_then(|details| details.role.as_deref());
            RoleOffer::of_kind(role.unwrap_or(DEFAULT_ROLE), record.kind, record.offered())
        });
        let first = self.parts.partition_point(|part| part.at < at);
        let parts = self.parts.get(first..).filter(|_| is_parted).unwrap_or_default();
        let own = parts.iter().take_while(move |part| part.at == at);
        one.into_iter().chain(own.map(|part| RoleOffer::of(&part.offered)))
    }

    /// Adds up the agents with their executors. The cells of the shard's agents begin with `first_cell`.
    pub(super) fn add_up(&self, first_cell: usize, executors: &ExecutorUse) -> AddedUp {
        // What was added to a sum that saturated can't be taken off again.
        let mut is_known = !self.idle.may_be_saturated();
        let mut added_up = self.idle;
        let mut others = self.had_executors;
        for own in executors.in_shard(first_cell / SHARD) {
            let at = own.cell as usize - first_cell;
            let Some(agent) = self.agent(at, own) else { continue };
            let without = AgentResources { executors: &AgentUse::NONE, ..agent }.free();
            added_up.count_executors(without, &agent);
            // If an agent that is among the largest has less, it isn't known which of the others has the most.
            let has_as_much = || agent.free_or_used().max_of_each(without) == agent.free_or_used();
            is_known &= others.remove(at) || has_as_much();
        }
        if !is_known {
            return self.add_up_each(|at| executors.at(first_cell + at));
        }
        // All their executors have ended.
        for agent in others.iter().filter_map(|at| self.agent(at, &AgentUse::NONE)) {
            added_up.largest = added_up.largest.max_of_each(agent.free());
        }
        added_up
    }

    /// The agents that have executors, or had some when they were recorded. The cells of the shard's agents begin with
    /// `first_cell`.
    pub(super) fn with_executors<'a>(
        &'a self,
        first_cell: usize,
        executors: &'a ExecutorUse,
    ) -> impl Iterator<Item = AgentResources<'a>> {
        let mut others = self.had_executors;
        let own = executors.in_shard(first_cell / SHARD);
        let own = own.iter().map(move |own| (own.cell as usize - first_cell, own));
        own.clone().for_each(|(at, _)| _ = others.remove(at));
        let others = others.iter().map(|at| (at, &AgentUse::NONE));
        own.chain(others).filter_map(|(at, executors)| self.agent(at, executors))
    }

    /// Adds up the agents one by one.
    pub(super) fn add_up_each<'a>(&'a self, executors: impl Fn(usize) -> &'a AgentUse) -> AddedUp {
        let mut added_up = AddedUp::default();
        for agent in (0..self.rows.len()).filter_map(|at| self.agent(at, executors(at))) {
            added_up.sums.add(&agent);
            added_up.largest = added_up.largest.max_of_each(agent.free_or_used());
        }
        added_up
    }

    /// Adds up the agents as if no executors were there. Each picture does this for all agents of a shard in which one
    /// has changed, so what is free is computed once.
    pub(super) fn add_up_idle(&mut self) {
        let AddedUp { mut sums, mut largest } = AddedUp::default();
        let mut had_executors = Positions::default();
        let mut is_unsure = false;
        let agents = self.rows.iter().enumerate().filter(|(_, row)| row.generation().is_some());
        for (at, row) in agents {
            sums.agents += 1;
            let Some(record) = &row.record else {
                is_unsure |= row.may_be_offered();
                continue;
            };
            let free = record.given_back(record.executors(), || self.executor_size(at, record));
            sums.offered = sums.offered.saturating_add(record.offered());
            let of_its_kind = if row.is_withheld() { &mut sums.withheld } else { &mut sums.free };
            *of_its_kind = of_its_kind.saturating_add(free);
            match record.executors() {
                0 => largest = largest.max_of_each(free),
                _ => had_executors.insert(at),
            }
        }
        self.idle = AddedUp { sums, largest };
        self.had_executors = had_executors;
        self.is_unsure = is_unsure;
    }
}

impl AddedUp {
    fn may_be_saturated(&self) -> bool {
        let CapacitySums { offered, used, free, withheld, .. } = self.sums;
        [offered, used, free, withheld].iter().any(|sum| {
            let ResourceSums { cores, memory, gpus } = *sum;
            cores.millis() == u64::MAX || memory.get() == u64::MAX || gpus.get() == u32::MAX
        })
    }

    /// Counts the executors of an agent that was added up as if it had none, with that much free.
    fn count_executors(&mut self, without: ResourceSums, agent: &AgentResources<'_>) {
        self.sums.used = self.sums.used.saturating_add(agent.used());
        let CapacitySums { free, withheld, .. } = &mut self.sums;
        let free = if agent.is_withheld() { withheld } else { free };
        *free = free.saturating_sub(without).saturating_add(agent.free());
        self.largest = self.largest.max_of_each(agent.free_or_used());
    }
}

impl<'a> RoleOffer<'a> {
    /// Amounts of one kind.
    fn of_kind(role: &'a str, kind: AmountKind, amounts: ResourceSums) -> RoleOffer<'a> {
        let if_of = |wanted| if kind == wanted { amounts } else { ResourceSums::NONE };
        RoleOffer {
            role,
            reserved: if_of(AmountKind::Reserved),
            unreserved: if_of(AmountKind::Unreserved),
            revocable: if_of(AmountKind::Revocable),
        }
    }

    fn of(offered: &'a OfferedToRole) -> RoleOffer<'a> {
        let OfferedAmounts { reserved, unreserved, revocable } = offered.amounts;
        RoleOffer {
            role: offered.role.as_deref().unwrap_or(DEFAULT_ROLE),
            reserved: reserved.rounded_down(),
            unreserved: unreserved.rounded_down(),
            revocable: revocable.rounded_down(),
        }
    }
}
