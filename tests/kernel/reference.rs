//! Reference model of the whole kernel: single-threaded, with vectors and maps, written from the documentation.
//!
//! For each event it returns what the kernel must return. Executors are identified by their numbers, agents by their
//! ids. If the documentation leaves something open, the model does too: when exactly an idle agent is forgotten (see
//! [`Known`]).

mod adopting;
mod binding;
mod capacity;
mod offers;
mod tasks;
mod totals;
mod updates;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use offermill::config::RefuseDurations;
use offermill::resources::MilliCpus;
use offermill::{DemandCall, Fate, ReasonKind, Timestamp};

use crate::world::{Setup, secs};
pub(crate) use binding::Bound;
pub(crate) use capacity::{LastOffered, Size};
pub(crate) use offers::{Answer, Said, Started};
pub(crate) use tasks::GangPicks;
pub(crate) use updates::Effect;

/// The stage of an executor's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Launching,
    Running,
    Unreachable,
    GivenUp,
    Ended(Fate),
}

impl Life {
    pub(crate) fn counted(self) -> bool {
        matches!(self, Life::Launching | Life::Running | Life::Unreachable)
    }

    pub(crate) fn live(self) -> bool {
        !matches!(self, Life::Ended(_))
    }
}

/// An executor that was placed or adopted.
#[derive(Clone, Debug)]
pub(crate) struct Executor {
    /// Empty if it isn't bound.
    pub(crate) agent: String,
    /// Whether it was placed or adopted without an agent.
    pub(crate) late: bool,
    /// Whether the agent that it was found on doesn't take it.
    unwelcome: bool,
    pub(crate) cores: u64,
    pub(crate) memory: u64,
    pub(crate) gpus: u64,
    pub(crate) port: Option<u16>,
    pub(crate) life: Life,
    pub(crate) placed_at: Timestamp,
    /// When it became unreachable, or was given up.
    pub(crate) since: Timestamp,
    asked_to_end: bool,
    doubtful: bool,
    /// Whether it was adopted from an earlier run.
    pub(crate) adopted: bool,
    /// Whether it was unreachable and has returned.
    pub(crate) returned: bool,
    /// Its tag, if it is a task.
    pub(crate) tag: Option<u64>,
}

/// Whether the kernel still knows an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Yes,
    /// It may have been forgotten, because it was idle for almost as long as agents are kept.
    Perhaps,
}

/// An agent that was a candidate for placement or reported lost.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) known: Known,
    pub(crate) excluded_until: Option<Timestamp>,
    suspect_until: Timestamp,
    failures: Vec<Timestamp>,
    /// The time until which the last failure may count.
    failed_until: Timestamp,
    candidate_at: Timestamp,
    /// Whether its host name is known, because it was offered.
    pub(crate) met: bool,
    /// When an executor failed on the agent, if none has been placed there since.
    failed: Option<Timestamp>,
    /// What it offered in each batch in which it was a candidate.
    pub(crate) offered: Vec<LastOffered>,
    /// The sizes of executors in force when it was offered.
    pub(crate) sizes: BTreeSet<Option<Size>>,
}

impl Agent {
    fn met(now: Timestamp) -> Agent {
        Agent {
            known: Known::Yes,
            excluded_until: None,
            suspect_until: Timestamp::ORIGIN,
            failures: Vec::new(),
            failed_until: Timestamp::ORIGIN,
            candidate_at: now,
            met: true,
            failed: None,
            offered: Vec::new(),
            sizes: BTreeSet::new(),
        }
    }

