//! Locality: during the locality wait, executors start only on requested hosts that have no executor yet.
//!
//! The wanted hosts are published with the [policy](crate::kernel::state::policy). In addition there are two kinds of
//! words:
//!
//! | word | thread | operation | ordering | pairs with |
//! |---|---|---|---|---|
//! | [`LocalityClock`] | handler, in a batch at the executor limit | [`pause`](LocalityClock::pause): load, store | Relaxed | nothing: a moment of time |
//! | | handler, in a batch below the limit | [`since`](LocalityClock::since): load, compare-exchange | Relaxed | nothing: the first of several sets the moment |
//! | | setter of hosts | [`pause`](LocalityClock::pause), *then* publishes the hosts | Relaxed | the policy's publication: a thread that sees the hosts sees the pause, or a later value |
//! | [`Host`]'s agents | handler, before its commit | [`record`](Host::record): load, compare-exchange | Relaxed | the admission word: a thread that sees the executor counted sees the agent here |
//! | | handler, when it filters candidates | [`has_executors`](Host::has_executors): load | Relaxed | as above |
//!
//! Whether a host has executors is read from the words of its agents, which are exact. A host only lists which agents
//! those are: agents that held executors when the hosts were set, agents whose executors were adopted, and candidates
//! since then. Most hosts have one agent. If a host has more than [`AGENTS`], some of them are not listed and count
//! only for themselves.
//!
//! Agents that hold executors are listed twice: before the hosts are published, and again when no batch that doesn't
//! know the hosts can commit any more. The second time finds what such a batch placed in between, because the admission
//! word orders that batch's commit before the publisher's new version.
//!
//! Handlers don't wait for each other: two handlers that examine one host at once may each place an executor there.
//! Until the setter has returned, a host may get an executor although a batch that doesn't know the new hosts has just
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

/// The number of agents of a host that are listed.
const AGENTS: usize = 6;

/// The wanted hosts of one request.
#[derive(Debug, Default)]
pub(crate) struct Locality {
    hosts: HashMap<Box<str>, Host, RandomState>,
    /// When they were requested, if the wait begins then.
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

    /// Lists the agents of wanted hosts that hold executors now.
    fn record_holders(&self, agents: &Agents) {
        if !self.hosts.is_empty() {
            agents.holders().for_each(|(key, name)| self.record(&name.hostname, key, agents));
        }
    }

    /// Lists the agent with its host, if the host is wanted.
    pub(crate) fn record(&self, host: &str, agent: AgentKey, agents: &Agents) {
        if let Some(host) = self.hosts.get(host) {
            host.record(agent, agents);
        }
    }

    /// Whether both contain the same hosts.
    pub(crate) fn same_hosts(&self, other: &Locality) -> bool {
        self.hosts.len() == other.hosts.len()
            && self.hosts.keys().all(|host| other.hosts.contains_key(host))
    }
}

/// One wanted host.
#[derive(Debug)]
pub(crate) struct Host {
    /// Its number among the wanted hosts.
    at: usize,
    /// The keys of its agents, plus one; 0 for none.
    agents: [AtomicU64; AGENTS],
}

impl Host {
    pub(crate) fn new(at: usize) -> Host {
        Host { at, agents: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// Lists the agent. Replaces one that was forgotten if there is no free entry.
    pub(crate) fn record(&self, agent: AgentKey, agents: &Agents) {
        let recorded = agent.bits() + 1;
        if self.agents.iter().any(|place| place.load(Ordering::Relaxed) == recorded) {
            return;
        }
        for place in &self.agents {
            let held = place.load(Ordering::Relaxed);
            let is_free = key(held).is_none_or(|held| !agents.is_current(held));
            // Relaxed: what is read through the key has its own ordering.
            let swap =
                || place.compare_exchange(held, recorded, Ordering::Relaxed, Ordering::Relaxed);
            if is_free && swap().is_ok() {
                return;
            }
        }
    }

    /// Whether an executor of this kernel is on the host.
    pub(crate) fn has_executors(&self, agents: &Agents) -> bool {
        let keys = self.agents.iter().filter_map(|place| key(place.load(Ordering::Relaxed)));
        keys.into_iter().any(|key| agents.executors(key) > 0)
    }
}

fn key(word: u64) -> Option<AgentKey> {
    word.checked_sub(1).map(AgentKey::from_bits)
}

/// When batches began to arrive below the executor limit, in milliseconds, plus one; 0 if the last batch was at the
/// limit.
#[derive(Debug)]
pub(crate) struct LocalityClock(AtomicU64);

impl LocalityClock {
    pub(crate) fn new() -> LocalityClock {
        LocalityClock(AtomicU64::new(0))
    }

    /// Resets the clock: the next batch below the limit starts it.
    pub(crate) fn pause(&self) {
        if self.0.load(Ordering::Relaxed) != 0 {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    /// Called by a batch below the limit. Returns since when batches are below it.
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

/// Filters a batch's candidates by the wanted hosts.
#[derive(Debug)]
pub(crate) struct LocalityFilter<'a> {
    locality: &'a Locality,
    /// Until when only wanted hosts may be used, if the wait lasts.
    until: Option<Timestamp>,
}

impl LocalityFilter<'_> {
    /// Leaves capacity for one executor on each wanted host that has none, and none elsewhere. Call it when all other
    /// reasons to decline an offer are known.
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
        // In the order in which capacities are used.
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
            // From now on each commit follows a policy that has these or later hosts.
            locality.record_holders(&self.agents);
        }
    }

    /// The filter for a batch that begins now, if hosts are wanted and a wait is configured. `closed` is the reason for
    /// which no offer can be used, whatever its host.
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
        // The last millisecond belongs to the wait.
        let until = since.plus(wait).plus(std::time::Duration::from_millis(1));
        let locality_filter = LocalityFilter { locality, until: (now < until).then_some(until) };
        (!locality.hosts.is_empty()).then_some(locality_filter)
    }
}

impl Kernel {
    /// Sets the hosts on which executors should start; replaces all former ones. Without hosts they start anywhere. Has
    /// an effect only with a [`locality_wait`](crate::ConfigBuilder::locality_wait), which starts anew with the next
    /// batch below the executor limit.
    ///
    /// During the wait, an offer is used only if its host is wanted and has no executor of this kernel, and each wanted
    /// host gets one. Once this has returned, no batch follows the former hosts, and all executors placed before are
    /// taken into account. With several threads the wait is a preference, not a cap: two handlers that examine one host
    /// at once may each place an executor there, and so may a batch that begins before this has returned.
    ///
    /// O(hosts and agents) on the caller's thread; handlers never wait for it. Blocks as [`Kernel::set_executor_limit`]
    /// does.
    pub fn set_locality<'a>(&self, hosts: impl IntoIterator<Item = &'a str>) {
        let core = &*self.0;
        let locality = Locality::new(hosts, Timestamp::ORIGIN, &core.agents);
        // Before the hosts are published: batches that see them start the wait.
        core.locality_clock.pause();
        core.set_locality(locality, |limit| limit);
    }

    /// Sets the executor limit and the wanted hosts in one step, as dynamic allocation does; see
    /// [`Kernel::set_executor_limit`] and [`Kernel::set_locality`]. The wait for wanted hosts starts anew at `now`.
    /// (`set_executor_limit` alone leaves hosts and wait as they are.) Blocks as [`Kernel::set_executor_limit`] does.
    ///
    /// # Errors
    /// Fails if the limit exceeds [`limits::EXECUTORS_MAX`](crate::limits::EXECUTORS_MAX). Then nothing changes.
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
