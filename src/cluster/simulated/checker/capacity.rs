//! Checks pictures of the cluster's capacity: invariant 46. What agents offered is taken from the batches, and what
//! executors use from the notices.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::expected_cluster::{ExpectedCluster, FixedMap, HeldResources};
use super::rule::RuleViolation;
use crate::cluster::simulated::scenario::Scenario;
use crate::cluster::simulated::settings::FrameworkSettings;
use crate::cluster::simulated::wire::{AgentRef, Amounts, SimOffer};
use crate::kernel::{
    AgentResources, CapacitySums, ClusterCapacity, Decisions, Reason, ReasonKind, ResourceSums,
};
use crate::resources::{Gpus, Mebibytes, MilliCpus};
use crate::time::Timestamp;

/// For how long an agent that was offered is certainly remembered, by one clock.
const REMEMBERED_FOR: Duration = Duration::from_secs(10 * 60);

/// Verifies the pictures of the capacity.
pub(super) struct CapacityChecker {
    memory: Mebibytes,
    gpus: Gpus,
    /// Whether executors are tasks, which have no fixed size.
    tasks: bool,
    /// For each handler, the batch that it is about to decide.
    undecided: Vec<Vec<Undecided>>,
    /// What each agent offered in the batches that a picture can still show, in their order.
    seen: FixedMap<AgentRef, Vec<SeenOffers>>,
    /// The number of the last picture.
    version: u64,
}

/// What an agent offers in a batch, and the offers' positions there.
struct Undecided {
    agent: AgentRef,
    positions: Vec<usize>,
    offers: SeenOffers,
}

/// What an agent offered in a batch.
struct SeenOffers {
    at: Timestamp,
    offered: ResourceSums,
    /// The executors on the agent then, and the number of executors placed anywhere before.
    executors: u32,
    since: u64,
    /// What an executor took; nothing if that wasn't fixed.
    size: ResourceSums,
    /// Whether the kernel must have compared it with its record.
    is_compared: bool,
}

impl SeenOffers {
    /// What is free there now: executors placed since take something away, those that have ended gave it back.
    fn free(&self, held: &[HeldResources]) -> ResourceSums {
        let is_before = |it: &&HeldResources| it.ordinal < self.since;
        let before = held.iter().filter(is_before).count() as u32;
        let mut free = self.offered;
        (before..self.executors).for_each(|_| free = free.saturating_add(self.size));
        let since = held.iter().filter(|it| !is_before(it));
        free.saturating_sub(sum(since.map(|it| it.resources)))
    }
}

fn sum(amounts: impl Iterator<Item = ResourceSums>) -> ResourceSums {
    amounts.fold(ResourceSums::NONE, ResourceSums::saturating_add)
}

fn whole(amounts: &Amounts) -> ResourceSums {
    ResourceSums {
        cores: MilliCpus::from_millis(amounts.of("cpus")),
        memory: Mebibytes::new(amounts.of("mem") / 1000),
        gpus: Gpus::new((amounts.of("gpus") / 1000) as u32),
    }
}

/// Whether a reason says that the agent's offers aren't recorded.
fn is_unrecorded(reason: &Reason) -> bool {
    matches!(
        reason.kind(),
        ReasonKind::Malformed
            | ReasonKind::ConstraintUnmet
            | ReasonKind::ConstraintIncomparable
            | ReasonKind::AgentMaintenance
            | ReasonKind::AgentExcluded
            | ReasonKind::AgentSuspect
            | ReasonKind::AgentFull
            | ReasonKind::Contended
    )
}

/// Checks that a picture says rightly whether the agent is excluded or suspect.
fn check_refusals(
    agent: AgentRef,
    view: &AgentResources<'_>,
    expected: &ExpectedCluster,
    now: Timestamp,
) -> Result<(), RuleViolation> {
    let known = expected.agent(agent);
    let until = known.map_or([Timestamp::ORIGIN; 2], |it| [it.excluded_until, it.suspect_until]);
    let expected = until.map(|until| Some(until).filter(|until| now < *until));
    let found = [view.excluded_until(), view.suspect_until()];
    if found == expected {
        return Ok(());
    }
    let what = format!("agent {agent} is excluded or suspect until {found:?} in the picture");
    Err((46, format!("{what}, expected {expected:?}")))
}