    fn unmet(now: Timestamp) -> Agent {
        Agent { met: false, ..Agent::met(now) }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Demand {
    suppressed: bool,
    refused: bool,
    wanted: bool,
    suppressed_at: Timestamp,
    revived_at: Option<Timestamp>,
    revives: u64,
    /// The time since which no offer was answered, and the number of offers answered before. Unknown after calls and
    /// registrations.
    silent: Option<(Timestamp, u64)>,
}

/// The maximum time for which an offer can be refused.
fn longest(refuse: &RefuseDurations) -> Duration {
    let two = refuse.unmet_constraint.max(refuse.reached_cap);
    two.max(refuse.other).max(refuse.stopping)
}

/// Whether `last` is less than `interval` ago. A time that is ahead by more than that says nothing.
fn recent(last: Timestamp, interval: Duration, now: Timestamp) -> bool {
    now.since(last) < interval && last.since(now) <= interval
}

/// The counters that the kernel must report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) batches: u64,
    pub(crate) offers: u64,
    pub(crate) accepted: u64,
    pub(crate) executors: u64,
    pub(crate) declined: BTreeMap<&'static str, u64>,
    pub(crate) unknown_updates: u64,
}

/// The sequential model of the kernel.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) setup: Setup,
    /// The current executor limit.
    pub(crate) limit: Option<u32>,
    /// Every executor that was ever placed, by its number.
    pub(crate) executors: Vec<Executor>,
    pub(crate) agents: BTreeMap<String, Agent>,
    pub(crate) counts: Counts,
    pub(crate) epoch: u64,
    pub(crate) closed: bool,
    pub(crate) connected: bool,
    /// The executors that lived when the kernel was closed.
    live_at_close: Vec<u64>,
    demand: Demand,
    swept_at: Timestamp,
    /// The number of changes of limit and settings.
    version: u64,
    /// Whether executors of an earlier run were adopted, which is possible only once.
    adopted: bool,
}

impl Model {
    pub(crate) fn new(setup: Setup) -> Model {
        Model {
            limit: setup.limit,
            setup,
            executors: Vec::new(),
            agents: BTreeMap::new(),
            counts: Counts::default(),
            epoch: 0,
            closed: false,
            connected: true,
            live_at_close: Vec::new(),
            demand: Demand::default(),
            swept_at: Timestamp::ORIGIN,
            version: 0,
            adopted: false,
        }
    }

    pub(crate) fn set_limit(&mut self, limit: Option<u32>) {
        self.version += u64::from(self.limit != limit);
        self.limit = limit;
    }

    pub(crate) fn reconfigure(&mut self, setup: Setup) {
        let limit = self.setup.limit;
        let differs = self.setup.config() != Setup { limit, ..setup.clone() }.config();
        let news = differs || self.limit != setup.limit;
        self.demand.wanted |= news;
        self.version += u64::from(news);
        self.limit = setup.limit;
        self.setup = Setup { limit, ..setup };
    }

    pub(crate) fn registered(&mut self) -> u64 {
        self.connected = true;
        self.epoch += 1;
        let Demand { suppressed_at, revived_at, revives, .. } = self.demand;
        self.demand = Demand { suppressed_at, revived_at, revives, ..Demand::default() };
        self.epoch
    }

    pub(crate) fn disconnected(&mut self) {
        self.connected = false;
    }

    /// Closes the kernel. Returns the executors that must still be asked to end.
    pub(crate) fn close(&mut self) -> BTreeSet<u64> {
        if !self.closed {
            self.closed = true;
            self.live_at_close = self.living().collect();
        }
        self.live_at_close.iter().copied().filter(|number| self.life(*number).live()).collect()
    }

    /// Returns whether all executors have ended, and the fate of each that lived at the close.
    pub(crate) fn drain(&mut self) -> (bool, BTreeMap<u64, Fate>) {
        self.close();
        let fate = |number: &u64| match self.life(*number) {
            Life::Ended(fate) => fate,
            Life::Unreachable | Life::GivenUp => Fate::Unreachable,
            Life::Launching | Life::Running => Fate::Alive,
        };
        let fates = self.live_at_close.iter().map(|number| (*number, fate(number))).collect();
        (self.totals() == (0, 0), fates)
    }

