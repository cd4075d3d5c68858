//! Locality: for a while, executors start only on hosts that were asked for and have none yet.
//!
//! The wanted hosts are published with the [policy](crate::kernel::state::policy). Beside them are two kinds of words:
//!
//! | word | who | does | ordering | pairs with |
//! |---|---|---|---|---|
//! | [`LocalityClock`] | handler, batch at the executor limit | [`pause`](LocalityClock::pause): load, store | Relaxed | nothing: a moment of time |
//! | | handler, batch below it | [`since`](LocalityClock::since): load, compare-exchange | Relaxed | nothing: of several, the first says when |
//! | | who sets hosts | [`pause`](LocalityClock::pause), *then* publishes them | Relaxed | the policy's publication: who sees the hosts sees the pause, or what came after it |
//! | [`Host`]'s agents | handler, before its commit | [`record`](Host::note): load, compare-exchange | Relaxed | the admission word: who sees the executor in the books sees the agent here |
//! | | handler, looking for a room | [`has_executors`](Host::has_executors): load | Relaxed | as above |
//!
//! Whether a host has executors is told by the records of its agents, which are right whoever wrote them; here is only
//! which agents those are: the ones that held executors when the hosts were set, those whose executors were adopted,
//! and those that were candidates since. Most hosts have one. Of a host with more than [`AGENTS`], some count only by
//! themselves.
//!
//! Agents that hold executors are looked for twice: before the hosts are published, and when no batch can commit any
//! more that doesn't know of the hosts. What such a batch has placed in between is found by the second look; the
//! admission word orders that batch's commit before the publisher's new version.
//!
//! Handlers don't wait for each other: two that look at one host at once may each place an executor there. And until
//! the setter has returned, a host may get an executor though a batch that doesn't know that it is wanted has just
//! placed one there.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::candidates::CandidateSet;
use super::decision::Reason;
use crate::error::Error;
use crate::kernel::state::agents::{AgentKey, Agents};
use crate::kernel::state::policy::{Policy, check_limit};
use crate::kernel::{Core, Kernel};
use crate::offer::Offer;
use crate::sync::{AtomicU64, Ordering};
use crate::time::Timestamp;

/// So many agents of a host are known together.
const AGENTS: usize = 6;

/// The hosts on which executors are wanted, as one request named them.
#[derive(Debug, Default)]
pub(crate) struct Locality {
    hosts: HashMap<Box<str>, Host, RandomState>,
    /// When they were asked for, if the wait begins then.
    asked_at: Timestamp,
}

impl Locality {
    pub(crate) fn new<'a>(
        hosts: impl IntoIterator<Item = &'a str>,
        asked_at: Timestamp,
        agents: &Agents,
    ) -> Locality {
        let mut locality = Locality { hosts: HashMap::default(), asked_at };
        for host in hosts {
            let at = locality.hosts.len();
            locality.hosts.entry(host.into()).or_insert_with(|| Host::new(at));
        }
        locality.record_holders(agents);
        locality
    }

    /// Notes the agents of wanted hosts that hold executors now.
    fn record_holders(&self, agents: &Agents) {
        if !self.hosts.is_empty() {
            agents.holders().for_each(|(key, name)| self.record(&name.hostname, key, agents));
        }
    }

    /// Notes that the agent is one of the host's, if the host is wanted.
    pub(crate) fn record(&self, host: &str, agent: AgentKey, agents: &Agents) {
        if let Some(host) = self.hosts.get(host) {
            host.record(agent, agents);
        }
    }

    /// Whether both want the same.
    pub(crate) fn same_hosts(&self, other: &Locality) -> bool {
        self.hosts.len() == other.hosts.len()
            && self.hosts.keys().all(|host| other.hosts.contains_key(host))
    }
}

/// One wanted host.
#[derive(Debug)]
pub(crate) struct Host {
    /// Its number.
    at: usize,
    /// The keys of its agents, plus one; 0 for none.
    agents: [AtomicU64; AGENTS],
}