impl CapacityChecker {
    pub(super) fn new(scenario: &Scenario) -> CapacityChecker {
        CapacityChecker {
            memory: scenario.memory_taken(),
            gpus: Gpus::new(scenario.executor_gpus),
            tasks: scenario.tasks,
            undecided: (0..scenario.handlers).map(|_| Vec::new()).collect(),
            seen: FixedMap::default(),
            version: 0,
        }
    }

    /// A handler is about to decide this batch.
    pub(super) fn begin(
        &mut self,
        handler: usize,
        batch: &[SimOffer],
        (settings, now): (FrameworkSettings, Timestamp),
        expected: &ExpectedCluster,
    ) {
        let size = match settings.executor_cores {
            MilliCpus::ZERO => ResourceSums::NONE,
            cores => ResourceSums { cores, memory: self.memory, gpus: self.gpus },
        };
        let mut agents = BTreeMap::<AgentRef, (Amounts, Vec<usize>)>::new();
        for (position, offer) in batch.iter().enumerate() {
            if settings.allows_zone(offer.zone) && !offer.is_late {
                let (amounts, positions) = agents.entry(offer.agent).or_default();
                amounts.add(&offer.amounts);
                positions.push(position);
            }
        }
        let undecided = agents.into_iter().map(|(agent, (amounts, positions))| Undecided {
            agent,
            positions,
            offers: SeenOffers {
                at: now,
                offered: whole(&amounts),
                executors: expected.agent(agent).map_or(0, |agent| agent.executors),
                since: expected.placed(),
                size,
                is_compared: false,
            },
        });
        self.undecided[handler] = undecided.collect();
    }

    /// A handler has decided its batch. Later calls for the same batch change nothing.
    pub(super) fn decided(&mut self, handler: usize, decisions: &Decisions) {
        let declines = decisions.declines();
        // A batch that is declined alike isn't looked at; if all are declined so, it may not have been.
        let is_alike = |reason: &Reason| {
            reason.is_cap() || matches!(reason, Reason::Stopping | Reason::Disconnected)
        };
        let is_looked_at =
            decisions.executors() > 0 || declines.iter().any(|it| !is_alike(&it.reason));
        let unrecorded = declines.iter().filter(|it| is_unrecorded(&it.reason));
        let unrecorded: BTreeSet<usize> = unrecorded.map(|it| it.offer as usize).collect();
        for Undecided { agent, positions, mut offers } in self.undecided[handler].drain(..) {
            offers.is_compared =
                is_looked_at && !positions.iter().any(|at| unrecorded.contains(at));
            self.seen.entry(agent).or_default().push(offers);
        }
    }

    /// Compares a picture that was returned for `now`.
    pub(super) fn check(
        &mut self,
        capacity: &ClusterCapacity,
        expected: &ExpectedCluster,
        now: Timestamp,
    ) -> Result<(), RuleViolation> {
        let (version, time) = (capacity.version(), capacity.time());
        // Scenarios have no interval of refreshes: each picture is a new one.
        if version <= self.version || time != now || !capacity.exact() {
            let exact = if capacity.exact() { "exact" } else { "not exact" };
            let last = self.version;
            let what = format!("picture {version} of {time}, {exact}, after {last}, at {now}");
            return Err((46, what));
        }
        self.version = version;
        expected.agrees_with(capacity.totals())?;
        let held = expected.held_by_agent();
        let mut shown = BTreeSet::new();
        let mut sums = CapacitySums::default();
        let mut largest = ResourceSums::NONE;
        for view in capacity.agents() {
            let agent = AgentRef::parse(view.agent_id()).unwrap_or_default();
            if !shown.insert(agent) {
                return Err((46, format!("agent {agent} is in the picture twice")));
            }
            let held = held.get(&agent).map_or(&[][..], Vec::as_slice);
            self.check_agent(agent, &view, held)?;
            check_refusals(agent, &view, expected, now)?;
            sums.add(&view);
            largest = largest.max_of_each(view.free().saturating_add(view.used()));
        }
        if let Some(agent) = held.keys().find(|agent| !shown.contains(*agent)) {
            return Err((46, format!("agent {agent} has executors, and isn't in the picture")));
        }
        sums.used = sums.used.saturating_add(expected.used_unbound());
        if sums != capacity.sums() || largest != capacity.largest_agent() {
            let found = (capacity.sums(), capacity.largest_agent());
            return Err((46, format!("{found:?} aren't the sums {:?}", (sums, largest))));
        }
        self.check_missing(&shown, now)
    }