    pub(crate) fn poll_demand(&mut self, now: Timestamp) -> Option<DemandCall> {
        if !self.connected {
            return None;
        }
        let room = !self.closed && self.cap_reached().is_none();
        let demand = &mut self.demand;
        if room {
            let interval = self.setup.revive_interval;
            let early = demand.revived_at.is_some_and(|last| recent(last, interval, now));
            let asked = demand.suppressed || demand.refused || demand.wanted;
            if !asked || early {
                let answered = self.counts.offers;
                let patience = longest(&self.setup.refuse) + secs(10);
                let known = demand
                    .silent
                    .filter(|(since, count)| *count == answered && since.since(now) <= patience);
                let since = known.map_or(now, |(since, _)| since);
                demand.silent = Some((since, answered));
                if known.is_none() || now.since(since) < patience {
                    return None;
                }
                demand.silent = Some((now, answered));
                demand.wanted = true;
                if early {
                    return None;
                }
            }
            let suppressed_at = demand.suppressed_at;
            let (revived_at, revives) = (Some(now), demand.revives + 1);
            *demand = Demand { revived_at, revives, suppressed_at, ..Demand::default() };
            return Some(DemandCall::Revive);
        }
        demand.silent = None;
        let is_due = demand.refused && !recent(demand.suppressed_at, secs(1), now);
        if demand.suppressed && !is_due {
            return None;
        }
        demand.suppressed = true;
        demand.refused = false;
        demand.suppressed_at = now;
        Some(DemandCall::Suppress)
    }

    /// Records that decisions were sent to the cluster, possibly after a revive that was requested later.
    pub(crate) fn answers_sent(&mut self, said: Said) {
        if self.demand.revives != said.revives {
            self.demand.refused |= said.refused;
            self.demand.wanted |= self.version != said.version;
        }
    }

    /// Returns how many more executors the caps allow.
    pub(crate) fn wanted(&self) -> u64 {
        if self.closed || self.cap_reached().is_some() {
            return 0;
        }
        let (executors, cores) = self.totals();
        let by_limit = self.limit_in_force() - executors;
        let by_cores = (self.core_cap() - cores) / self.cores_at_least();
        let by_gpus = match self.setup.executor_gpus {
            Some(gpus) if gpus > 0 => {
                (u64::from(self.setup.gpu_cap) - self.gpus()) / u64::from(gpus)
            }
            _ => u64::MAX,
        };
        by_limit.min(by_cores).min(by_gpus)
    }

    pub(crate) fn sufficient(&self, ratio: f64) -> bool {
        let target = match (self.setup.core_cap, self.limit, self.setup.executor_cores) {
            (Some(cap), _, Some(cores)) => cap - cap % cores,
            (Some(cap), _, None) => cap,
            (None, Some(limit), Some(cores)) => u64::from(limit) * cores,
            _ => return true,
        };
        let running = self.executors.iter().filter(|executor| executor.life == Life::Running);
        let cores: u64 = running.map(|executor| executor.cores).sum();
        MilliCpus::from_millis(cores).millis() as f64 >= target as f64 * ratio
    }

    pub(crate) fn life(&self, number: u64) -> Life {
        self.executors[number as usize].life
    }

    /// Returns the numbers of all executors that have not ended.
    pub(crate) fn living(&self) -> impl Iterator<Item = u64> + '_ {
        (0..).zip(&self.executors).filter(|(_, executor)| executor.life.live()).map(|(n, _)| n)
    }

    /// Whether an executor is on no agent yet.
    #[allow(dead_code)]
    pub(crate) fn is_unbound(&self, number: u64) -> bool {
        let executor = &self.executors[number as usize];
        executor.life.live() && executor.agent.is_empty()
    }

    /// Returns how many executors live on an agent.
    pub(crate) fn on_agent(&self, agent: &str) -> u32 {
        let here = |number: &u64| self.executors[*number as usize].agent == agent;
        self.living().filter(here).count() as u32
    }

    fn count_decline(&mut self, kind: ReasonKind) {
        *self.counts.declined.entry(kind.as_str()).or_default() += 1;
    }
}
