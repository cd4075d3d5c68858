//! The baseline: a plain loop on one thread that makes the kernel's decisions on the benches' offers.
//!
//! It is as fast as a single-threaded loop can be: no atomics, fields instead of words, and a table from an agent's id
//! to all that is known of the agent. It has the kernel's own table, hash and memo of the constraint's answers, so that
//! the difference is what the kernel adds: sharing, and what the benches' offers don't ask for. The loop leaves that
//! out: GPUs, ports, executors without a size, several offers of one agent in a batch, failures that exclude only
//! together, unreachable executors, shutdown, change of policy. Each of these costs the kernel at least a test.
//!
//! The naive placement of the tests (`tests/support/placement/naive.rs`) is another one on purpose: it recomputes every
//! amount, which a fair baseline must not do. [`super::agreement`] proves that the loop decides as the kernel does.

mod agents;
mod drain;
mod picture;
mod rows;
mod updates;

use std::time::Duration;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use offermill::config::{ExecutorCores, RefuseDurations};
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{
    Config, Constraint, Decline, Offer, Reason, ReasonKind, ResourceKind, Revocability, Timestamp,
    Value,
};

use agents::Agents;
use rows::{Accept, cut};
pub(crate) use rows::{Answer, Placed};
pub(crate) use updates::UpdateOutcome;

/// What the texts of executors' ids begin with.
const ID_PREFIX: &str = "bench-plain-";

/// The loop's state: a scheduler.
pub(crate) struct Plain {
    constraint: Constraint,
    cores_each: u64,
    memory_each: u64,
    cap: MilliCpus,
    refuse: RefuseDurations,
    id_prefix: String,
    agents: Agents,
    executors: Vec<Executor>,
    free: Vec<u32>,
    /// Where executors are by their numbers, if ids are no more than those.
    by_number: Option<HashMap<u64, u32, RandomState>>,
    next_sequence: u64,
    live: u32,
    acquired: u64,
    counts: Counts,
    candidates: Vec<Candidate>,
    order: Vec<u32>,
}

struct Executor {
    sequence: u64,
    agent: u32,
    cores: u64,
    memory: u64,
    live: bool,
    running: bool,
}

#[derive(Default)]
struct Counts {
    offers: u64,
    accepted: u64,
    executors: u64,
    /// Updates about executors that were never started here.
    unknown_updates: u64,
    declined: [u64; ReasonKind::ALL.len()],
}

struct Candidate {
    offer: u32,
    agent: u32,
    room: u32,
    placed: u32,
    start: u32,
}

impl Plain {
    /// What the settings say; those that they keep to themselves are told again.
    ///
    /// # Panics
    /// When the settings are others than the benches'.
    pub(crate) fn new(config: &Config, constraint: &str, cap: MilliCpus) -> Plain {
        let ExecutorCores::Fixed(cores) = config.executor_cores() else {
            unreachable!("executors have a size");
        };
        Plain {
            constraint: Constraint::parse(constraint).expect("a constraint"),
            cores_each: cores.millis(),
            memory_each: config.memory_taken().get(),
            cap,
            refuse: config.refuse_durations(),
            id_prefix: ID_PREFIX.to_owned(),
            agents: Agents::default(),
            executors: Vec::new(),
            free: Vec::new(),
            by_number: None,
            next_sequence: 0,
            live: 0,
            acquired: 0,
            counts: Counts::default(),
            candidates: Vec::new(),
            order: Vec::new(),
        }
    }

    /// The same, with the plain numbers as ids.
    pub(crate) fn numbered(self) -> Plain {
        Plain { by_number: Some(HashMap::default()), ..self }
    }

