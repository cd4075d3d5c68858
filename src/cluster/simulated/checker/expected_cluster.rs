//! The expected state of executors and agents, computed from notices: invariants 1, 3, 10, 11, 12, 14, 16, 19, 21, 23,
//! 46, 47.

use std::fmt::Write as _;
use std::time::Duration;

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

use super::rule::RuleViolation;
use crate::cluster::simulated::scenario::Scenario;
use crate::cluster::simulated::settings::FrameworkSettings;
use crate::cluster::simulated::wire::{AgentRef, SimOffer};
use crate::config::ExclusionRule;
use crate::engine::cluster_manager::Update;
use crate::engine::{Notice, PlacedExecutor};
use crate::kernel::{Change, Kernel, Phase, ResourceSums, Snapshot, Totals};
use crate::resources::{ExecutorResources, MilliCpus};
use crate::status::UpdateReason;
use crate::time::Timestamp;

/// How long no executor is placed on an agent that was reported lost.
const SUSPECT_FOR: Duration = Duration::from_secs(10);

pub(super) type FixedMap<K, V> = HashMap<K, V, FixedState>;

/// The executors and agents that the kernel must know.
pub(super) struct ExpectedCluster {
    pub(super) executors: FixedMap<String, ExpectedExecutor>,
    /// The hashes of all executor ids so far.
    names: HashSet<u64, FixedState>,
    counted: u32,
    cores: MilliCpus,
    gpus: u64,
    gpu_cap: u64,
    executor_gpus: u64,
    pub(super) agents: FixedMap<AgentRef, ExpectedAgent>,
    pub(super) rule: ExclusionRule,
    /// The reason of the update that is being processed.
    reason: UpdateReason,
    pub(super) too_many_agents_since: Option<u64>,
    /// The number of zones, to which agents are assigned in turn.
    pub(super) zones: u32,
    /// The virtual time of the last check.
    pub(super) checked_at: u64,
}

/// What an executor holds that has not ended.
pub(super) struct HeldResources {
    pub(super) resources: ResourceSums,
    /// The number of executors placed before it.
    pub(super) ordinal: u64,
    /// Whether it isn't given up.
    pub(super) is_counted: bool,
}

/// An executor that has not ended.
pub(super) struct ExpectedExecutor {
    /// None if it isn't bound yet.
    pub(super) agent: Option<AgentRef>,
    /// The number of executors placed before it.
    ordinal: u64,
    pub(super) resources: ExecutorResources,
    pub(super) phase: Phase,
    /// When the phase began.
    since: Timestamp,
    /// When the executor was last reconciled.
    pub(super) reconciled_at: Timestamp,
    pub(super) is_killed: bool,
    /// Whether it was found on an agent that doesn't take it.
    pub(super) is_unwelcome: bool,
}

/// An agent that was offered or that holds executors.
#[derive(Default)]
pub(super) struct ExpectedAgent {
    /// Including those that were given up.
    pub(super) executors: u32,
    pub(super) failures: Vec<Timestamp>,
    pub(super) excluded_until: Timestamp,
    pub(super) suspect_until: Timestamp,
    /// An executor failed there, and none was placed since.
    pub(super) failed: bool,
    pub(super) seen: u64,
}

impl ExpectedCluster {
    pub(super) fn new(scenario: &Scenario) -> ExpectedCluster {
        ExpectedCluster {
            executors: FixedMap::default(),
            names: HashSet::default(),
            counted: 0,
            cores: MilliCpus::ZERO,
            gpus: 0,
            gpu_cap: scenario.gpu_cap.into(),
            executor_gpus: scenario.executor_gpus.into(),
            agents: FixedMap::default(),
            rule: scenario.exclusion(),
            reason: UpdateReason::Other,
            too_many_agents_since: None,
            zones: scenario.zones,
            checked_at: 0,
        }
    }

    pub(super) fn agent(&self, agent: AgentRef) -> Option<&ExpectedAgent> {
        self.agents.get(&agent)
    }

    pub(super) fn agents_seen(&mut self, offers: &[SimOffer], virtual_now: u64) {
        for offer in offers.iter().filter(|offer| !offer.is_late) {
            self.agents.entry(offer.agent).or_default().seen = virtual_now;
        }
    }

    /// How many executors have been placed so far.
    pub(super) fn placed(&self) -> u64 {
        self.names.len() as u64
    }

