//! Answers to offers in the reference model. Executors are placed by the naive placement.

use std::collections::BTreeMap;
use std::time::Duration;

use offermill::constraint::{Mismatch, Unmet};
use offermill::limits::EXECUTORS_PER_AGENT_MAX;
use offermill::resources::Scalar;
use offermill::{Amount as Piece, Reason, Timestamp};

use super::updates::CLOCK_MAX;
use super::{Agent, Executor, Known, Life, Model};
use crate::placement::naive::{self, Caps, Offered, Placement, Request, Room};
use crate::world::{Amount, Entry, OfferData};

/// The decisions that the kernel must return for a batch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// In the order of their first offers.
    pub(crate) accepts: Vec<Accept>,
    /// By the position of the offer.
    pub(crate) declines: BTreeMap<u32, (Reason, Duration)>,
    /// The picks that were not placed: position, tag and reason.
    pub(crate) unplaced: Vec<(u32, u64, Reason)>,
    pub(crate) said: Said,
}

/// The state on which the decisions are based.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Said {
    /// Whether offers were refused because of a cap or because the kernel is closed.
    pub(super) refused: bool,
    pub(super) revives: u64,
    pub(super) version: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Accept {
    pub(crate) agent: String,
    pub(crate) offers: Vec<u32>,
    pub(crate) executors: Vec<Started>,
    pub(crate) refuse: Duration,
}

#[derive(Clone, Debug)]
pub(crate) struct Started {
    pub(crate) number: u64,
    /// Offer, resource and amount, in the order of the offers and their resources.
    pub(crate) pieces: Vec<(u32, u32, Piece)>,
}

impl Model {
    pub(crate) fn offers(&mut self, batch: &[OfferData], now: Timestamp) -> Answer {
        let mut answer = self.answer(batch, now);
        // Offers arrive though nothing can be placed: suppress must be sent again.
        let is_refused = |reason: &Reason| reason.is_cap() || *reason == Reason::Stopping;
        let mut refused = answer.declines.values().any(|(reason, _)| is_refused(reason));
        if !answer.accepts.is_empty() && self.cap_reached().is_some() {
            // The rest of the accepted offers is refused because of the cap, too.
            refused = true;
        }
        self.count_answer(batch, &mut answer, refused);
        answer
    }

    /// Counts the answer to a batch, in which offers were refused for a cap or because the kernel is closed, or not.
    pub(super) fn count_answer(&mut self, batch: &[OfferData], answer: &mut Answer, refused: bool) {
        self.counts.batches += 1;
        self.counts.offers += batch.len() as u64;
        for accept in &answer.accepts {
            self.counts.accepted += accept.offers.len() as u64;
            self.counts.executors += accept.executors.len() as u64;
        }
        for (reason, _) in answer.declines.values() {
            self.count_decline(reason.kind());
        }
        self.demand.refused |= refused;
        answer.said = Said { refused, revives: self.demand.revives, version: self.version };
    }

    /// The reason for which nothing is placed at all, if there is one.
    pub(super) fn reason_for_all(&self) -> Option<Reason> {
        let closed = self.closed.then_some(Reason::Stopping);
        let disconnected = (!self.connected).then_some(Reason::Disconnected);
        closed.or(disconnected).or_else(|| self.cap_reached())
    }

    fn answer(&mut self, batch: &[OfferData], now: Timestamp) -> Answer {
        let mut answer = Answer::default();
        if let Some(reason) = self.reason_for_all() {
            for offer in 0..batch.len() as u32 {
                answer.declines.insert(offer, (reason, self.refusal(reason, now)));
            }
            return answer;
        }
        let mut placement = self.group(batch, now, &mut answer);
        self.note_offered(batch, now);
        for group in &mut placement.groups {
            let second = |at: Timestamp| at.as_millis() / 1000;
            let lately = |failed| second(now.min(CLOCK_MAX)).saturating_sub(second(failed)) <= 300;
            let agent = self.agents.get(group.agent);
            group.comes_last = agent.and_then(|agent| agent.failed).is_some_and(lately);
        }
        placement.place(&mut Batch { model: self, now });
        let cap = self.cap_reached();
        let refuse = &self.setup.refuse;
        let leftover = if cap.is_some() { refuse.reached_cap } else { refuse.other };
        for group in placement.groups {
            let offers: Vec<u32> = group.offers.iter().map(|offer| *offer as u32).collect();
            if group.executors.is_empty() {
                let reason = group.shortage.or(cap).expect("an executor could have been placed");
                let refuse = self.refusal(reason, now);
                answer.declines.extend(offers.into_iter().map(|offer| (offer, (reason, refuse))));
                continue;
            }
            let agent = group.agent.to_owned();
            let executors = group.executors.iter().map(|it| self.started(it)).collect();
            answer.accepts.push(Accept { agent, offers, executors, refuse: leftover });
        }
        answer
    }

