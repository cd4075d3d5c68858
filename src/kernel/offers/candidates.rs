//! Candidates of a batch: declines offers that can't be used and groups the others by agent and role.

use std::hash::BuildHasher;
use std::time::Duration;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::agent_cache::AgentCache;
use super::eligibility::{Eligibility, Supply};
use super::fingerprint::{OfferFingerprint, Unrecorded};
use super::piece::ResourcePlace;
use super::placement::Capacity;
use crate::config::{Config, ExecutorGpus};
use crate::kernel::reason::{Decline, Reason};
use crate::kernel::state::agents::{AgentKey, AgentRefusal, AgentTable};
use crate::kernel::state::offered::NOT_RECORDED;
use crate::kernel::state::policy::Policy;
use crate::limits;
use crate::offer::{Offer, ResourceKind};
use crate::resources::{Gpus, Mebibytes, MilliCpus};
use crate::time::Timestamp;

/// No offer or candidate.
pub(crate) const NONE: u32 = u32::MAX;

/// The number of offers whose agents are looked up ahead of their use. Their entries stay in the nearest cache.
const LOCATED_AHEAD: usize = 64;

/// The offers of one agent and role, which are used together and answered by one accept; or one such offer alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) agent: AgentKey,
    /// The agent's position in the handler's cache; [`NONE`] if the agent isn't known yet.
    pub(super) cache_position: u32,
    /// The first and last of its offers, linked by `CandidateSet::next_offer`.
    pub(crate) first: u32,
    last: u32,
    /// Sums over its offers.
    pub(crate) firm: ScalarSums,
    pub(crate) revocable: ScalarSums,
    /// Which resources hold the non-revocable amounts.
    pub(crate) sources: ScalarSources,
    has_port: bool,
    /// The number of executors that its agent takes.
    pub(in crate::kernel) agent_capacity: u32,
    /// The fingerprint of what is recorded of its agent's offers.
    recorded: u32,
    /// Whether an executor failed on the agent recently.
    failed: bool,
    /// Why it got no executor.
    pub(crate) reason: Option<Reason>,
    /// The number of executors that it got, and the row of the first one.
    pub(crate) placed: u32,
    pub(crate) start: u32,
    /// Whether its first executor has a cell.
    pub(crate) begun: bool,
    /// GPUs for its first executor, if executors take all GPUs offered.
    pub(crate) gpus_granted: u32,
}

/// The usable amount of each scalar in one supply, in thousandths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScalarSums {
    pub(crate) cpus: u64,
    pub(crate) memory: u64,
    pub(crate) gpus: u64,
}

/// Which resources hold the cores and the memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScalarSources {
    pub(crate) cpus: ScalarSource,
    pub(crate) memory: ScalarSource,
}

/// Which resources hold one scalar.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScalarSource {
    /// The number of resources that hold some of it.
    count: u32,
    /// The last of them.
    last: ResourcePlace,
}

impl ScalarSource {
    /// Adds a resource that holds `quantity`; zero is ignored.
    pub(crate) fn add(&mut self, offer: u32, resource: u32, quantity: u64) {
        if quantity > 0 {
            self.count = self.count.saturating_add(1);
            self.last = ResourcePlace::new(offer, resource);
        }
    }

    /// The resource that holds everything, if there is exactly one.
    pub(crate) fn only(self) -> Option<ResourcePlace> {
        (self.count == 1).then_some(self.last)
    }
}

impl Candidate {
    fn new(cache_position: u32, offer: u32) -> Candidate {
        Candidate {
            agent: AgentKey::default(),
            cache_position,
            first: offer,
            last: offer,
            firm: ScalarSums::default(),
            revocable: ScalarSums::default(),
            sources: ScalarSources::default(),
            has_port: false,
            agent_capacity: 0,
            recorded: NOT_RECORDED,
            failed: false,
            reason: None,
            placed: 0,
            start: 0,
            begun: false,
            gpus_granted: 0,
        }
    }