    /// Answers a batch.
    pub(crate) fn answer(&mut self, offers: &[Offer<'_>], now: Timestamp, answer: &mut Answer) {
        answer.clear();
        self.counts.offers += offers.len() as u64;
        if let Some(reason) = self.cap_reached() {
            let refuse = self.refuse.reached_cap;
            let all = (0..offers.len() as u32).map(|offer| Decline::new(offer, reason, refuse));
            answer.declines.extend(all);
            self.counts.declined[ReasonKind::CoreCap as usize] += offers.len() as u64;
            return;
        }
        self.candidates.clear();
        for (offer, position) in offers.iter().zip(0u32..) {
            match self.candidate(offer, position, now) {
                Ok(candidate) => self.candidates.push(candidate),
                Err((reason, refuse)) => self.decline(position, reason, refuse, answer),
            }
        }
        self.place(answer);
        self.write_out(offers, answer);
    }

    fn cap_reached(&self) -> Option<Reason> {
        let asked = MilliCpus::from_millis(self.cores_each);
        let acquired = MilliCpus::from_millis(self.acquired);
        let reached = self.acquired + self.cores_each > self.cap.millis();
        reached.then_some(Reason::CoreCap { cap: self.cap, acquired, asked })
    }

    fn decline(&mut self, offer: u32, reason: Reason, refuse: Duration, answer: &mut Answer) {
        self.counts.declined[reason.kind() as usize] += 1;
        answer.declines.push(Decline::new(offer, reason, refuse));
    }

    fn candidate(
        &mut self,
        offer: &Offer<'_>,
        position: u32,
        now: Timestamp,
    ) -> Result<Candidate, (Reason, Duration)> {
        if offer.id.is_empty() || offer.agent_id.is_empty() {
            return Err((Reason::Malformed, self.refuse.other));
        }
        let agent = self
            .agents
            .meeting(&self.constraint, offer, now)
            .map_err(|unmet| (Reason::ConstraintUnmet(unmet), self.refuse.unmet_constraint))?;
        let until = self.agents.accounts[agent as usize].excluded_until;
        if until > now {
            let refuse = until.since(now).min(self.refuse.unmet_constraint);
            return Err((Reason::AgentExcluded { until }, refuse));
        }
        let (mut cpus, mut memory) = (0u64, 0u64);
        for resource in offer.resources {
            let sum = match resource.kind {
                ResourceKind::Cpus => &mut cpus,
                ResourceKind::Memory => &mut memory,
                _ => continue,
            };
            if let Value::Scalar(scalar) = resource.value
                && resource.revocability == Revocability::NonRevocable
            {
                *sum = sum.saturating_add(scalar.thousandths());
            }
        }
        let by_cores = cpus / self.cores_each;
        if by_cores == 0 {
            let asked = MilliCpus::from_millis(self.cores_each);
            let offered = MilliCpus::from_millis(cpus);
            return Err((Reason::Cpus { asked, offered }, self.refuse.other));
        }
        let by_memory = memory / 1000 / self.memory_each;
        if by_memory == 0 {
            let asked = Mebibytes::new(self.memory_each);
            let offered = Mebibytes::new(memory / 1000);
            return Err((Reason::Memory { asked, offered }, self.refuse.other));
        }
        let room = by_cores.min(by_memory) as u32;
        Ok(Candidate { offer: position, agent, room, placed: 0, start: 0 })
    }

    /// Passes over the candidates, one executor each, until a pass places none; then takes what was placed.
    fn place(&mut self, answer: &mut Answer) {
        self.order.clear();
        let mut budget = (self.cap.millis() - self.acquired) / self.cores_each;
        loop {
            let before = self.order.len();
            for (candidate, at) in self.candidates.iter_mut().zip(0u32..) {
                if candidate.placed < candidate.room && budget > 0 {
                    candidate.placed += 1;
                    budget -= 1;
                    self.order.push(at);
                }
            }
            if self.order.len() == before {
                break;
            }
        }
        let mut rows = 0;
        for candidate in &mut self.candidates {
            candidate.start = rows;
            rows += std::mem::take(&mut candidate.placed);
        }
        answer.placed.resize(rows as usize, Placed::default());
        for at in &self.order {
            let candidate = &mut self.candidates[*at as usize];
            let executor = Executor {
                sequence: self.next_sequence,
                agent: candidate.agent,
                cores: self.cores_each,
                memory: self.memory_each,
                live: true,
                running: false,
            };
            let slot = match self.free.pop() {
                Some(slot) => {
                    self.executors[slot as usize] = executor;
                    slot
                }
                None => {
                    self.executors.push(executor);
                    self.executors.len() as u32 - 1
                }
            };
            answer.placed[(candidate.start + candidate.placed) as usize] = Placed {
                sequence: self.next_sequence,
                slot,
                cores: MilliCpus::from_millis(self.cores_each),
                memory: Mebibytes::new(self.memory_each),
                pieces: (0, 0),
            };
            candidate.placed += 1;
            if let Some(by_number) = &mut self.by_number {
                by_number.insert(self.next_sequence, slot);
            }
            self.next_sequence += 1;
            self.agents.accounts[candidate.agent as usize].executors += 1;
        }
        self.live += rows;
        self.acquired += u64::from(rows) * self.cores_each;
        self.counts.executors += u64::from(rows);
    }

    fn write_out(&mut self, offers: &[Offer<'_>], answer: &mut Answer) {
        let closing = self.cap_reached();
        let refuse = if closing.is_some() { self.refuse.reached_cap } else { self.refuse.other };
        answer.leftover_refuse = refuse;
        for candidate in &self.candidates {
            if candidate.placed == 0 {
                // Nothing but a cap keeps an executor from a candidate.
                let reason = closing.unwrap_or(Reason::Contended);
                self.counts.declined[reason.kind() as usize] += 1;
                answer.declines.push(Decline::new(candidate.offer, reason, refuse));
                continue;
            }
            let offer = &offers[candidate.offer as usize];
            let placed = (candidate.start, candidate.start + candidate.placed);
            let rows = &mut answer.placed[placed.0 as usize..placed.1 as usize];
            for (row, before) in rows.iter_mut().zip(0u64..) {
                let start = answer.pieces.len() as u32;
                let cuts = [
                    (ResourceKind::Cpus, self.cores_each),
                    (ResourceKind::Memory, self.memory_each * 1000),
                ];
                for (kind, each) in cuts {
                    cut(offer, candidate.offer, kind, before * each, each, &mut answer.pieces);
                }
                row.pieces = (start, answer.pieces.len() as u32);
            }
            answer.accepts.push(Accept { offer: candidate.offer, placed });
            self.counts.accepted += 1;
        }
    }
}
