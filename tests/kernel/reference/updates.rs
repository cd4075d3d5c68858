//! Status updates, losses, kills, reconciliation and timeouts in the reference model.

use std::collections::BTreeSet;
use std::time::Duration;

use offermill::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};
use offermill::{Change, Fate, Scope, TaskState, Timestamp, UpdateReason};

use super::{Agent, Executor, Known, Life, Model};

/// How long an idle agent is kept after its last offer.
const KEPT_FOR: Duration = Duration::from_secs(900);
/// An idle agent may be forgotten earlier by this time, because the kernel doesn't record the time of every offer.
const KEPT_LESS: Duration = Duration::from_secs(66);
/// The maximum time that is recorded for unreachable executors: 8900 years after the origin.
const ABSENCE_CLOCK_MAX: Timestamp = Timestamp::from_millis((1 << 48) - 1);
/// The maximum time that is recorded for agents in seconds: 136 years after the origin.
pub(super) const CLOCK_MAX: Timestamp = Timestamp::from_millis(u32::MAX as u64 * 1000);
const SWEEP_EVERY: Duration = Duration::from_secs(60);
const SUSPECT_FOR: Duration = Duration::from_secs(10);

/// The required effect of a status update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) change: Change,
    /// The tag of a task that lived.
    pub(crate) tag: Option<u64>,
    pub(crate) freed: Option<ExecutorResources>,
    pub(crate) kill: bool,
    pub(crate) excluded: Option<(String, Timestamp)>,
}

impl Effect {
    fn of(change: Change) -> Effect {
        Effect { change, tag: None, freed: None, kill: false, excluded: None }
    }
}

/// The meaning of a reported state.
enum Meaning {
    Starting,
    Running,
    Unreachable,
    Ended(Fate),
}

fn meaning_of(state: TaskState, reason: UpdateReason) -> Meaning {
    use UpdateReason::{AgentDisconnected, AgentRemoved, Reconciliation};
    match (state, reason) {
        (TaskState::Staging | TaskState::Starting, _) => Meaning::Starting,
        (TaskState::Running | TaskState::Killing, _) => Meaning::Running,
        (TaskState::Finished, _) => Meaning::Ended(Fate::Finished),
        (TaskState::Failed | TaskState::Error, _) => Meaning::Ended(Fate::Failed),
        (TaskState::Killed, _) => Meaning::Ended(Fate::Killed),
        (TaskState::Lost, AgentDisconnected | AgentRemoved | Reconciliation)
        | (TaskState::Unreachable | TaskState::Unknown | TaskState::GoneByOperator, _) => {
            Meaning::Unreachable
        }
        (TaskState::Lost | TaskState::Dropped | TaskState::Gone, _) => Meaning::Ended(Fate::Lost),
        (other, _) => panic!("a state that the reference does not know: {other:?}"),
    }
}

fn alive(state: TaskState) -> bool {
    use TaskState::{Killing, Running, Staging, Starting};
    matches!(state, Staging | Starting | Running | Killing)
}

/// Whether an end in this state counts as a failure of the agent.
fn attributable(state: TaskState, reason: UpdateReason) -> bool {
    use UpdateReason::{AgentDraining, AgentRemoved, InvalidOffers, Preempted};
    let bad = matches!(state, TaskState::Failed | TaskState::Lost);
    bad && !matches!(reason, AgentDraining | AgentRemoved | InvalidOffers | Preempted)
}

impl Model {
    /// Applies a status update. `number` is `None` for ids that the kernel never assigned.
    pub(crate) fn update(
        &mut self,
        number: Option<u64>,
        state: TaskState,
        reason: UpdateReason,
        now: Timestamp,
    ) -> Effect {
        let Some(number) = number else {
            self.counts.unknown_updates += 1;
            return Effect { kill: alive(state), ..Effect::of(Change::UnknownExecutor) };
        };
        let tag = self.executors[number as usize].tag.filter(|_| self.life(number).live());
        Effect { tag, ..self.update_known(number, state, reason, now) }
    }