    /// The executors of each agent that has some.
    pub(super) fn held_by_agent(&self) -> FixedMap<AgentRef, Vec<HeldResources>> {
        let mut agents = FixedMap::<AgentRef, Vec<HeldResources>>::default();
        for entry in self.executors.values() {
            let Some(agent) = entry.agent else { continue };
            agents.entry(agent).or_default().push(HeldResources {
                resources: entry.resources.into(),
                ordinal: entry.ordinal,
                is_counted: entry.phase != Phase::GivenUp,
            });
        }
        agents
    }

    pub(super) fn holds(&self, executor: &str) -> bool {
        self.executors.contains_key(executor)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.executors.keys().map(String::as_str)
    }

    pub(super) fn names_on(&self, agent: AgentRef) -> impl Iterator<Item = &str> {
        let here = self.executors.iter().filter(move |(_, entry)| entry.agent == Some(agent));
        here.map(|(name, _)| name.as_str())
    }

    /// Records that an executor is killed. Returns whether it is known.
    pub(super) fn record_kill(&mut self, executor: &str) -> bool {
        let entry = self.executors.get_mut(executor);
        entry.map(|entry| entry.is_killed = true).is_some()
    }

    pub(super) fn record_reconciled(&mut self, executor: &str, now: Timestamp) {
        if let Some(entry) = self.executors.get_mut(executor) {
            entry.reconciled_at = now;
        }
    }

    /// Executors that are in doubt (those without an agent may wait), and since when they have not been reconciled.
    pub(super) fn in_doubt(
        &self,
        now: Timestamp,
        launch_timeout: Duration,
    ) -> impl Iterator<Item = (&str, Timestamp)> {
        let doubtful = move |entry: &ExpectedExecutor| {
            let since = match entry.phase {
                Phase::Launching if entry.agent.is_some() => entry.since.plus(launch_timeout),
                Phase::Unreachable | Phase::GivenUp => entry.since,
                _ => return None,
            };
            (since <= now).then_some(since.max(entry.reconciled_at))
        };
        let executors = self.executors.iter();
        executors.filter_map(move |(name, entry)| Some((name.as_str(), doubtful(entry)?)))
    }

    /// How many more executors the caps of these settings allow.
    pub(super) fn room(&self, settings: FrameworkSettings) -> u32 {
        let mut room = u64::from(settings.limit.saturating_sub(self.counted));
        if settings.core_cap > MilliCpus::ZERO {
            let left = settings.core_cap.millis().saturating_sub(self.cores.millis());
            room = room.min(left / settings.executor_cores_min().millis());
        }
        let gpus = self.gpu_cap.saturating_sub(self.gpus);
        room = room.min(gpus.checked_div(self.executor_gpus).unwrap_or(u64::MAX));
        u32::try_from(room).unwrap_or(u32::MAX)
    }

    pub(super) fn update_arrives(&mut self, update: &Update) {
        self.reason = update.reason;
    }

    /// Applies a notice, and checks that it is a valid transition.
    pub(super) fn apply(
        &mut self,
        notice: &Notice,
        now: Timestamp,
        closed: bool,
        settings: FrameworkSettings,
    ) -> Result<(), RuleViolation> {
        match notice {
            Notice::Bound { executor, agent_id, .. } => {
                self.bind(executor, agent_id, settings, now)
            }
            Notice::Unwelcome { executor, agent_id, .. } => {
                self.refuse(executor, agent_id, settings, now)
            }
            Notice::Placed(_) if closed => {
                Err((23, "an executor is placed after the close".to_owned()))
            }
            Notice::Placed(placed) => self.insert(placed, now),
            Notice::Updated { executor, state, change, .. } => {
                let blamed = state.blames_agent(self.reason, false);
                self.reason = UpdateReason::Other;
                self.update(executor, *change, blamed, now)
            }
            Notice::GivenUp { executor } => {
                self.change_phase(executor, &[Phase::Unreachable], Phase::GivenUp, now)
            }
            Notice::Forgotten { executor } => self.remove(executor, &[Phase::GivenUp]).map(drop),
            Notice::AgentLost { agent_id } => {
                if let Some(agent) = AgentRef::parse(agent_id) {
                    let agent = self.agents.entry(agent).or_default();
                    // The loss of an agent that was never met is remembered as long as others are.
                    agent.seen = agent.seen.max(self.checked_at);
                    agent.suspect_until = agent.suspect_until.max(now.plus(SUSPECT_FOR));
                }
                Ok(())
            }
            Notice::AgentExcluded { agent_id, until } => {
                let agent = AgentRef::parse(agent_id).unwrap_or_default();
                let expected = self.agents.entry(agent).or_default().excluded_until;
                if *until == expected {
                    return Ok(());
                }
                Err((
                    16,
                    format!("agent {agent_id} is excluded until {until}, expected {expected}"),
                ))
            }
            _ => Ok(()),
        }
    }

