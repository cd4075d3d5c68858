//! Records what agents offer, for [`Kernel::capacity`](crate::Kernel::capacity), when it has changed.
//!
//! A batch computes each agent's fingerprint from sums that it has anyway and compares it with the one in the agent's
//! cell, which it reads anyway. Only if they differ does it look at the offers again and write; see
//! [`state::offered`](crate::kernel::state::offered). When it writes that it has seen the agent, once a minute, it
//! records the offers in any case: a fingerprint doesn't tell all changes.
//!
//! If texts and the size of executors are as they were, and neither the last record nor this one has amounts of several
//! kinds or roles, only the numbers are written.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::agent_cache::AgentCache;
use super::candidates::{Candidate, CandidateSet, ScalarSums};
use super::eligibility::{Eligibility, Supply};
use super::fingerprint::{DetailsFingerprint, OfferFingerprint, Unrecorded, executor_size};
use crate::config::Config;
use crate::kernel::Core;
use crate::kernel::state::offered_amounts::{
    AmountKind, OfferedAmounts, ResourceSums, Thousandths,
};
use crate::kernel::state::offered_details::{OfferedDetails, RecordedAttributes};
use crate::kernel::state::offered_numbers::OfferedNumbers;
use crate::kernel::state::policy::Policy;
use crate::limits::EXECUTORS_PER_AGENT_MAX;
use crate::offer::attributes::{OwnedAttribute, OwnedAttributeValue};
use crate::offer::{Attribute, AttributeValue, Offer, Resource, ResourceKind};
use crate::sync::Ordering;
use crate::time::Timestamp;

impl Core {
    /// Records what the batch's agents offer, where that has changed. An agent that another thread is recording, or
    /// whose details a report reads if they have changed, is left for its next offer.
    #[inline]
    pub(in crate::kernel) fn record_offered(
        &self,
        candidates: &mut CandidateSet,
        agent_cache: &mut AgentCache,
        offers: &[Offer<'_>],
        policy: &Policy,
        now: Timestamp,
    ) {
        if candidates.unrecorded.is_empty() && !candidates.in_parts {
            return;
        }
        self.record_changed(candidates, agent_cache, offers, policy, now);
    }

    #[cold]
    fn record_changed(
        &self,
        candidates: &mut CandidateSet,
        agent_cache: &mut AgentCache,
        offers: &[Offer<'_>],
        policy: &Policy,
        now: Timestamp,
    ) {
        let batch = RecordedBatch {
            offers,
            config: &policy.config,
            size: executor_size(policy),
            // Relaxed: executors that other batches place at this moment count as placed before or after.
            since: self.sequence.load(Ordering::Relaxed),
            now,
            details: &self.details,
        };
        if candidates.in_parts {
            let fingerprint = OfferFingerprint::new(policy);
            self.record_parts(&batch, candidates, agent_cache, fingerprint);
        } else {
            for Unrecorded { candidate, offered, .. } in &candidates.unrecorded {
                self.record_agent(&batch, candidates, agent_cache, &[*candidate], *offered);
            }
        }
    }

    /// Records the agents of a batch in which an agent has several candidates.
    fn record_parts(
        &self,
        batch: &RecordedBatch<'_>,
        candidates: &mut CandidateSet,
        agent_cache: &mut AgentCache,
        fingerprint: OfferFingerprint,
    ) {
        // The candidates of each agent together.
        let mut order = std::mem::take(&mut candidates.by_agent);
        order.clear();
        let list = &candidates.list;
        let candidate = |at: &u32| &list[*at as usize];
        let role = |at: &u32| batch.offers[candidate(at).first as usize].role;
        order.extend((0..list.len() as u32).filter(|at| candidate(at).agent_capacity > 0));
        order.sort_unstable_by_key(|at| (candidate(at).agent.bits(), *at));
        for own in order.chunk_by_mut(|one, next| candidate(one).agent == candidate(next).agent) {
            let Some(first) = own.first().map(candidate) else { continue };
            let Ok(capacity) = self.agents.capacity(first.agent, batch.now) else { continue };
            let parts = own.iter().map(|at| {
                let candidate = candidate(at);
                candidate.fingerprint(fingerprint, &batch.offers[candidate.first as usize])
            });
            let parts = parts.fold(0, u64::wrapping_add);
            // As when the candidates were collected, so that it fits the record.
            let offered = fingerprint.of(parts, first.agent, first.agent_capacity as u16);
            let is_due = own.iter().any(|at| candidates.is_due(*at));
            if offered != capacity.offered || is_due {
                own[1..].sort_unstable_by_key(|at| (role(at), *at));
                self.record_agent(batch, candidates, agent_cache, own, offered);
            }
        }
        candidates.by_agent = order;
    }

    /// Records the agent of these candidates. After the first, those of one role come one after the other.
    fn record_agent(
        &self,
        batch: &RecordedBatch<'_>,
        candidates: &CandidateSet,
        agent_cache: &mut AgentCache,
        own: &[u32],
        offered: u32,
    ) {
        let first = own.first().and_then(|at| candidates.list.get(*at as usize));
        let Some(candidate) = first else { return };
        let agent = candidate.agent;
        if let [_] = own
            && let Some(numbers) = batch.numbers(candidates, candidate)
            && self.agents.record_numbers(agent, offered, numbers)
        {
            return;
        }
        let write = |numbers: &mut OfferedNumbers, details: &mut OfferedDetails| {
            batch.write(numbers, details, candidates, own);
        };
        if !self.agents.record_offered(agent, offered, write) {
            // The other thread may store the same fingerprint, though it records other attributes.
            agent_cache.at(candidate.cache_position).record_again();
        }
    }
}

/// What all records of a batch have in common.
struct RecordedBatch<'a> {
    offers: &'a [Offer<'a>],
    config: &'a Config,
    size: ResourceSums,
    since: u64,
    now: Timestamp,
    details: &'a DetailsFingerprint,
}