    fn update_known(
        &mut self,
        number: u64,
        state: TaskState,
        reason: UpdateReason,
        now: Timestamp,
    ) -> Effect {
        match (self.life(number), meaning_of(state, reason)) {
            (Life::Ended(_), _) => Effect { kill: alive(state), ..Effect::of(Change::Nothing) },
            (life, Meaning::Ended(fate)) => {
                let blamed = attributable(state, reason) && !self.it(number).asked_to_end;
                let excluded = if blamed { self.blame(number, now) } else { None };
                self.it(number).life = Life::Ended(fate);
                let executor = self.it(number);
                let freed = life.counted().then(|| freed(executor));
                Effect { freed, excluded, ..Effect::of(Change::Ended(fate)) }
            }
            (Life::Launching | Life::Running, Meaning::Unreachable) => {
                let executor = self.it(number);
                executor.life = Life::Unreachable;
                executor.since = now;
                executor.doubtful = false;
                Effect::of(Change::Unreachable)
            }
            (Life::Unreachable | Life::GivenUp, Meaning::Unreachable) => {
                Effect::of(Change::Nothing)
            }
            (Life::GivenUp, Meaning::Starting | Meaning::Running) => {
                if !self.has_room_for(&self.executors[number as usize]) {
                    return Effect { kill: true, ..Effect::of(Change::Refused) };
                }
                self.seen(number, Life::Running);
                Effect::of(Change::Readmitted)
            }
            (Life::Unreachable, Meaning::Starting | Meaning::Running) => {
                self.seen(number, Life::Running);
                Effect::of(Change::Returned)
            }
            (Life::Launching, Meaning::Running) => {
                self.seen(number, Life::Running);
                Effect::of(Change::Running)
            }
            (life, Meaning::Starting | Meaning::Running) => {
                self.seen(number, life);
                Effect::of(Change::Nothing)
            }
        }
    }

    fn it(&mut self, number: u64) -> &mut Executor {
        &mut self.executors[number as usize]
    }

    fn seen(&mut self, number: u64, life: Life) {
        self.it(number).life = life;
        self.it(number).doubtful = false;
    }

    fn blame(&mut self, number: u64, now: Timestamp) -> Option<(String, Timestamp)> {
        let rule = self.setup.exclusion;
        let name = self.it(number).agent.clone();
        let agent = self.agents.get_mut(&name)?;
        agent.failed = Some(now.min(CLOCK_MAX));
        agent.candidate_at = agent.candidate_at.max(now);
        let rule = rule?;
        agent.failures.push(now);
        agent.failures.retain(|failed| now.since(*failed) <= rule.window);
        agent.failed_until = now.plus(rule.window);
        if agent.failures.len() < usize::from(rule.failures) {
            return None;
        }
        agent.failures.clear();
        agent.failed_until = Timestamp::ORIGIN;
        let until = rule.expiry.map_or(Timestamp::MAX, |expiry| now.plus(expiry));
        agent.excluded_until = agent.excluded_until.max(Some(until));
        Some((name, agent.excluded_until?))
    }

    /// Kills executors. Returns those of `numbers` that live.
    pub(crate) fn kill(&mut self, numbers: &[u64]) -> BTreeSet<u64> {
        let living = numbers.iter().copied().filter(|number| self.life(*number).live());
        let living: BTreeSet<u64> = living.collect();
        living.iter().for_each(|number| self.it(*number).asked_to_end = true);
        living
    }

    /// An agent is lost. Returns its executors, whose state is in doubt now. No agent has an empty id.
    pub(crate) fn agent_lost(&mut self, agent: &str, now: Timestamp) -> BTreeSet<u64> {
        if agent.is_empty() {
            return BTreeSet::new();
        }
        let known = self.agents.entry(agent.to_owned()).or_insert_with(|| Agent::unmet(now));
        known.suspect_until = known.suspect_until.max(now.plus(SUSPECT_FOR));
        let here: BTreeSet<u64> = self
            .living()
            .filter(|number| self.executors[*number as usize].agent == agent)
            .collect();
        here.iter().for_each(|number| self.it(*number).doubtful = true);
        here
    }