    /// The candidate of an offer without an agent, which has this `position` in the batch.
    #[cold]
    fn late(offer: &Offer<'_>, position: u32, config: &Config) -> Candidate {
        let mut late = Candidate::new(NONE, position);
        (late.agent, late.agent_capacity) = (AgentKey::NONE, 1);
        late.add(offer, position, config);
        late
    }

    /// Whether its agent isn't known yet.
    #[inline]
    pub(super) fn is_late(&self) -> bool {
        self.cache_position == NONE
    }

    /// Adds the resources of all its offers.
    #[inline]
    fn add_all(&mut self, offers: &[Offer<'_>], next_offer: &[u32], config: &Config) {
        for offer in linked(next_offer, self.first) {
            self.add(&offers[offer as usize], offer, config);
        }
    }

    /// Adds the resources of an offer that has this `position` in the batch. Always inlined: a call would cost a batch
    /// of small offers 6 % of its instructions.
    #[inline(always)]
    fn add(&mut self, offer: &Offer<'_>, position: u32, config: &Config) {
        let eligibility = Eligibility::new(offer, config);
        for (resource, at) in offer.resources.iter().zip(0u32..) {
            // Most offered resources are of no use, so their role is not checked.
            match resource.kind {
                ResourceKind::Cpus | ResourceKind::Memory | ResourceKind::Gpus => {}
                ResourceKind::Ports => {
                    let wanted = config.fixed_port.filter(|port| resource.has_port(*port));
                    self.has_port |= wanted.is_some() && eligibility.supply(resource).is_some();
                    continue;
                }
                ResourceKind::Other => continue,
            }
            let quantity = resource.quantity();
            let sums = match eligibility.supply(resource) {
                Some(Supply::NonRevocable) => {
                    match resource.kind {
                        ResourceKind::Cpus => self.sources.cpus.add(position, at, quantity),
                        ResourceKind::Memory => self.sources.memory.add(position, at, quantity),
                        _ => {}
                    }
                    &mut self.firm
                }
                Some(Supply::Revocable) => &mut self.revocable,
                None => continue,
            };
            let sum = match resource.kind {
                ResourceKind::Cpus => &mut sums.cpus,
                ResourceKind::Memory => &mut sums.memory,
                _ => &mut sums.gpus,
            };
            *sum = sum.saturating_add(quantity);
        }
    }

    /// Its part of the agent's fingerprint; `first` is its first offer.
    #[inline]
    pub(super) fn fingerprint(&self, fingerprint: OfferFingerprint, first: &Offer<'_>) -> u64 {
        let amounts = |sums: &ScalarSums| [sums.cpus, sums.memory, sums.gpus];
        fingerprint.part(amounts(&self.firm), amounts(&self.revocable), first)
    }

    /// The GPUs of the candidate's first executor or of a further one.
    pub(crate) fn gpus_of(&self, config: &Config, first: bool) -> Gpus {
        match config.executor_gpus {
            ExecutorGpus::Exactly(each) => each,
            ExecutorGpus::WhatThereIs if first => Gpus::new(self.gpus_granted),
            ExecutorGpus::WhatThereIs => Gpus::ZERO,
        }
    }

    /// The whole GPUs that one executor could take.
    pub(crate) fn whole_gpus(&self) -> u32 {
        let gpus = self.firm.gpus.max(self.revocable.gpus);
        u32::try_from(gpus / 1000).unwrap_or(u32::MAX)
    }

    /// How many executors fit, regardless of the caps; or what is too small for one. An executor takes each kind from
    /// one supply, so the remainders of the two supplies don't add up to another executor.
    fn capacity(&self, policy: &Policy) -> Result<Capacity, Reason> {
        if let Some(reason) = self.reason {
            return Err(reason);
        }
        let config = &policy.config;
        let Candidate { firm, revocable, .. } = self;
        let offered = MilliCpus::from_millis(firm.cpus.max(revocable.cpus));
        let (by_cores, cores) = match policy.fixed_cores() {
            Some(cores) => (times(firm.cpus, revocable.cpus, cores.millis()), cores),
            None => {
                let whole = MilliCpus::from_cores(offered.whole_cores());
                (u64::from(offered.whole_cores() > 0), whole.min(limits::EXECUTOR_CORES_MAX))
            }
        };
        if by_cores == 0 {
            return Err(Reason::Cpus { asked: config.cores_at_least(), offered });
        }
        let asked = config.memory_taken();
        let by_memory = times(firm.memory / 1000, revocable.memory / 1000, asked.get());
        if by_memory == 0 {
            let offered = Mebibytes::new(firm.memory.max(revocable.memory) / 1000);
            return Err(Reason::Memory { asked, offered });
        }
        let by_gpus = match config.executor_gpus {
            ExecutorGpus::Exactly(asked) if asked > Gpus::ZERO => {
                let each = u64::from(asked.get());
                match times(firm.gpus / 1000, revocable.gpus / 1000, each) {
                    0 => {
                        let offered = Gpus::new(self.whole_gpus());
                        return Err(Reason::Gpus { asked, offered });
                    }
                    fit => fit,
                }
            }
            _ => u64::MAX,
        };
        let by_port = match config.fixed_port {
            Some(port) if !self.has_port => return Err(Reason::Port { port }),
            Some(_) => 1,
            None => u64::MAX,
        };
        let fit = by_cores.min(by_memory).min(by_gpus).min(by_port);
        let executors = u32::try_from(fit).unwrap_or(u32::MAX).min(self.agent_capacity);
        Ok(Capacity {
            executors,
            cores,
            last: self.failed && config.compatibility.replace_elsewhere,
        })
    }
}

/// The number of times that `each` fits into one supply plus the number of times that it fits into the other.
fn times(firm: u64, revocable: u64, each: u64) -> u64 {
    // Usually nothing is revocable; then this saves a division.
    let more = if revocable < each { 0 } else { revocable / each };
    (firm / each).saturating_add(more)
}

impl From<AgentRefusal> for Reason {
    fn from(refusal: AgentRefusal) -> Reason {
        match refusal {
            AgentRefusal::Retired => Reason::Contended,
            AgentRefusal::Excluded(until) => Reason::AgentExcluded { until },
            AgentRefusal::Suspect(until) => Reason::AgentSuspect { until },
            AgentRefusal::Full => Reason::AgentFull,
        }
    }
}

/// The candidates of a batch. Its memory is reused from batch to batch.
#[derive(Debug, Default)]
pub(crate) struct CandidateSet {
    pub(crate) list: Vec<Candidate>,
    /// For each candidate, how many executors fit.
    pub(crate) capacities: Vec<Capacity>,
    /// For each offer, the next offer of its candidate.
    pub(crate) next_offer: Vec<u32>,
    /// The candidates of agents' further roles. Empty in almost all batches.
    further: HashTable<u32>,
    hasher: RandomState,
    batch: u32,
    /// The candidates whose offers aren't recorded, in their order. If `in_parts` is set, there may be others among
    /// them, and only [`CandidateSet::is_due`] means something.
    pub(super) unrecorded: Vec<Unrecorded>,
    /// Whether an agent has several candidates and what it offers is recorded.
    pub(super) in_parts: bool,
    /// What fingerprints depend on, with the version of the settings that it was computed from.
    fingerprint: Option<(u64, OfferFingerprint)>,
    /// Memory for the candidates' positions in the order of their agents.
    pub(super) by_agent: Vec<u32>,
}

impl CandidateSet {
    /// Collects the candidates among `offers` and appends a row to `declines` for each offer that can't be used. Always
    /// inlined: a call would cost a small batch 1 % of its instructions.
    #[inline(always)]
    pub(crate) fn collect(
        &mut self,
        offers: &[Offer<'_>],
        policy: &Policy,
        agent_cache: &mut AgentCache,
        agents: &AgentTable,
        now: Timestamp,
        declines: &mut Vec<Decline>,
    ) {
        self.list.clear();
        self.capacities.clear();
        self.next_offer.clear();
        self.next_offer.resize(offers.len(), NONE);
        self.further.clear();
        self.in_parts = false;
        self.number_batch(agent_cache);
        let refuse = &policy.config.refuse;
        let constraint = &policy.config.constraint;
        let maintenance_lead = policy.config.maintenance_lead;
        agent_cache.evict_stale(now);
        for (offer, position) in offers.iter().zip(0u32..) {
            let ahead = position as usize % LOCATED_AHEAD;
            if ahead == 0 {
                let rest = &offers[position as usize..];
                agent_cache.locate(&rest[..rest.len().min(LOCATED_AHEAD)], agents);
            }
            if offer.id.is_empty() || offer.agent_id.is_empty() {
                if offer.is_late() {
                    self.list.push(Candidate::late(offer, position, &policy.config));
                } else {
                    declines.push(Decline::at(position, Reason::Malformed, refuse, now));
                }
                continue;
            }
            let (at, cached) = agent_cache.entry(ahead, offer.agent_id, now);
            if let Err(unmet) = constraint.check_with(&mut cached.memo, offer) {
                let reason = Reason::ConstraintUnmet(unmet);
                declines.push(Decline::at(position, reason, refuse, now));
                continue;
            }
            let is_near = |it: &Duration| *it < maintenance_lead || it.is_zero();
            if let Some(begins_in) = offer.maintenance_in.filter(is_near) {
                let reason = Reason::AgentMaintenance { begins_in };
                declines.push(Decline::at(position, reason, refuse, now));
                continue;
            }
            let is_further = cached.batch == self.batch;
            if is_further && policy.config.compatibility.merge_offers {
                self.candidate_of_role(cached.candidate, offer.role, offers, position);
            } else {
                self.in_parts |= is_further;
                cached.batch = self.batch;
                cached.candidate = self.list.len() as u32;
                self.list.push(Candidate::new(at, position));
            }
        }
        // Where one batch had something to record, the next one mostly has, too.
        let records_ahead = !self.unrecorded.is_empty();
        self.unrecorded.clear();
        if !self.list.is_empty() {
            self.compute_capacities(offers, policy, agent_cache, agents, records_ahead, now);
        }
    }

    /// Whether a candidate's offers are to be recorded even if its agent's fingerprint is the recorded one.
    pub(super) fn is_due(&self, candidate: u32) -> bool {
        let found = self.unrecorded.binary_search_by_key(&candidate, |it| it.candidate);
        found.is_ok_and(|at| self.unrecorded[at].is_due)
    }

    /// Returns what the fingerprints of agents depend on under this policy.
    #[inline]
    fn fingerprint(&mut self, policy: &Policy) -> OfferFingerprint {
        match self.fingerprint {
            Some((version, known)) if version == policy.config_version => known,
            _ => {
                let fingerprint = OfferFingerprint::new(policy);
                self.fingerprint = Some((policy.config_version, fingerprint));
                fingerprint
            }
        }
    }

    /// Gives the batch a number that no cached agent has.
    fn number_batch(&mut self, agent_cache: &mut AgentCache) {
        self.batch = self.batch.wrapping_add(1);
        if self.batch == 0 {
            // The numbers wrapped around.
            agent_cache.forget_batches();
            self.batch = 1;
        }
    }

    /// Computes the capacity of each candidate; there is at least one. With `records_ahead`, prefetches their records.
    fn compute_capacities(
        &mut self,
        offers: &[Offer<'_>],
        policy: &Policy,
        agent_cache: &mut AgentCache,
        agents: &AgentTable,
        records_ahead: bool,
        now: Timestamp,
    ) {
        // A loop of its own: it reads lines that other threads write, and several of them can come at a time.
        for candidate in &mut self.list {
            let first = &offers[candidate.first as usize];
            let known = agent_cache.capacity(candidate.cache_position, agents, first, now);
            // None if its agent isn't known yet.
            let Some(capacity) = known else { continue };
            match capacity {
                Ok((agent, capacity)) => {
                    if records_ahead {
                        agents.prefetch_record(agent);
                    }
                    candidate.agent = agent;
                    candidate.agent_capacity = u32::from(capacity.executors);
                    candidate.recorded = capacity.offered;
                    candidate.failed = capacity.failed;
                }
                Err(refusal) => candidate.reason = Some(refusal.into()),
            }
        }
        let fingerprint = self.fingerprint(policy);
        let is_recorded = policy.config.capacity_refresh != Duration::MAX;
        self.in_parts = is_recorded && (self.in_parts || !self.further.is_empty());
        for (candidate, at) in self.list.iter_mut().zip(0u32..) {
            // What a refused agent offers isn't looked at.
            if candidate.reason.is_none() && !candidate.is_late() {
                candidate.add_all(offers, &self.next_offer, &policy.config);
                let part = candidate.fingerprint(fingerprint, &offers[candidate.first as usize]);
                let room = candidate.agent_capacity as u16;
                let offered = fingerprint.of(part, candidate.agent, room);
                if offered != candidate.recorded && is_recorded {
                    Unrecorded::push(&mut self.unrecorded, at, offered, candidate.recorded);
                }
            }
            self.capacities.push(candidate.capacity(policy).unwrap_or_else(|reason| {
                candidate.reason = Some(reason);
                Capacity::NONE
            }));
        }
    }

    /// Whether no executor fits any candidate.
    pub(super) fn is_full(&self) -> bool {
        self.capacities.iter().all(|capacity| capacity.executors == 0)
    }

    /// Links an agent's further offer into its candidate, by role. Creates the candidate if there is none.
    fn candidate_of_role(&mut self, at: u32, role: &str, offers: &[Offer<'_>], position: u32) {
        let CandidateSet { list, further, hasher, .. } = self;
        let role_of = |candidate: &Candidate| offers[candidate.first as usize].role;
        let cached = list[at as usize].cache_position;
        let mut found = Some(at);
        if role_of(&list[at as usize]) != role {
            let hash = hasher.hash_one((cached, role));
            let same = |candidate: &Candidate| {
                candidate.cache_position == cached && role_of(candidate) == role
            };
            found = further.find(hash, |other| same(&list[*other as usize])).copied();
            if found.is_none() {
                let hash_of = |candidate: &Candidate| {
                    hasher.hash_one((candidate.cache_position, role_of(candidate)))
                };
                let fresh = list.len() as u32;
                further.insert_unique(hash, fresh, |other| hash_of(&list[*other as usize]));
            }
        }
        let Some(found) = found else {
            list.push(Candidate::new(cached, position));
            return;
        };
        let candidate = &mut list[found as usize];
        self.next_offer[candidate.last as usize] = position;
        candidate.last = position;
    }

    /// The positions of a candidate's offers.
    pub(crate) fn offers_of(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        linked(&self.next_offer, first)
    }
}

/// The positions of the offers that are linked, from `first` on.
fn linked(next_offer: &[u32], first: u32) -> impl Iterator<Item = u32> + '_ {
    std::iter::successors(Some(first), |offer| {
        next_offer.get(*offer as usize).copied().filter(|next| *next != NONE)
    })
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: after 2³² batches, an agent of the first batch isn't taken for one that is in the present batch already.
    /// Method: the number wraps around, with an agent that was last seen in the batch of the next number.
    #[test]
    fn numbers_of_batches_wrap_around() {
        let mut candidates = CandidateSet { batch: u32::MAX - 1, ..CandidateSet::default() };
        let (mut agent_cache, now) = (AgentCache::new(), Timestamp::ORIGIN);
        agent_cache.locate(&[Offer::new("O1", "S1", "host", &[], &[])], &AgentTable::new());
        let (at, cached) = agent_cache.entry(0, "S1", now);
        cached.batch = 1;
        candidates.number_batch(&mut agent_cache);
        assert_eq!((candidates.batch, agent_cache.at(at).batch), (u32::MAX, 1));
        candidates.number_batch(&mut agent_cache);
        assert_eq!((candidates.batch, agent_cache.at(at).batch), (1, 0));
        candidates.number_batch(&mut agent_cache);
        assert_eq!((candidates.batch, agent_cache.at(at).batch), (2, 0));
    }
}
