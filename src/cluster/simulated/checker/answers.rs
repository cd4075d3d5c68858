//! Answers to offers: rules 4, 5, 6, 8, 16, 17 and 18.

use std::collections::BTreeMap;

use super::Finding;
use super::ledger::{Agent, Ledger};
use crate::cluster::simulated::framework::Settings;
use crate::cluster::simulated::scenario::Scenario;
use crate::cluster::simulated::wire::{AgentRef, Amounts, SimOffer, offer_number};
use crate::engine::cluster_manager::{Accept, Launch};
use crate::kernel::{Amount, Decisions};
use crate::offer::{Offer, Value};
use crate::resources::MilliCpus;
use crate::time::Timestamp;

/// When and under what a batch was decided.
pub(super) struct Decided {
    pub(super) settings: Settings,
    pub(super) now: Timestamp,
    /// How often the settings had been changed.
    pub(super) changes: u64,
    /// Whether the kernel was closed.
    pub(super) closed: bool,
}

/// The batch at hand.
pub(super) struct Answers {
    executor_memory: u64,
    executor_gpus: u64,
    fixed_port: bool,
    decided: Decided,
    /// Whether offers were refused because nothing more could be placed.
    refused: bool,
    /// What each offer is still to get: an answer.
    open: BTreeMap<u64, SimOffer>,
    /// By agent: what is offered, how many executors it got, and whether it may have any.
    agents: BTreeMap<AgentRef, Group>,
}

#[derive(Default)]
struct Group {
    offered: Amounts,
    zone: u32,
    placed: u64,
    /// Until when nothing may be placed, as known when the batch was decided, and whether an executor failed there.
    excluded_until: Timestamp,
    suspect_until: Timestamp,
    failed: bool,
}

impl Answers {
    pub(super) fn new(scenario: &Scenario) -> Answers {
        Answers {
            executor_memory: scenario.memory_taken().get() * 1000,
            executor_gpus: u64::from(scenario.executor_gpus) * 1000,
            fixed_port: scenario.fixed_port,
            decided: Decided {
                settings: Settings::of(scenario),
                now: Timestamp::ORIGIN,
                changes: 0,
                closed: false,
            },
            refused: false,
            open: BTreeMap::new(),
            agents: BTreeMap::new(),
        }
    }

    pub(super) fn begin(&mut self, batch: &[SimOffer], decided: Decided, ledger: &Ledger) {
        (self.decided, self.refused) = (decided, false);
        self.open = batch.iter().map(|offer| (offer.number, *offer)).collect();
        self.agents.clear();
        for offer in batch {
            let group = self.agents.entry(offer.agent);
            let group = group.or_insert_with(|| Group::of(ledger.agent(offer.agent)));
            group.offered.add(&offer.amounts);
            group.zone = offer.zone;
        }
    }

    fn answered(&mut self, id: &str) -> Result<SimOffer, Finding> {
        let open = offer_number(id).and_then(|number| self.open.remove(&number));
        open.ok_or_else(|| (6, format!("offer {id} is answered twice, or was never made")))
    }