impl RecordedBatch<'_> {
    /// What an agent offers in one candidate, if it is of one kind.
    #[inline]
    fn numbers(&self, candidates: &CandidateSet, candidate: &Candidate) -> Option<OfferedNumbers> {
        let offer = self.offers.get(candidate.first as usize)?;
        let amounts = self.amounts(candidates, candidate);
        let mut numbers = self.head(candidate, offer);
        numbers.kind = amounts.kind();
        numbers.offered = amounts.sum();
        (numbers.kind != AmountKind::Several).then_some(numbers)
    }

    /// All numbers but the amounts, for an agent with this first candidate and its first offer.
    #[inline]
    fn head(&self, candidate: &Candidate, offer: &Offer<'_>) -> OfferedNumbers {
        let mut numbers = OfferedNumbers::default();
        numbers.at = self.now;
        numbers.since = self.since;
        // As in the fingerprint: later parts may have been collected after an executor's end.
        numbers.executors = (EXECUTORS_PER_AGENT_MAX - candidate.agent_capacity) as u16;
        numbers.details = self.details.of(self.size, offer);
        numbers
    }

    /// Writes what an agent offers in these candidates. After the first, those of one role come one after the other.
    fn write(
        &self,
        numbers: &mut OfferedNumbers,
        details: &mut OfferedDetails,
        candidates: &CandidateSet,
        own: &[u32],
    ) {
        let own = own.iter().filter_map(|at| candidates.list.get(*at as usize));
        let mut parts = own.filter_map(|it| Some((it, self.offers.get(it.first as usize)?)));
        let Some((candidate, offer)) = parts.next() else { return };
        *numbers = self.head(candidate, offer);
        details.set_size(self.size);
        self.write_attributes(details, offer.attributes);
        let first = self.amounts(candidates, candidate);
        let mut further = parts.peekable();
        let kind = first.kind();
        (numbers.offered, numbers.kind) = if kind == AmountKind::Several || further.peek().is_some()
        {
            let further = further.map(|(it, offer)| (offer.role, self.amounts(candidates, it)));
            details.set_parts(std::iter::once((offer.role, first)).chain(further))
        } else {
            (details.set_one(offer.role, &first), kind)
        };
    }

    /// The amounts of one candidate's offers that executors may use. If nothing is reserved, as usually, they are the
    /// sums that the candidate has.
    fn amounts(&self, candidates: &CandidateSet, candidate: &Candidate) -> OfferedAmounts {
        let offers = candidates.offers_of(candidate.first);
        let mut resources =
            offers.filter_map(|at| self.offers.get(at as usize)).flat_map(|offer| offer.resources);
        if resources.any(Resource::is_reserved) {
            return self.amounts_apart(candidates, candidate);
        }
        let amounts = |sums: &ScalarSums| Thousandths([sums.cpus, sums.memory, sums.gpus]);
        let (unreserved, revocable) = (amounts(&candidate.firm), amounts(&candidate.revocable));
        OfferedAmounts { reserved: Thousandths::default(), unreserved, revocable }
    }

    /// The same, added up anew.
    fn amounts_apart(&self, candidates: &CandidateSet, candidate: &Candidate) -> OfferedAmounts {
        let mut thousandths = [[0u64; 3]; 3];
        let offers = candidates.offers_of(candidate.first);
        for offer in offers.filter_map(|at| self.offers.get(at as usize)) {
            let eligibility = Eligibility::new(offer, self.config);
            for resource in offer.resources {
                let kind = match resource.kind {
                    ResourceKind::Cpus => 0,
                    ResourceKind::Memory => 1,
                    ResourceKind::Gpus => 2,
                    ResourceKind::Ports | ResourceKind::Other => continue,
                };
                let sums = match eligibility.supply(resource) {
                    Some(Supply::NonRevocable) if resource.is_reserved() => &mut thousandths[0],
                    Some(Supply::NonRevocable) => &mut thousandths[1],
                    Some(Supply::Revocable) => &mut thousandths[2],
                    None => continue,
                };
                sums[kind] = sums[kind].saturating_add(resource.quantity());
            }
        }
        let [reserved, unreserved, revocable] = thousandths.map(Thousandths);
        OfferedAmounts { reserved, unreserved, revocable }
    }

    /// Copies the attributes, unless they are those that are recorded.
    fn write_attributes(&self, details: &mut OfferedDetails, attributes: &[Attribute<'_>]) {
        let known = details.attributes.as_ref().map_or(&[][..], |known| &known.list);
        let is_same = known.len() == attributes.len()
            && known
                .iter()
                .zip(attributes)
                .all(|(known, attribute)| is_attribute(known, attribute));
        if !is_same {
            let list: Box<[OwnedAttribute]> = attributes.iter().map(OwnedAttribute::from).collect();
            let fingerprint = hash_attributes(attributes);
            let copied = || Arc::new(RecordedAttributes { fingerprint, list });
            details.set_attributes((!attributes.is_empty()).then(copied));
        }
    }
}

