//! Placement on offers in the reference model: repeated passes that place one executor at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use offermill::constraint::{Mismatch, Unmet};
use offermill::limits::{EXECUTOR_CORES_MAX, EXECUTORS_PER_AGENT_MAX};
use offermill::resources::{Gpus, Mebibytes, MilliCpus, Scalar};
use offermill::{Amount as Piece, DEFAULT_ROLE, Reason, Revocability, Timestamp};

use super::updates::CLOCK_MAX;
use super::{Agent, Executor, Knowing, Life, Model};
use crate::world::{Amount, Entry, Sheet};

/// The decisions that the kernel must return for a batch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// In the order of their first offers.
    pub(crate) accepts: Vec<Accept>,
    /// By the position of the offer.
    pub(crate) declines: BTreeMap<u32, (Reason, Duration)>,
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

/// The offers of one agent and role, with their remaining resources.
struct Pot {
    agent: String,
    role: &'static str,
    offers: Vec<u32>,
    /// The remaining amount of each resource, in thousandths.
    left: Vec<Vec<u64>>,
    too_small: Option<Reason>,
    /// Whether the agent comes last because an executor failed on it.
    last: bool,
    executors: Vec<Started>,
}

impl Model {
    pub(crate) fn offers(&mut self, batch: &[Sheet], now: Timestamp) -> Answer {
        let mut answer = self.answer(batch, now);
        let mut refused = false;
        self.counts.batches += 1;
        self.counts.offers += batch.len() as u64;
        for accept in &answer.accepts {
            self.counts.accepted += accept.offers.len() as u64;
            self.counts.executors += accept.executors.len() as u64;
        }
        for (reason, _) in answer.declines.values() {
            self.count_decline(reason.kind());
            // Offers arrive though nothing can be placed: suppress must be sent again.
            refused |= reason.is_cap() || *reason == Reason::Stopping;
        }
        if !answer.accepts.is_empty() && self.cap_reached().is_some() {
            // The rest of the accepted offers is refused because of the cap, too.
            refused = true;
        }
        self.demand.refused |= refused;
        answer.said = Said { refused, revives: self.demand.revives, version: self.version };
        answer
    }

    fn answer(&mut self, batch: &[Sheet], now: Timestamp) -> Answer {
        let mut answer = Answer::default();
        let mut decline = |model: &Model, offer: u32, reason: Reason| {
            answer.declines.insert(offer, (reason, model.refusal(reason, now)));
        };
        let closed = self.closed.then_some(Reason::Stopping);
        let disconnected = (!self.connected).then_some(Reason::Disconnected);
        if let Some(reason) = closed.or(disconnected).or_else(|| self.cap_reached()) {
            for offer in 0..batch.len() as u32 {
                decline(self, offer, reason);
            }
            return answer;
        }
        let mut pots: Vec<Pot> = Vec::new();
        for (sheet, position) in batch.iter().zip(0..) {
            match self.unusable(sheet, now) {
                Some(reason) => decline(self, position, reason),
                None => self.add_to_pots(&mut pots, sheet, position),
            }
        }
        for pot in &mut pots {
            let second = |at: Timestamp| at.as_millis() / 1000;
            let lately = |failed| second(now.min(CLOCK_MAX)).saturating_sub(second(failed)) <= 300;
            pot.last = self.agents[&pot.agent].failed.is_some_and(lately);
            pot.too_small = self.too_small(pot, batch);
        }
        while self.pass(&mut pots, batch, now) {}
        let cap = self.cap_reached();
        let refuse = &self.setup.refuse;
        let leftover = if cap.is_some() { refuse.reached_cap } else { refuse.other };
        for pot in pots {
            if pot.executors.is_empty() {
                let reason = pot.too_small.or(cap).expect("an executor could have been placed");
                pot.offers.iter().for_each(|offer| decline(self, *offer, reason));
                continue;
            }
            let Pot { agent, offers, executors, .. } = pot;
            answer.accepts.push(Accept { agent, offers, executors, refuse: leftover });
        }
        answer
    }