    pub(super) fn declined<'a>(
        &mut self,
        mut offers: impl Iterator<Item = &'a str>,
    ) -> Result<(), Finding> {
        offers.try_for_each(|id| self.answered(id).map(drop))
    }

    pub(super) fn accepted(&mut self, accept: &Accept<'_>) -> Result<(), Finding> {
        if self.decided.closed {
            return Err((23, "offers are accepted after the close".to_owned()));
        }
        let Some(agent) = AgentRef::parse(accept.agent_id) else {
            return Err((8, format!("no agent is called {}", accept.agent_id)));
        };
        for offer in accept.offers {
            let made = self.answered(offer.id)?;
            if made.agent != agent || offer.role != accept.offers[0].role {
                return Err((8, format!("offer {} is not of agent {}", offer.id, accept.agent_id)));
            }
        }
        within(accept)?;
        let group = self.agents.entry(agent).or_default();
        group.placed += accept.executors.len() as u64;
        if !self.decided.settings.allow(group.zone) {
            return Err((17, format!("an executor on {agent}, in zone z{}", group.zone)));
        }
        let (excluded, suspect) = (group.excluded_until, group.suspect_until);
        if self.decided.now < excluded {
            return Err((16, format!("an executor on {agent}, excluded until {excluded}")));
        }
        if self.decided.now < suspect {
            return Err((16, format!("an executor on {agent}, suspect until {suspect}")));
        }
        Ok(())
    }

    /// All were answered; no agent got two more executors than another that could have had one more.
    pub(super) fn end(&mut self, decisions: &Decisions) -> Result<(), Finding> {
        let open = std::mem::take(&mut self.open);
        if let Some(number) = open.keys().next() {
            return Err((6, format!("offer O{number} is not answered")));
        }
        let placed: u64 = self.agents.values().map(|group| group.placed).sum();
        if placed != decisions.executors() as u64 {
            return Err((
                6,
                format!("{placed} executors in calls, {} decided", decisions.executors()),
            ));
        }
        if self.decided.settings.executor_cores == MilliCpus::ZERO {
            return Ok(());
        }
        let most = self.agents.values().filter(|group| !group.failed);
        let most = most.map(|group| group.placed).max().unwrap_or(0);
        for (agent, group) in &self.agents {
            let barred =
                group.failed || self.decided.now < group.excluded_until.max(group.suspect_until);
            let able =
                !barred && self.decided.settings.allow(group.zone) && self.fits_one_more(group);
            if able && group.placed + 2 <= most {
                let few = group.placed;
                return Err((18, format!("agent {agent} got {few} executors, another {most}")));
            }
        }
        Ok(())
    }

    /// By which clock the batch is answered.
    pub(super) fn now(&self) -> Timestamp {
        self.decided.now
    }

    /// Whether offers were refused because nothing more could be placed: then, or `now`.
    pub(super) fn refused(&mut self, now: bool) -> bool {
        self.refused |= now;
        self.refused
    }

    /// How often the settings had been changed then.
    pub(super) fn changes(&self) -> u64 {
        self.decided.changes
    }

    fn fits_one_more(&self, group: &Group) -> bool {
        let times = group.placed + 1;
        group.offered.of("cpus") >= times * self.decided.settings.executor_cores.millis()
            && group.offered.of("mem") >= times * self.executor_memory
            && group.offered.of("gpus") >= times * self.executor_gpus
            && (!self.fixed_port || group.offered.port && group.placed == 0)
    }
}

impl Group {
    fn of(agent: Option<&Agent>) -> Group {
        agent.map_or_else(Group::default, |known| Group {
            excluded_until: known.excluded_until,
            suspect_until: known.suspect_until,
            failed: known.failed,
            ..Group::default()
        })
    }
}

/// What the executors take is within what their offers have, piece by piece, and is what they are said to take.
fn within(accept: &Accept<'_>) -> Result<(), Finding> {
    let mut left: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for resource in accept.offers.iter().flat_map(|offer| offer.resources) {
        if let Value::Scalar(amount) = resource.value {
            *left.entry((resource.name, resource.role())).or_default() += amount.thousandths();
        }
    }
    let mut ports = Vec::new();
    for launch in accept.executors {
        let (mut cpus, mut memory, mut gpus, mut port) = (0, 0, 0, None);
        for piece in &launch.pieces {
            let kind = (piece.resource.name, piece.resource.role());
            match piece.amount {
                Amount::Scalar(amount) => {
                    let taken = amount.thousandths();
                    let there = left.get_mut(&kind).filter(|there| **there >= taken);
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
        let told = (
            launch.resources.cores.millis(),
            whole(launch.resources.memory.get()),
            whole(launch.resources.gpus.get().into()),
            launch.resources.port,
        );
        if told != (cpus, memory, gpus, port) {
            return Err((5, format!("{} is told {told:?}: {}", launch.executor, describe(launch))));
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
