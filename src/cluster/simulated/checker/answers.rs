//! Checks answers to offers: invariants 4, 5, 6, 8, 16, 17 and 18.

use std::collections::BTreeMap;

use super::expected_cluster::{ExpectedAgent, ExpectedCluster};
use super::rule::RuleViolation;
use crate::cluster::simulated::scenario::Scenario;
use crate::cluster::simulated::settings::FrameworkSettings;
use crate::cluster::simulated::wire::{AgentRef, Amounts, SimOffer, offer_number};
use crate::engine::cluster_manager::{Accept, Launch};
use crate::kernel::{Amount, Decisions};
use crate::offer::{Offer, Value};
use crate::resources::MilliCpus;
use crate::time::Timestamp;

/// The circumstances in which a batch was decided.
pub(super) struct BatchConditions {
    pub(super) settings: FrameworkSettings,
    pub(super) now: Timestamp,
    /// The number of changes of the settings before.
    pub(super) changes: u64,
    /// Whether the kernel was closed.
    pub(super) closed: bool,
}

/// The batch that a handler answers.
pub(super) struct AnswerChecker {
    executor_memory: u64,
    executor_gpus: u64,
    fixed_port: bool,
    /// Whether executors are equal, so that agents take turns.
    takes_turns: bool,
    context: BatchConditions,
    /// Whether offers were refused because nothing more could be placed.
    refused: bool,
    /// The offers that have no answer yet.
    open: BTreeMap<u64, SimOffer>,
    /// The number of executors placed on permits.
    placed_late: u64,
    /// The offers of each agent, and the executors placed there.
    agents: BTreeMap<AgentRef, AgentOffers>,
}

/// One agent's offers in a batch.
#[derive(Default)]
struct AgentOffers {
    offered: Amounts,
    zone: u32,
    placed: u64,
    /// The state of the agent when the batch was decided: until when nothing may be placed, and whether an executor
    /// failed there.
    excluded_until: Timestamp,
    suspect_until: Timestamp,
    failed: bool,
}

impl AnswerChecker {
    pub(super) fn new(scenario: &Scenario) -> AnswerChecker {
        AnswerChecker {
            executor_memory: scenario.memory_taken().get() * 1000,
            executor_gpus: u64::from(scenario.executor_gpus) * 1000,
            fixed_port: scenario.fixed_port,
            takes_turns: !scenario.tasks,
            context: BatchConditions {
                settings: FrameworkSettings::of(scenario),
                now: Timestamp::ORIGIN,
                changes: 0,
                closed: false,
            },
            refused: false,
            open: BTreeMap::new(),
            placed_late: 0,
            agents: BTreeMap::new(),
        }
    }

    pub(super) fn begin(
        &mut self,
        batch: &[SimOffer],
        context: BatchConditions,
        expected_cluster: &ExpectedCluster,
    ) {
        self.context = context;
        self.refused = false;
        self.open = batch.iter().map(|offer| (offer.number, *offer)).collect();
        self.agents.clear();
        self.placed_late = 0;
        for offer in batch.iter().filter(|offer| !offer.is_late) {
            let agent = self.agents.entry(offer.agent);
            let group =
                agent.or_insert_with(|| AgentOffers::new(expected_cluster.agent(offer.agent)));
            group.offered.add(&offer.amounts);
            group.zone = offer.zone;
        }
    }

    fn record_answer(&mut self, id: &str) -> Result<SimOffer, RuleViolation> {
        let open = offer_number(id).and_then(|number| self.open.remove(&number));
        open.ok_or_else(|| (6, format!("offer {id} is answered twice, or was never made")))
    }