fn is_attribute(known: &OwnedAttribute, attribute: &Attribute<'_>) -> bool {
    let is_value = match (&known.value, attribute.value) {
        (OwnedAttributeValue::Text(known), AttributeValue::Text(text)) => known == text,
        (OwnedAttributeValue::Scalar(known), AttributeValue::Scalar(number)) => {
            known.to_bits() == number.to_bits()
        }
        (OwnedAttributeValue::Ranges(known), AttributeValue::Ranges(ranges)) => known == ranges,
        (OwnedAttributeValue::Set(known), AttributeValue::Set(items)) => known == items,
        _ => false,
    };
    is_value && known.name == attribute.name
}

/// A hash that is the same in each process of one build.
fn hash_attributes(attributes: &[Attribute<'_>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for attribute in attributes {
        attribute.name.hash(&mut hasher);
        std::mem::discriminant(&attribute.value).hash(&mut hasher);
        match attribute.value {
            AttributeValue::Text(text) => text.hash(&mut hasher),
            AttributeValue::Scalar(number) => number.to_bits().hash(&mut hasher),
            AttributeValue::Ranges(ranges) => {
                ranges.iter().for_each(|range| (range.begin, range.end).hash(&mut hasher));
            }
            AttributeValue::Set(items) => items.hash(&mut hasher),
        }
    }
    hasher.finish()
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::offer::Revocability;
    use crate::resources::PortRange;
    use crate::{Config, IdScheme};
    use proptest::prelude::*;

    /// Name, amount, whether it is revocable, and whether it is reserved for the framework's role or for another.
    type Offered = (u8, u32, bool, u8);

    fn resource((name, amount, is_revocable, role): Offered) -> Resource<'static> {
        let name = ["cpus", "mem", "gpus", "disk"][usize::from(name)];
        let resource = Resource::scalar(name, f64::from(amount) / 10.0);
        let resource = match role {
            0 => resource.reserved_for("own"),
            1 => resource.reserved_for("other"),
            _ => resource,
        };
        if is_revocable { resource.with_revocability(Revocability::Revocable) } else { resource }
    }

    proptest! {
        /// Goal: the sums that a candidate has are the amounts that are recorded. Method: random resources of two
        /// offers of one agent, with and without reservations, added up anew and not.
        #[test]
        fn amounts_are_the_candidates_sums(
            own in prop::collection::vec(
                prop::collection::vec((0u8..4, 1u32..200, any::<bool>(), 0u8..20), 0..6), 1..3),
            revocable in any::<bool>(),
        ) {
            let config = Config::builder().revocable(revocable).build().unwrap();
            let kernel = Kernel::new(config, IdScheme::plain());
            let (core, now) = (&*kernel.0, Timestamp::ORIGIN);
            let policy = core.policy.load();
            let own: Vec<Vec<Resource<'_>>> =
                own.iter().map(|some| some.iter().map(|it| resource(*it)).collect()).collect();
            let offer = |own| Offer::new("o", "S1", "host", own, &[]).with_role("own");
            let offers: Vec<Offer<'_>> = own.iter().map(|own| offer(&own[..])).collect();
            let (mut candidates, mut agent_cache) = (CandidateSet::default(), AgentCache::new());
            candidates.collect(&offers, &policy, &mut agent_cache, &core.agents, now, &mut Vec::new());
            let size = executor_size(&policy);
            let (config, details) = (&policy.config, &core.details);
            let batch = RecordedBatch { offers: &offers, config, size, since: 0, now, details };
            for candidate in &candidates.list {
                let apart = batch.amounts_apart(&candidates, candidate);
                prop_assert_eq!(batch.amounts(&candidates, candidate), apart);
            }
        }
    }

    /// Goal: an attribute is taken for a recorded one if name and value are the same, of whatever kind, and only then.
    /// Method: each of a list compared with each.
    #[test]
    fn attributes_are_compared_by_name_and_value() {
        let ranges = [[PortRange::new(1, 2)], [PortRange::new(1, 3)]];
        let sets = [["a"], ["b"]];
        let ranges =
            |name, at: usize| Attribute { name, value: AttributeValue::Ranges(&ranges[at]) };
        let set = |name, at: usize| Attribute { name, value: AttributeValue::Set(&sets[at]) };
        let list = [
            Attribute::text("one", "a"),
            Attribute::text("one", "b"),
            Attribute::text("two", "a"),
            Attribute::scalar("one", 1.0),
            Attribute::scalar("one", 2.0),
            Attribute::scalar("two", 1.0),
            ranges("one", 0),
            ranges("one", 1),
            ranges("two", 0),
            set("one", 0),
            set("one", 1),
            set("two", 0),
        ];
        for (one, known) in list.iter().map(OwnedAttribute::from).enumerate() {
            for (two, attribute) in list.iter().enumerate() {
                assert_eq!(is_attribute(&known, attribute), one == two, "{known:?}, {attribute:?}");
            }
        }
    }
}