    /// Checks one agent, and forgets its batches before the recorded one.
    fn check_agent(
        &mut self,
        agent: AgentRef,
        view: &AgentResources<'_>,
        held: &[HeldResources],
    ) -> Result<(), RuleViolation> {
        let broken = |what: String| Err((46, format!("agent {agent} {what}")));
        let used = sum(held.iter().filter(|it| it.is_counted).map(|it| it.resources));
        if (view.executors() as usize, view.used()) != (held.len(), used) {
            let found = (view.executors(), view.used());
            return broken(format!("uses {found:?}, expected {:?}", (held.len(), used)));
        }
        let seen = self.seen.entry(agent).or_default();
        let Some(at) = view.offered_at() else {
            let is_nothing = [view.offered(), view.free()] == [ResourceSums::NONE; 2];
            return match seen.iter().find(|it| it.is_compared) {
                None if is_nothing => Ok(()),
                None => broken("was never offered, and has something".to_owned()),
                Some(it) => broken(format!("was offered at {}, and isn't recorded", it.at)),
            };
        };
        let (offered, free) = (view.offered(), view.free());
        let is_shown = |it: &SeenOffers| it.at == at && it.offered == offered;
        let recorded = seen.iter().rposition(|it| is_shown(it) && it.free(held) == free);
        let Some(recorded) = recorded else {
            let expected: Vec<ResourceSums> =
                seen.iter().filter(|it| is_shown(it)).map(|it| it.free(held)).collect();
            return match expected.is_empty() {
                true => broken(format!("didn't offer {offered:?} at {at}")),
                false => broken(format!("has {free:?} free, expected {expected:?}")),
            };
        };
        seen.drain(..recorded);
        // Executors take all GPUs that there are, or a fixed number.
        let gpus = self.gpus;
        let fixed = |free: ResourceSums| match gpus {
            Gpus::ZERO => ResourceSums { gpus, ..free },
            _ => free,
        };
        // Without a fixed size, executors that come and go beside equal offers aren't noticed.
        let is_fixed =
            |it: &&SeenOffers| it.is_compared && it.size != ResourceSums::NONE && !self.tasks;
        match seen.iter().rfind(is_fixed) {
            Some(last) if fixed(last.free(held)) != fixed(free) => broken(format!(
                "has {free:?} free, as offered at {at}; but what it offered at {} leaves {:?}",
                last.at,
                last.free(held)
            )),
            _ => Ok(()),
        }
    }

    /// Checks that no agent is missing that was offered lately, and forgets what can't be shown any more.
    fn check_missing(
        &mut self,
        shown: &BTreeSet<AgentRef>,
        now: Timestamp,
    ) -> Result<(), RuleViolation> {
        let is_recent = |it: &SeenOffers| it.is_compared && it.at.plus(REMEMBERED_FOR) > now;
        let missing = self.seen.iter().filter(|(agent, _)| !shown.contains(*agent));
        let missing = missing.filter(|(_, seen)| seen.iter().any(is_recent));
        let missing = missing.map(|(agent, _)| *agent).min();
        self.seen.retain(|agent, _| shown.contains(agent));
        match missing {
            Some(agent) => {
                Err((46, format!("agent {agent} was offered lately, and isn't in the picture")))
            }
            None => Ok(()),
        }
    }
}