    fn insert(&mut self, placed: &PlacedExecutor, now: Timestamp) -> Result<(), RuleViolation> {
        let name = &placed.executor;
        let is_valid = (1..=255).contains(&name.len())
            && !name.chars().any(|c| c.is_control() || c == '/' || c == '\\')
            && name != "."
            && name != "..";
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        if !is_valid || !self.names.insert(hash) {
            return Err((10, format!("executor id {name:?} is used again, or not allowed")));
        }
        let agent = AgentRef::parse(&placed.agent_id);
        let ordinal = self.placed() - 1;
        self.counted += 1;
        self.cores = MilliCpus::from_millis(self.cores.millis() + placed.resources.cores.millis());
        if let Some(agent) = agent {
            let holder = self.agents.entry(agent).or_default();
            holder.executors += 1;
            holder.failed = false;
        }
        self.gpus += u64::from(placed.resources.gpus.get());
        let entry = ExpectedExecutor {
            agent,
            ordinal,
            resources: placed.resources,
            phase: Phase::Launching,
            since: now,
            reconciled_at: Timestamp::ORIGIN,
            is_killed: false,
            is_unwelcome: false,
        };
        self.executors.insert(name.clone(), entry);
        self.check_gpu_cap()
    }

    fn update(
        &mut self,
        executor: &str,
        change: Change,
        blamed: bool,
        now: Timestamp,
    ) -> Result<(), RuleViolation> {
        use Phase::{GivenUp, Launching, Running, Unreachable};
        match change {
            Change::Ended(_) => {
                let entry = self.remove(executor, &[Launching, Running, Unreachable, GivenUp])?;
                if let Some(agent) = entry.agent.filter(|_| blamed && !entry.is_killed) {
                    self.record_failure(agent, now);
                }
                Ok(())
            }
            Change::Running => self.change_phase(executor, &[Launching], Running, now),
            Change::Unreachable => {
                self.change_phase(executor, &[Launching, Running], Unreachable, now)
            }
            Change::Returned => self.change_phase(executor, &[Unreachable], Running, now),
            Change::Readmitted => self.change_phase(executor, &[GivenUp], Running, now),
            Change::Refused => self.change_phase(executor, &[GivenUp], GivenUp, now),
            Change::UnknownExecutor if self.executors.contains_key(executor) => {
                Err((14, format!("executor {executor} is not known to the kernel")))
            }
            Change::UnknownExecutor | Change::Nothing => Ok(()),
        }
    }

    /// Counts a failure that the agent is to blame for towards its exclusion.
    fn record_failure(&mut self, agent: AgentRef, now: Timestamp) {
        let rule = self.rule;
        let seen = self.checked_at;
        let agent = self.agents.entry(agent).or_default();
        agent.seen = agent.seen.max(seen);
        agent.failed = true;
        agent.failures.retain(|at| now.since(*at) <= rule.window);
        agent.failures.push(now);
        if agent.failures.len() >= usize::from(rule.failures) {
            agent.failures.clear();
            let until = rule.expiry.map_or(Timestamp::MAX, |expiry| now.plus(expiry));
            agent.excluded_until = agent.excluded_until.max(until);
        }
    }

    fn change_phase(
        &mut self,
        executor: &str,
        from: &[Phase],
        to: Phase,
        now: Timestamp,
    ) -> Result<(), RuleViolation> {
        let Some(entry) = self.executors.get_mut(executor).filter(|it| from.contains(&it.phase))
        else {
            let phase = self.executors.get(executor).map(|entry| entry.phase);
            return Err((11, format!("executor {executor} goes from {phase:?} to {to:?}")));
        };
        let before = entry.phase;
        let resources = entry.resources;
        entry.phase = to;
        if before != to {
            entry.since = now;
        }
        self.adjust_totals(before, Some(to), resources);
        self.check_gpu_cap()
    }