    /// Why an offer can't be used regardless of its resources, if there is such a reason.
    fn unusable(&mut self, sheet: &Sheet, now: Timestamp) -> Option<Reason> {
        if sheet.id.is_empty() || sheet.agent.is_empty() {
            return Some(Reason::Malformed);
        }
        let zones = &self.setup.zones;
        if !zones.is_empty() && !sheet.zone.is_some_and(|zone| zones.contains(&zone)) {
            let mismatch = sheet.zone.map_or(Mismatch::Absent, |_| Mismatch::Differs);
            return Some(Reason::ConstraintUnmet(Unmet { condition: 0, mismatch }));
        }
        let agent = self.agents.entry(sheet.agent.clone()).or_insert_with(|| Agent::met(now));
        agent.knowing = Knowing::Yes;
        agent.candidate_at = agent.candidate_at.max(now);
        if let Some(until) = agent.excluded_until.filter(|until| now < *until) {
            return Some(Reason::AgentExcluded { until });
        }
        if now < agent.suspect_until {
            return Some(Reason::AgentSuspect { until: agent.suspect_until });
        }
        (self.on_agent(&sheet.agent) >= EXECUTORS_PER_AGENT_MAX).then_some(Reason::AgentFull)
    }

    fn refusal(&self, reason: Reason, now: Timestamp) -> Duration {
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

    /// Which resource of an untouched pot doesn't suffice for one executor, if there is one.
    fn too_small(&self, pot: &Pot, batch: &[Sheet]) -> Option<Reason> {
        let cpus = pot.most("cpus", batch);
        if cpus < self.cores_at_least() {
            let asked = MilliCpus::from_millis(self.cores_at_least());
            return Some(Reason::Cpus { asked, offered: MilliCpus::from_millis(cpus) });
        }
        let (asked, offered) = (self.memory_taken(), pot.most("mem", batch) / 1000);
        if offered < asked {
            let (asked, offered) = (Mebibytes::new(asked), Mebibytes::new(offered));
            return Some(Reason::Memory { asked, offered });
        }
        let (asked, offered) = (self.setup.executor_gpus.unwrap_or(0), pot.whole_gpus(batch));
        if offered < asked {
            return Some(Reason::Gpus { asked: Gpus::new(asked), offered: Gpus::new(offered) });
        }
        let port = self.setup.port.filter(|port| self.find_port(pot, *port, batch).is_none());
        port.map(|port| Reason::Port { port })
    }

    fn memory_taken(&self) -> u64 {
        self.setup.memory + self.setup.overhead
    }

    /// Makes one pass over the pots. Returns whether any executor was placed.
    fn pass(&mut self, pots: &mut [Pot], batch: &[Sheet], now: Timestamp) -> bool {
        let mut placed = false;
        for last in [false, true] {
            for pot in pots.iter_mut().filter(|pot| pot.last == last) {
                while self.place(pot, batch, now) {
                    placed = true;
                    if !self.setup.consolidate {
                        break;
                    }
                }
            }
        }
        placed
    }

    /// Places one executor on a pot if its resources and the caps allow it.
    fn place(&mut self, pot: &mut Pot, batch: &[Sheet], now: Timestamp) -> bool {
        let first = pot.executors.is_empty();
        let cpus = pot.most("cpus", batch);
        let full = cpus < self.cores_at_least()
            || pot.most("mem", batch) / 1000 < self.memory_taken()
            || pot.whole_gpus(batch) < self.setup.executor_gpus.unwrap_or(0)
            || self.setup.executor_cores.is_none() && !first
            || self.setup.port.is_some() && !first;
        if pot.too_small.is_some() || full || self.cap_reached().is_some() {
            return false;
        }
        if self.on_agent(&pot.agent) >= EXECUTORS_PER_AGENT_MAX {
            return false;
        }
        let cores = self.setup.executor_cores.unwrap_or_else(|| {
            let left = self.core_cap() - self.totals().1;
            cpus.min(left).min(EXECUTOR_CORES_MAX.millis()) / 1000 * 1000
        });
        let gpus = match self.setup.executor_gpus {
            Some(gpus) => u64::from(gpus),
            None if first => {
                let left = u64::from(self.setup.gpu_cap).saturating_sub(self.gpus());
                left.min(u64::from(pot.whole_gpus(batch)))
            }
            None => 0,
        };
        let mut pieces = Vec::new();
        pot.take("cpus", cores, batch, &mut pieces);
        pot.take("mem", self.memory_taken() * 1000, batch, &mut pieces);
        pot.take("gpus", gpus * 1000, batch, &mut pieces);
        let port = self.setup.port;
        pieces.extend(port.and_then(|port| self.find_port(pot, port, batch)));
        pieces.sort_by_key(|piece| (piece.0, piece.1));
        pot.executors.push(Started { number: self.executors.len() as u64, pieces });
        if let Some(agent) = self.agents.get_mut(&pot.agent) {
            // The exclusion has expired; otherwise nothing would be placed here.
            agent.excluded_until = None;
            agent.failed = None;
        }
        self.executors.push(Executor {
            agent: pot.agent.clone(),
            cores,
            memory: self.memory_taken(),
            gpus,
            port,
            life: Life::Launching,
            placed_at: now,
            since: now,
            asked_to_end: false,
            doubtful: false,
            adopted: false,
            returned: false,
        });
        true
    }
}

impl Model {
    fn add_to_pots(&self, pots: &mut Vec<Pot>, sheet: &Sheet, position: u32) {
        let there = |entry| if self.open(entry, sheet.role) { thousandths(entry) } else { 0 };
        let left = sheet.entries.iter().map(there).collect();
        let same = |pot: &&mut Pot| pot.agent == sheet.agent && pot.role == sheet.role;
        match pots.iter_mut().find(same) {
            Some(pot) => {
                pot.offers.push(position);
                pot.left.push(left);
            }
            None => pots.push(Pot {
                agent: sheet.agent.clone(),
                role: sheet.role,
                offers: vec![position],
                left: vec![left],
                too_small: None,
                last: false,
                executors: Vec::new(),
            }),
        }
    }