    /// Ends an agent's exclusion and suspicion. Returns whether it had one.
    pub(crate) fn readmit(&mut self, agent: &str, now: Timestamp) -> bool {
        let Some(known) = self.agents.get_mut(agent) else { return false };
        let barred =
            known.excluded_until.is_some_and(|until| now < until) || now < known.suspect_until;
        known.excluded_until = None;
        known.suspect_until = Timestamp::ORIGIN;
        known.failures.clear();
        known.failed_until = Timestamp::ORIGIN;
        known.failed = None;
        self.demand.wanted |= barred;
        self.version += u64::from(barred);
        barred
    }

    /// An executor is lost. Returns whether it lives, in which case its state is in doubt now.
    pub(crate) fn executor_lost(&mut self, number: u64) -> bool {
        let live = self.life(number).live();
        self.it(number).doubtful |= live;
        live
    }

    pub(crate) fn reconcile(&self, scope: Scope, now: Timestamp) -> BTreeSet<u64> {
        let questioned = |number: &u64| {
            let executor = &self.executors[*number as usize];
            let late = now.since(executor.placed_at) >= self.setup.launch_timeout;
            match executor.life {
                Life::Launching if scope == Scope::All => {
                    executor.doubtful || now.since(executor.placed_at) >= Scope::YOUNG_FOR
                }
                _ if scope == Scope::All => true,
                Life::Unreachable | Life::GivenUp => true,
                Life::Launching if late && !executor.agent.is_empty() => true,
                _ => executor.doubtful,
            }
        };
        self.living().filter(questioned).collect()
    }

    /// Advances time. Returns the executors that were given up and those that were forgotten.
    pub(crate) fn tick(&mut self, now: Timestamp) -> (BTreeSet<u64>, BTreeSet<u64>) {
        let rule = self.setup.unreachable;
        let (mut given_up, mut forgotten) = (BTreeSet::new(), BTreeSet::new());
        for (executor, number) in self.executors.iter_mut().zip(0..) {
            let age = now.min(ABSENCE_CLOCK_MAX).since(executor.since.min(ABSENCE_CLOCK_MAX));
            match executor.life {
                Life::Unreachable if rule.release_after.is_some_and(|after| age >= after) => {
                    executor.life = Life::GivenUp;
                    executor.since = now;
                    given_up.insert(number);
                }
                Life::GivenUp if age >= rule.forget_after => {
                    executor.life = Life::Ended(Fate::Lost);
                    forgotten.insert(number);
                }
                _ => {}
            }
        }
        // A time far ahead means nothing.
        if now.since(self.swept_at) >= SWEEP_EVERY || self.swept_at.since(now) > SWEEP_EVERY {
            self.swept_at = now;
            self.forget_agents(now);
        }
        (given_up, forgotten)
    }

    fn forget_agents(&mut self, now: Timestamp) {
        let holding: BTreeSet<String> =
            self.living().map(|number| self.executors[number as usize].agent.clone()).collect();
        self.agents.retain(|name, agent| {
            let referred = holding.contains(name)
                || agent.excluded_until.is_some_and(|until| now < until)
                || now < agent.suspect_until
                || !agent.failures.is_empty() && now <= agent.failed_until;
            let idle = now.since(agent.candidate_at.min(CLOCK_MAX));
            if !referred && idle > KEPT_FOR {
                return false;
            }
            if !referred && idle + KEPT_LESS > KEPT_FOR {
                agent.known = Known::Perhaps;
            }
            true
        });
    }
}

fn freed(executor: &Executor) -> ExecutorResources {
    ExecutorResources {
        cores: MilliCpus::from_millis(executor.cores),
        memory: Mebibytes::new(executor.memory),
        gpus: Gpus::new(executor.gpus as u32),
        port: executor.port,
    }
}