    fn remove(
        &mut self,
        executor: &str,
        from: &[Phase],
    ) -> Result<ExpectedExecutor, RuleViolation> {
        let known = self.executors.get(executor).map(|entry| entry.phase);
        if !known.is_some_and(|phase| from.contains(&phase)) {
            return Err((12, format!("executor {executor} ends, though it is {known:?}")));
        }
        let Some(entry) = self.executors.remove(executor) else {
            return Err((12, format!("executor {executor} ends twice")));
        };
        self.adjust_totals(entry.phase, None, entry.resources);
        if let Some(agent) = entry.agent.and_then(|agent| self.agents.get_mut(&agent)) {
            agent.executors = agent.executors.saturating_sub(1);
        }
        Ok(entry)
    }

    fn adjust_totals(&mut self, before: Phase, after: Option<Phase>, resources: ExecutorResources) {
        let counts = |phase: Phase| phase != Phase::GivenUp;
        let millis = self.cores.millis();
        let cores = resources.cores.millis();
        let gpus = u64::from(resources.gpus.get());
        match (counts(before), after.is_some_and(counts)) {
            (true, false) => {
                self.counted -= 1;
                self.gpus -= gpus;
                self.cores = MilliCpus::from_millis(millis - cores);
            }
            (false, true) => {
                self.counted += 1;
                self.gpus += gpus;
                self.cores = MilliCpus::from_millis(millis + cores);
            }
            _ => {}
        }
    }

    fn check_gpu_cap(&self) -> Result<(), RuleViolation> {
        if self.gpus <= self.gpu_cap {
            return Ok(());
        }
        Err((2, format!("{} GPUs, cap {}", self.gpus, self.gpu_cap)))
    }

    pub(super) fn agrees_with(&self, totals: Totals) -> Result<(), RuleViolation> {
        if (totals.executors, totals.cores) == (self.counted, self.cores) {
            return Ok(());
        }
        let what = format!(
            "the kernel counts {} executors with {} cores, but {} with {} were placed and not freed",
            totals.executors, totals.cores, self.counted, self.cores
        );
        Err((1, what))
    }

    pub(super) fn agrees_with_snapshot(
        &self,
        snapshot: &Snapshot,
        kernel: &Kernel,
        now: Timestamp,
    ) -> Result<(), RuleViolation> {
        if !snapshot.exact {
            return Err((21, "a snapshot at a standstill is not exact".to_owned()));
        }
        self.agrees_with_views(snapshot, kernel)?;
        for shown in &snapshot.agents {
            let known = AgentRef::parse(&shown.agent_id).and_then(|agent| self.agents.get(&agent));
            let (executors, until) = known
                .map_or((0, Timestamp::ORIGIN), |agent| (agent.executors, agent.excluded_until));
            if shown.executors != executors {
                let (id, found) = (&shown.agent_id, shown.executors);
                return Err((
                    1,
                    format!("agent {id} holds {found} executors, expected {executors}"),
                ));
            }
            let excluded = Some(until).filter(|until| now < *until);
            if shown.excluded_until != excluded {
                let (id, found) = (&shown.agent_id, shown.excluded_until);
                let what = format!("agent {id} is excluded until {found:?}, expected {excluded:?}");
                return Err((16, what));
            }
        }
        Ok(())
    }

    /// Checks that the snapshot has exactly the expected executors.
    fn agrees_with_views(&self, snapshot: &Snapshot, kernel: &Kernel) -> Result<(), RuleViolation> {
        let (shown, known) = (snapshot.executors.len(), self.executors.len());
        if shown != known {
            return Err((21, format!("{shown} executors are in the snapshot, expected {known}")));
        }
        let mut name = String::new();
        for view in &snapshot.executors {
            name.clear();
            // Writing to a string can't fail.
            let _written = write!(name, "{}", kernel.executor_name(view.id));
            let Some(entry) = self.executors.get(name.as_str()) else {
                return Err((
                    21,
                    format!("executor {name} is in the snapshot, and was not placed"),
                ));
            };
            let agent = AgentRef::parse(&view.agent_id);
            let found = (view.phase, agent, view.resources);
            let expected = (entry.phase, entry.agent, entry.resources);
            if found != expected {
                let what =
                    format!("executor {name} is {found:?} in the snapshot, expected {expected:?}");
                return Err((21, what));
            }
        }
        Ok(())
    }
}
