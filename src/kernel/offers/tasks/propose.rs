//! Proposing: looks at a batch of offers and keeps what is left of the usable ones as rooms.

use super::room::Room;
use super::scratch::GONE;
use crate::kernel::Core;
use crate::kernel::offers::decline::{decline, decline_all};
use crate::kernel::offers::handler::Scratch;
use crate::kernel::offers::locality::LocalityFilter;
use crate::kernel::reason::Reason;
use crate::kernel::state::admission::AdmissionState;
use crate::kernel::state::policy::Policy;
use crate::offer::Offer;
use crate::time::Timestamp;

impl Scratch {
    /// Looks at the offers under one policy: all that `resource_offers` does before it plans.
    pub(super) fn propose(
        &mut self,
        core: &Core,
        policy: &Policy,
        admission: AdmissionState,
        offers: &[Offer<'_>],
        now: Timestamp,
    ) {
        let Scratch { agent_cache, candidates, taken, tasks, .. } = self;
        tasks.rooms.clear();
        tasks.declines.clear();
        tasks.policy = policy.number;
        let closed = core.reason_for_all(policy, admission);
        tasks.alike = false;
        // Offers arrive though nothing can be placed: suppress must be sent again.
        tasks.at_cap = closed.is_some_and(Reason::calls_for_suppress) && !offers.is_empty();
        if tasks.at_cap {
            core.demand.record_refused();
        }
        if let Some(reason) = &closed
            && !policy.outranks(reason)
        {
            // The wait for wanted hosts may pause.
            core.locality_filter(policy, Some(reason), now);
            decline_all(offers, reason, policy, now, &mut tasks.declines);
            tasks.alike = true;
            return;
        }
        candidates.collect(offers, policy, agent_cache, &core.agents, now, &mut tasks.declines);
        core.record_offered(candidates, agent_cache, offers, policy, now);
        let locality_filter = core.locality_filter(policy, closed.as_ref(), now);
        if let Some(locality_filter) = &locality_filter {
            locality_filter.apply(candidates, offers, &core.agents, taken);
        }
        let is_waiting = locality_filter.as_ref().is_some_and(LocalityFilter::is_waiting);
        let rows = candidates.list.iter().zip(&candidates.capacities).zip(0u32..);
        for ((candidate, capacity), position) in rows {
            if closed.is_some() || capacity.executors == 0 {
                decline(candidates, candidate, policy, &closed, now, &mut tasks.declines);
                continue;
            }
            let most = if is_waiting { capacity.executors } else { candidate.agent_capacity };
            tasks.rooms.push(Room::of(candidate, position, most, capacity.last));
        }
    }

    /// Looks at the offers again, because what was proposed is outdated, and notes where each room is now.
    #[cold]
    pub(super) fn propose_again(
        &mut self,
        core: &Core,
        policy: &Policy,
        admission: AdmissionState,
        offers: &[Offer<'_>],
        now: Timestamp,
    ) {
        if !std::mem::replace(&mut self.tasks.again, true) {
            // These are the rooms that the framework was shown.
            self.tasks.offer_of.clear();
            self.tasks.offer_of.extend(self.tasks.rooms.iter().map(Room::offer));
        }
        self.propose(core, policy, admission, offers, now);
        let tasks = &mut self.tasks;
        let mut room_of = vec![GONE; offers.len()];
        for (room, position) in tasks.rooms.iter().zip(0u32..) {
            if let Some(at) = room_of.get_mut(room.offer() as usize) {
                *at = position;
            }
        }
        let moved = |offer: &u32| room_of.get(*offer as usize).copied().unwrap_or(GONE);
        tasks.moved.clear();
        tasks.moved.extend(tasks.offer_of.iter().map(moved));
    }
}