    /// Whether an entry of an offer to `role` may be used.
    fn open(&self, entry: &Entry, role: &str) -> bool {
        let asked = match entry.standing {
            Revocability::Firm => true,
            Revocability::Revocable => self.setup.revocable,
            _ => false,
        };
        let above = format!("{}/", entry.role);
        let ours = [DEFAULT_ROLE, role].contains(&entry.role) || role.starts_with(&above);
        asked && (ours || role == DEFAULT_ROLE)
    }

    fn find_port(&self, pot: &Pot, port: u16, batch: &[Sheet]) -> Option<(u32, u32, Piece)> {
        let all = pot.resources(batch).into_iter();
        let mut with_port = all.filter(|(.., entry)| {
            let Amount::Ports(ranges) = &entry.amount else { return false };
            let inside = ranges.iter().any(|r| (r.begin..=r.end).contains(&u64::from(port)));
            inside && entry.name == "ports" && self.open(entry, pot.role)
        });
        let (offer, _, place, _) = with_port.next()?;
        Some((offer, place as u32, Piece::Port(port)))
    }
}

/// The usable amount of a scalar, in thousandths; of GPUs only whole ones.
fn thousandths(entry: &Entry) -> u64 {
    let Amount::Scalar(value) = entry.amount else { return 0 };
    let thousandths = Scalar::from_f64_lenient(value).thousandths();
    if entry.name == "gpus" { thousandths / 1000 * 1000 } else { thousandths }
}

impl Pot {
    /// Returns every resource with its positions in the batch and in `left`: non-revocable before revocable, and within
    /// each, reserved before unreserved.
    fn resources<'b>(&self, batch: &'b [Sheet]) -> Vec<(u32, usize, usize, &'b Entry)> {
        let mut all = Vec::new();
        for (index, offer) in self.offers.iter().enumerate() {
            for (place, entry) in batch[*offer as usize].entries.iter().enumerate() {
                all.push((*offer, index, place, entry));
            }
        }
        let unreserved = |entry: &Entry| entry.role == DEFAULT_ROLE;
        all.sort_by_key(|(.., entry)| (is_revocable(entry), unreserved(entry)));
        all
    }

    fn sum(&self, name: &str, revocable: bool, batch: &[Sheet]) -> u64 {
        let all = self.resources(batch).into_iter();
        let named =
            all.filter(|(.., entry)| entry.name == name && is_revocable(entry) == revocable);
        named.fold(0, |sum, (_, index, place, _)| sum + self.left[index][place])
    }

    /// The maximum that one executor can take. It can't mix revocable and other resources.
    fn most(&self, name: &str, batch: &[Sheet]) -> u64 {
        self.sum(name, false, batch).max(self.sum(name, true, batch))
    }

    fn whole_gpus(&self, batch: &[Sheet]) -> u32 {
        u32::try_from(self.most("gpus", batch) / 1000).unwrap_or(u32::MAX)
    }

    fn take(
        &mut self,
        name: &str,
        mut wanted: u64,
        batch: &[Sheet],
        pieces: &mut Vec<(u32, u32, Piece)>,
    ) {
        let revocable = self.sum(name, false, batch) < wanted;
        for (offer, index, place, entry) in self.resources(batch) {
            let left = &mut self.left[index][place];
            let fits = entry.name == name && is_revocable(entry) == revocable;
            let taken = if fits { wanted.min(*left) } else { 0 };
            if taken > 0 {
                *left -= taken;
                wanted -= taken;
                let amount = Piece::Scalar(Scalar::from_thousandths(taken));
                pieces.push((offer, place as u32, amount));
            }
        }
        assert_eq!(wanted, 0, "the reference takes more than is offered");
    }
}

fn is_revocable(entry: &Entry) -> bool {
    entry.standing == Revocability::Revocable
}
