//! The wanted hosts of the locality wait, with their agents, and the clock of the wait.
//!
//! The wanted hosts are published with the [policy](crate::kernel::state::policy). In addition there are two kinds of
//! words:
//!
//! | word | thread | operation | ordering | pairs with |
//! |---|---|---|---|---|
//! | [`LocalityClock`] | handler, in a batch at the executor limit | [`pause`](LocalityClock::pause): load, store | Relaxed | nothing: a moment of time |
//! | | handler, in a batch below the limit | [`since`](LocalityClock::since): load, compare-exchange | Relaxed | nothing: the first of several sets the moment |
//! | | setter of hosts | [`pause`](LocalityClock::pause), *then* publishes the hosts | Relaxed | the policy's publication: a thread that sees the hosts sees the pause, or a later value |
//! | [`WantedHost`]'s agents | handler, before its commit | [`record`](Host::record): load, compare-exchange | Relaxed | the admission word: a thread that sees the executor counted sees the agent here |
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

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::agents::{AgentKey, AgentTable};
use crate::sync::{AtomicU64, Ordering};
use crate::time::Timestamp;

/// The number of agents of a host that are listed.
const AGENTS: usize = 6;

/// The wanted hosts of one request.
#[derive(Debug, Default)]
pub(crate) struct Locality {
    pub(crate) hosts: HashMap<Box<str>, WantedHost, RandomState>,
    /// When they were requested, if the wait begins then.
    pub(crate) asked_at: Timestamp,
}

impl Locality {
    pub(crate) fn new<'a>(
        hosts: impl IntoIterator<Item = &'a str>,
        asked_at: Timestamp,
        agents: &AgentTable,
    ) -> Locality {
        let mut locality = Locality { hosts: HashMap::default(), asked_at };
        for host in hosts {
            let at = locality.hosts.len();
            locality.hosts.entry(host.into()).or_insert_with(|| WantedHost::new(at));
        }
        locality.record_holders(agents);
        locality
    }

    /// Lists the agents of wanted hosts that hold executors now.
    pub(crate) fn record_holders(&self, agents: &AgentTable) {
        if !self.hosts.is_empty() {
            agents.holders().for_each(|(key, name)| self.record(&name.hostname, key, agents));
        }
    }

    /// Lists the agent with its host, if the host is wanted.
    pub(crate) fn record(&self, host: &str, agent: AgentKey, agents: &AgentTable) {
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
pub(crate) struct WantedHost {
    /// Its number among the wanted hosts.
    pub(crate) at: usize,
    /// The keys of its agents, plus one; 0 for none.
    agents: [AtomicU64; AGENTS],
}

impl WantedHost {
    pub(crate) fn new(at: usize) -> WantedHost {
        WantedHost { at, agents: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// Lists the agent. Replaces one that was forgotten if there is no free entry.
    pub(crate) fn record(&self, agent: AgentKey, agents: &AgentTable) {
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
    pub(crate) fn has_executors(&self, agents: &AgentTable) -> bool {
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

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: requests are of the same hosts if none is in one of them alone, in whatever order. Method: all pairs of
    /// subsets of four hosts.
    #[test]
    fn the_same_hosts_are_in_both() {
        let agents = AgentTable::new();
        let locality = |subset: u32| {
            let hosts = (0..4).filter(move |bit| subset >> bit & 1 != 0);
            let hosts = hosts.map(|host| ["a", "b", "c", "d"][host]);
            Locality::new(hosts, Timestamp::ORIGIN, &agents)
        };
        for (one, other) in (0..16).flat_map(|one| (0..16).map(move |other| (one, other))) {
            assert_eq!(locality(one).same_hosts(&locality(other)), one == other, "{one} {other}");
        }
        let turned = Locality::new(["b", "a", "b"], Timestamp::from_millis(7), &agents);
        assert!(turned.same_hosts(&locality(3)));
    }
}