    /// The offers by agents and roles. Those that can't be used, whatever they have, are declined.
    pub(super) fn group<'b>(
        &mut self,
        batch: &'b [OfferData],
        now: Timestamp,
        answer: &mut Answer,
    ) -> Placement<'b> {
        let mut placement = Placement::new(self.request());
        for (offer, position) in batch.iter().zip(0u32..) {
            match self.unusable(offer, now) {
                Some(reason) => {
                    answer.declines.insert(position, (reason, self.refusal(reason, now)));
                }
                None if offer.is_permit() => {
                    let resources = offer.entries.iter().map(offered);
                    placement.add_permit(position as usize, offer.role, resources);
                }
                None => {
                    let resources = offer.entries.iter().map(offered);
                    placement.add(position as usize, &offer.agent, offer.role, resources);
                }
            }
        }
        placement
    }

    pub(super) fn request(&self) -> Request {
        Request {
            cores: self.setup.executor_cores,
            memory: self.setup.memory + self.setup.overhead,
            gpus: self.setup.executor_gpus,
            port: self.setup.port,
            revocable: self.setup.revocable,
            consolidate: self.setup.consolidate,
        }
    }

    pub(super) fn started(&self, executor: &naive::Executor) -> Started {
        let scalar =
            |thousandths: u128| Piece::Scalar(Scalar::from_thousandths(thousandths as u64));
        let scalars = executor.pieces.iter().map(|(position, amount)| (*position, scalar(*amount)));
        let ports = executor.port.into_iter().zip(self.setup.port.map(Piece::Port));
        let mut pieces: Vec<_> = scalars
            .chain(ports)
            .map(|((offer, resource), amount)| (offer as u32, resource as u32, amount))
            .collect();
        pieces.sort_by_key(|(offer, resource, _)| (*offer, *resource));
        Started { number: executor.number, pieces }
    }

    /// Why an offer can't be used regardless of its resources, if there is such a reason.
    fn unusable(&mut self, offer_data: &OfferData, now: Timestamp) -> Option<Reason> {
        if offer_data.is_permit() {
            return None;
        }
        if offer_data.id.is_empty() || offer_data.agent.is_empty() {
            return Some(Reason::Malformed);
        }
        if !self.is_candidate(offer_data) {
            let mismatch = offer_data.zone.map_or(Mismatch::Absent, |_| Mismatch::Differs);
            return Some(Reason::ConstraintUnmet(Unmet { condition: 0, mismatch }));
        }
        let agent = self.agents.entry(offer_data.agent.clone()).or_insert_with(|| Agent::met(now));
        agent.met = true;
        agent.known = Known::Yes;
        agent.candidate_at = agent.candidate_at.max(now);
        if let Some(until) = agent.excluded_until.filter(|until| now < *until) {
            return Some(Reason::AgentExcluded { until });
        }
        if now < agent.suspect_until {
            return Some(Reason::AgentSuspect { until: agent.suspect_until });
        }
        (self.on_agent(&offer_data.agent) >= EXECUTORS_PER_AGENT_MAX).then_some(Reason::AgentFull)
    }

    /// Whether the offer is looked at any further: it is whole and meets the constraint.
    pub(super) fn is_candidate(&self, offer_data: &OfferData) -> bool {
        let zones = &self.setup.zones;
        let is_met = zones.is_empty() || offer_data.zone.is_some_and(|zone| zones.contains(&zone));
        is_met && !offer_data.id.is_empty() && !offer_data.agent.is_empty()
    }

    pub(super) fn refusal(&self, reason: Reason, now: Timestamp) -> Duration {
        let refuse = &self.setup.refuse;
        match reason {
            Reason::Stopping => refuse.stopping,
            Reason::ConstraintUnmet(_) => refuse.unmet_constraint,
            Reason::ExecutorLimit { .. } | Reason::CoreCap { .. } | Reason::GpuCap { .. } => {
                refuse.reached_cap
            }
            Reason::AgentExcluded { until } => until.since(now).min(refuse.unmet_constraint),
            Reason::AgentSuspect { until } => until.since(now).min(refuse.other),
            _ => refuse.other,
        }
    }
}

/// The resource in the form of the naive placement.
pub(super) fn offered(entry: &Entry) -> Offered<'_> {
    let amount = match &entry.amount {
        Amount::Scalar(value) => naive::Amount::Scalar(*value),
        Amount::Ports(ranges) => naive::Amount::Ranges(ranges),
    };
    Offered { name: entry.name, role: entry.role, revocability: entry.revocability, amount }
}

/// The model during a batch.
pub(super) struct Batch<'a> {
    pub(super) model: &'a mut Model,
    pub(super) now: Timestamp,
}

impl Caps for Batch<'_> {
    fn room(&self, agent: &str) -> Room {
        let model = &self.model;
        let (executors, cores) = model.totals();
        let is_full = model.on_agent(agent) >= EXECUTORS_PER_AGENT_MAX;
        let executors = model.limit_in_force().saturating_sub(executors);
        Room {
            executors: if is_full { 0 } else { executors },
            cores: model.core_cap().saturating_sub(cores),
            gpus: u64::from(model.setup.gpu_cap).saturating_sub(model.gpus()),
        }
    }

    fn add(&mut self, agent: &str, cores: u64, gpus: u64) -> u64 {
        let model = &mut self.model;
        if let Some(agent) = model.agents.get_mut(agent) {
            // The exclusion has expired; otherwise nothing would be placed here.
            agent.excluded_until = None;
            agent.failed = None;
        }
        let number = model.executors.len() as u64;
        model.executors.push(Executor {
            agent: agent.to_owned(),
            late: agent.is_empty(),
            unwelcome: false,
            cores,
            memory: model.request().memory,
            gpus,
            port: model.setup.port,
            life: Life::Launching,
            placed_at: self.now,
            since: self.now,
            asked_to_end: false,
            doubtful: false,
            adopted: false,
            returned: false,
            tag: None,
        });
        number
    }
}