    pub(super) fn declined<'a>(
        &mut self,
        mut offers: impl Iterator<Item = &'a str>,
    ) -> Result<(), RuleViolation> {
        offers.try_for_each(|id| self.record_answer(id).map(drop))
    }

    pub(super) fn accepted(&mut self, accept: &Accept<'_>) -> Result<(), RuleViolation> {
        if self.context.closed {
            return Err((23, "offers are accepted after the close".to_owned()));
        }
        if let ([permit], "") = (accept.offers, accept.agent_id) {
            return self.permit_accepted(permit, accept);
        }
        let Some(agent) = AgentRef::parse(accept.agent_id) else {
            return Err((8, format!("no agent is called {}", accept.agent_id)));
        };
        for offer in accept.offers {
            let made = self.record_answer(offer.id)?;
            if made.agent != agent || offer.role != accept.offers[0].role {
                return Err((8, format!("offer {} is not of agent {}", offer.id, accept.agent_id)));
            }
        }
        check_resources(accept)?;
        let group = self.agents.entry(agent).or_default();
        group.placed += accept.executors.len() as u64;
        if !self.context.settings.allows_zone(group.zone) {
            return Err((17, format!("an executor on {agent}, in zone z{}", group.zone)));
        }
        let excluded = group.excluded_until;
        let suspect = group.suspect_until;
        if self.context.now < excluded {
            return Err((16, format!("an executor on {agent}, excluded until {excluded}")));
        }
        if self.context.now < suspect {
            return Err((16, format!("an executor on {agent}, suspect until {suspect}")));
        }
        Ok(())
    }

    /// Checks the executor of a permit.
    fn permit_accepted(
        &mut self,
        permit: &Offer<'_>,
        accept: &Accept<'_>,
    ) -> Result<(), RuleViolation> {
        let made = self.record_answer(permit.id)?;
        let executors = accept.executors.len();
        if !made.is_late || executors != 1 {
            return Err((8, format!("{executors} executors on {} without an agent", permit.id)));
        }
        self.placed_late += 1;
        check_resources(accept)
    }

    /// Checks at the end of a batch that all offers were answered, and that no agent got two executors more than
    /// another agent that had resources for one more.
    pub(super) fn end(&mut self, decisions: &Decisions) -> Result<(), RuleViolation> {
        let open = std::mem::take(&mut self.open);
        if let Some(number) = open.keys().next() {
            return Err((6, format!("offer O{number} is not answered")));
        }
        let placed: u64 = self.agents.values().map(|group| group.placed).sum();
        let placed = placed + self.placed_late;
        if placed != decisions.executors() as u64 {
            return Err((
                6,
                format!("{placed} executors in calls, {} context", decisions.executors()),
            ));
        }
        if self.context.settings.executor_cores == MilliCpus::ZERO || !self.takes_turns {
            return Ok(());
        }
        let eligible = self.agents.values().filter(|group| !group.failed);
        let most = eligible.map(|group| group.placed).max().unwrap_or(0);
        for (agent, group) in &self.agents {
            let is_barred =
                group.failed || self.context.now < group.excluded_until.max(group.suspect_until);
            let is_able = !is_barred
                && self.context.settings.allows_zone(group.zone)
                && self.fits_one_more(group);
            if is_able && group.placed + 2 <= most {
                let few = group.placed;
                return Err((18, format!("agent {agent} got {few} executors, another {most}")));
            }
        }
        Ok(())
    }

    /// The time at which the batch was decided.
    pub(super) fn now(&self) -> Timestamp {
        self.context.now
    }

    /// Whether offers of the batch were refused because no more executors could be placed, at the commit or `now`.
    pub(super) fn refused(&mut self, now: bool) -> bool {
        self.refused |= now;
        self.refused
    }

    /// The number of changes of the settings before the batch was decided.
    pub(super) fn changes(&self) -> u64 {
        self.context.changes
    }

    fn fits_one_more(&self, group: &AgentOffers) -> bool {
        let times = group.placed + 1;
        group.offered.of("cpus") >= times * self.context.settings.executor_cores.millis()
            && group.offered.of("mem") >= times * self.executor_memory
            && group.offered.of("gpus") >= times * self.executor_gpus
            && (!self.fixed_port || group.offered.port && group.placed == 0)
    }
}

impl AgentOffers {
    fn new(agent: Option<&ExpectedAgent>) -> AgentOffers {
        agent.map_or_else(AgentOffers::default, |known| AgentOffers {
            excluded_until: known.excluded_until,
            suspect_until: known.suspect_until,
            failed: known.failed,
            ..AgentOffers::default()
        })
    }
}

/// Checks that the executors' resources are within their offers, piece by piece, and that the pieces add up to the
/// executors' totals.
fn check_resources(accept: &Accept<'_>) -> Result<(), RuleViolation> {
    let mut remaining: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for resource in accept.offers.iter().flat_map(|offer| offer.resources) {
        if let Value::Scalar(amount) = resource.value {
            *remaining.entry((resource.name, resource.role())).or_default() += amount.thousandths();
        }
    }
    let mut ports = Vec::new();
    for launch in accept.executors {
        let mut cpus = 0;
        let mut memory = 0;
        let mut gpus = 0;
        let mut port = None;
        for piece in &launch.pieces {
            let kind = (piece.resource.name, piece.resource.role());
            match piece.amount {
                Amount::Scalar(amount) => {
                    let taken = amount.thousandths();
                    let there = remaining.get_mut(&kind).filter(|there| **there >= taken);
                    let Some(there) = there else {
                        return Err((
                            4,
                            format!("{taken} thousandths of {kind:?} are not offered"),
                        ));
                    };
                    *there -= taken;
                    cpus += if kind.0 == "cpus" { taken } else { 0 };
                    memory += if kind.0 == "mem" { taken } else { 0 };
                    gpus += if kind.0 == "gpus" { taken } else { 0 };
                }
                Amount::Port(number) => {
                    if ports.contains(&number) || !offers_port(accept.offers, number) {
                        return Err((4, format!("port {number} is not offered, or taken twice")));
                    }
                    ports.push(number);
                    port = Some(number);
                }
            }
        }
        let whole = |amount: u64| amount * 1000;
        let totals = (
            launch.resources.cores.millis(),
            whole(launch.resources.memory.get()),
            whole(launch.resources.gpus.get().into()),
            launch.resources.port,
        );
        if totals != (cpus, memory, gpus, port) {
            return Err((
                5,
                format!("{} is launched with {totals:?}: {}", launch.executor, describe(launch)),
            ));
        }
    }
    Ok(())
}

fn offers_port(offers: &[&Offer<'_>], number: u16) -> bool {
    let mut resources = offers.iter().flat_map(|offer| offer.resources);
    resources.any(|resource| match resource.value {
        Value::Ranges(ranges) => ranges.iter().any(|range| range.contains(number.into())),
        _ => false,
    })
}

fn describe(launch: &Launch<'_>) -> String {
    let pieces =
        launch.pieces.iter().map(|piece| format!("{:?} of {}", piece.amount, piece.resource.name));
    pieces.collect::<Vec<_>>().join(", ")
}