impl Host {
    pub(crate) fn new(at: usize) -> Host {
        Host { at, agents: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// Notes that the agent is one of the host's. Takes the place of one that was forgotten, if need be.
    pub(crate) fn record(&self, agent: AgentKey, agents: &Agents) {
        let recorded = agent.bits() + 1;
        if self.agents.iter().any(|place| place.load(Ordering::Relaxed) == recorded) {
            return;
        }
        for place in &self.agents {
            let held = place.load(Ordering::Relaxed);
            let is_free = key(held).is_none_or(|held| !agents.is_current(held));
            // Relaxed: what is read by the key has an order of its own.
            let swap =
                || place.compare_exchange(held, recorded, Ordering::Relaxed, Ordering::Relaxed);
            if is_free && swap().is_ok() {
                return;
            }
        }
    }

    /// Whether an executor of ours is on the host.
    pub(crate) fn has_executors(&self, agents: &Agents) -> bool {
        let keys = self.agents.iter().filter_map(|place| key(place.load(Ordering::Relaxed)));
        keys.into_iter().any(|key| agents.executors(key) > 0)
    }
}

fn key(word: u64) -> Option<AgentKey> {
    word.checked_sub(1).map(AgentKey::from_bits)
}

/// Since when batches have come below the executor limit, in milliseconds, plus one; 0 if the last one didn't.
#[derive(Debug)]
pub(crate) struct LocalityClock(AtomicU64);

impl LocalityClock {
    pub(crate) fn new() -> LocalityClock {
        LocalityClock(AtomicU64::new(0))
    }

    /// The next batch below the limit begins anew.
    pub(crate) fn pause(&self) {
        if self.0.load(Ordering::Relaxed) != 0 {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    /// A batch comes below the limit: since when they do.
    pub(crate) fn since(&self, now: Timestamp) -> Timestamp {
        let mut word = self.0.load(Ordering::Relaxed);
        if word == 0 {
            let fresh = now.as_millis().saturating_add(1);
            let begun = self.0.compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed);
            word = begun.map_or_else(|earlier| earlier, |_| fresh);
        }
        Timestamp::from_millis(word - 1)
    }
}

/// The wanted hosts, as one batch has to mind them.
#[derive(Debug)]
pub(crate) struct LocalityFilter<'a> {
    locality: &'a Locality,
    /// Until when only they will do, if so.
    until: Option<Timestamp>,
}

impl LocalityFilter<'_> {
    /// Leaves room for one executor on each wanted host that has none, and nowhere else. To be called when all else
    /// that an offer may lack is known.
    #[inline(never)]
    pub(crate) fn apply(
        &self,
        candidates: &mut CandidateSet,
        offers: &[Offer<'_>],
        agents: &Agents,
        taken: &mut Vec<bool>,
    ) {
        taken.clear();
        taken.resize(self.locality.hosts.len(), false);
        // In the order of the rooms' turns.
        for last in [false, true] {
            for (group, room) in candidates.list.iter_mut().zip(&mut candidates.capacities) {
                let Some(offer) = offers.get(group.first as usize) else { continue };
                if room.executors == 0 || room.last != last {
                    continue;
                }
                let host = self.locality.hosts.get(offer.hostname);
                if let Some(host) = host {
                    host.record(group.agent, agents);
                }
                let Some(until) = self.until else { continue };
                let has_own = agents.executors(group.agent) > 0;
                let place = host.filter(|host| !has_own && !host.has_executors(agents));
                match place.and_then(|host| taken.get_mut(host.at)) {
                    Some(taken) if !*taken => {
                        *taken = true;
                        room.executors = 1;
                    }
                    _ => {
                        room.executors = 0;
                        group.reason = Some(Reason::Locality { until });
                    }
                }
            }
        }
    }
}

impl Core {
    fn set_locality(&self, locality: Locality, limit: impl FnOnce(Option<u32>) -> Option<u32>) {
        let locality = Arc::new(locality);
        if self.policy.set_locality(Arc::clone(&locality), limit, &self.admission) {
            // From now on each commit is by a policy that has these hosts, or later ones.
            locality.record_holders(&self.agents);
        }
    }

    /// What a batch that comes now has to mind of the wanted hosts, if there are any and there is a wait. `closed` is
    /// why no offer could be used whatever its host.
    #[inline]
    pub(crate) fn locality_filter<'p>(
        &self,
        policy: &'p Policy,
        closed: Option<&Reason>,
        now: Timestamp,
    ) -> Option<LocalityFilter<'p>> {
        let wait = policy.config.locality_wait?;
        match closed {
            Some(Reason::ExecutorLimit { .. }) => {
                self.locality_clock.pause();
                return None;
            }
            Some(Reason::Stopping | Reason::Disconnected) => return None,
            _ => {}
        }
        let locality = &*policy.locality;
        let since = self.locality_clock.since(now).max(locality.asked_at);
        // The last millisecond counts in full.
        let until = since.plus(wait).plus(std::time::Duration::from_millis(1));
        let locality_filter = LocalityFilter { locality, until: (now < until).then_some(until) };
        (!locality.hosts.is_empty()).then_some(locality_filter)
    }
}

impl Kernel {
    /// Says on which hosts executors had better start, all others forgotten; none is: wherever. Matters only with a
    /// [`locality_wait`](crate::ConfigBuilder::locality_wait), which begins anew with the next batch below the executor
    /// limit.
    ///
    /// While it lasts, an offer is used only if its host is wanted and no executor of this kernel is there, and each
    /// wanted host gets one. Once this has returned, no batch is placed by the former hosts, and all executors are
    /// known that were placed before. Under threads the wait is a preference and no cap: two handlers that look at one
    /// host at once may each place an executor there, and so may one that comes before this has returned.
    ///
    /// O(hosts and agents), on the caller's thread; no handler waits for it. Blocks as [`Kernel::set_executor_limit`]
    /// does.
    pub fn set_locality<'a>(&self, hosts: impl IntoIterator<Item = &'a str>) {
        let core = &*self.0;
        let locality = Locality::new(hosts, Timestamp::ORIGIN, &core.agents);
        // Before the hosts are there: who sees them begins to wait.
        core.locality_clock.pause();
        core.set_locality(locality, |limit| limit);
    }

    /// Says how many executors there may be and on which hosts they had better start, as dynamic allocation does: both
    /// come into force in one step, as by [`Kernel::set_executor_limit`] and [`Kernel::set_locality`], and the wait for
    /// wanted hosts begins anew `now`. (`set_executor_limit` alone leaves hosts and wait as they are.) Blocks as
    /// [`Kernel::set_executor_limit`] does.
    ///
    /// # Errors
    /// When the limit is over [`limits::EXECUTORS_MAX`](crate::limits::EXECUTORS_MAX); then nothing changes.
    pub fn request_executors<'a>(
        &self,
        limit: Option<u32>,
        hosts: impl IntoIterator<Item = &'a str>,
        now: Timestamp,
    ) -> Result<(), Error> {
        check_limit(limit)?;
        let core = &*self.0;
        let locality = Locality::new(hosts, now, &core.agents);
        core.set_locality(locality, |_| limit);
        Ok(())
    }
}
