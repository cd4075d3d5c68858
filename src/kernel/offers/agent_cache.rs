//! A handler's private memory of agents: found by id without touching anything that another thread writes.
//!
//! What is known of an agent is one cache line, beside its id; the hash table holds positions and a part of the hash,
//! so that it stays small. Agents of several offers are found together and ahead of their use ([`AgentCache::locate`]),
//! in passes short enough that the processor waits for many lines at a time.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::constraint::Memo;
use crate::kernel::state::agent::seconds;
use crate::kernel::state::agents::{AgentCapacity, AgentKey, Agents, Refusal};
use crate::offer::Offer;
use crate::time::Timestamp;

/// An agent that no offer came from for so long, in seconds, is forgotten when the memory would have to grow.
const FORGET_AFTER: u32 = 900;
/// How often, in seconds, a handler tells the others that an agent is there.
const REPORT_EVERY: u32 = 60;
/// So many agents are remembered before any is forgotten.
const KEEP: usize = 1024;
/// No position.
const NONE: u32 = u32::MAX;

/// What a handler knows of an agent.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct CachedAgent {
    id: Box<str>,
    /// The shared entry, once the agent was a candidate for placement.
    agent: Option<AgentKey>,
    /// Whether the agent meets the constraint, worked out when either is new.
    pub(crate) memo: Memo,
    /// The last batch that the agent was a candidate in, and its first group there.
    pub(crate) batch: u32,
    pub(crate) group: u32,
    /// When an offer came last, and when the shared entry was told last, in seconds.
    seen: u32,
    reported: u32,
}

impl CachedAgent {
    /// What the agent takes, or why nothing. Meets the agent again if it was forgotten meanwhile.
    pub(crate) fn capacity(
        &mut self,
        agents: &Agents,
        offer: &Offer<'_>,
        now: Timestamp,
    ) -> Result<(AgentKey, AgentCapacity), Refusal> {
        if let Some(key) = self.agent {
            let capacity = agents.capacity(key, now);
            if capacity != Err(Refusal::Retired) {
                // Not before: the cell of a forgotten agent may be another's by now.
                if self.seen.saturating_sub(self.reported) >= REPORT_EVERY {
                    agents.record_seen(key, now);
                    self.reported = self.seen;
                }
                return capacity.map(|capacity| (key, capacity));
            }
        }
        let key =
            agents.find_or_insert(offer.agent_id, offer.hostname, now).ok_or(Refusal::Full)?;
        agents.record_seen(key, now);
        self.agent = Some(key);
        self.reported = self.seen;
        agents.capacity(key, now).map(|capacity| (key, capacity))
    }
}

/// Where an agent is in [`AgentCache::known`].
#[derive(Clone, Copy, Debug)]
struct Place {
    at: u32,
    /// Bits of the id's hash. Where they agree, the ids hardly ever differ.
    tag: u32,
}

impl Place {
    fn new(at: u32, hash: u64) -> Place {
        Place { at, tag: (hash >> 16) as u32 }
    }
}

/// All agents that a handler remembers: at most twice those that it saw in the last quarter of an hour, or
/// [`KEEP`], and those that are new in its last batch.
#[derive(Debug)]
pub(crate) struct AgentCache {
    known: Vec<CachedAgent>,
    table: HashTable<Place>,
    hasher: RandomState,
    sweep_at: usize,
    /// Where the agents of the offers located last are.
    located: Vec<u32>,
}

impl AgentCache {
    pub(crate) fn new() -> AgentCache {
        AgentCache {
            known: Vec::new(),
            table: HashTable::new(),
            hasher: RandomState::default(),
            sweep_at: KEEP,
            located: Vec::new(),
        }
    }

    /// Forgets agents that were not seen for long, if there are many. Positions change.
    pub(crate) fn tidy(&mut self, now: Timestamp) {
        if self.known.len() < self.sweep_at {
            return;
        }
        let seconds = seconds(now);
        self.known.retain(|known| seconds.saturating_sub(known.seen) <= FORGET_AFTER);
        self.sweep_at = (self.known.len() * 2).max(KEEP);
        self.known.shrink_to(self.sweep_at);
        self.table = HashTable::with_capacity(self.known.len());
        let AgentCache { known, table, hasher, .. } = self;
        for (cached, at) in known.iter().zip(0u32..) {
            let hash_id = hash(hasher, &cached.id);
            let rehash = |place: &Place| hash(hasher, &known[place.at as usize].id);
            table.insert_unique(hash_id, Place::new(at, hash_id), rehash);
        }
    }

    /// Finds the agents of these offers, for [`AgentCache::seen`].
    pub(crate) fn locate(&mut self, offers: &[Offer<'_>]) {
        let AgentCache { known, table, hasher, located, .. } = self;
        located.clear();
        located.extend(offers.iter().map(|offer| {
            let hash = hash(hasher, offer.agent_id);
            let found = table.find(hash, |place| place.tag == Place::new(0, hash).tag);
            found.map_or(NONE, |place| place.at)
        }));
        // The last test alone is right; those before it are cheap, and bring in what it needs.
        let mut narrow = |same: fn(&str, &str) -> bool| {
            for (at, offer) in located.iter_mut().zip(offers) {
                let known = known.get(*at as usize);
                if !known.is_some_and(|known| same(&known.id, offer.agent_id)) {
                    *at = NONE;
                }
            }
        };
        narrow(|known, id| known.len() == id.len());
        narrow(|known, id| known.as_bytes().first() == id.as_bytes().first());
        narrow(|known, id| known == id);
    }

    /// The agent of the offer with this position among those located last, remembered from now on, and where it is
    /// until the next [`AgentCache::tidy`].
    pub(crate) fn seen(
        &mut self,
        offer: usize,
        agent_id: &str,
        now: Timestamp,
    ) -> (u32, &mut CachedAgent) {
        let at = match self.located[offer] {
            NONE => self.find_or_insert(agent_id, now),
            at => at,
        };
        let cached = &mut self.known[at as usize];
        cached.seen = seconds(now);
        (at, cached)
    }

    /// Takes the numbers of batches off all agents.
    pub(crate) fn forget_batches(&mut self) {
        self.known.iter_mut().for_each(|known| known.batch = 0);
    }

    /// The agent at a position that [`AgentCache::seen`] gave.
    pub(crate) fn at(&mut self, at: u32) -> &mut CachedAgent {
        &mut self.known[at as usize]
    }

    /// The position of an agent that was not known before these offers.
    #[cold]
    fn find_or_insert(&mut self, id: &str, now: Timestamp) -> u32 {
        let AgentCache { known, table, hasher, .. } = self;
        let fresh = known.len() as u32;
        let hash_id = hash(hasher, id);
        let entry = table.entry(
            hash_id,
            |place| *known[place.at as usize].id == *id,
            |place| hash(hasher, &known[place.at as usize].id),
        );
        let at = entry.or_insert(Place::new(fresh, hash_id)).get().at;
        if at == fresh {
            let (id, seconds) = (id.into(), seconds(now));
            let (seen, reported) = (seconds, seconds);
            let memo = Memo::default();
            known.push(CachedAgent { id, agent: None, memo, batch: 0, group: 0, seen, reported });
        }
        at
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
}

fn hash(hasher: &RandomState, id: &str) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(id.as_bytes());
    hasher.finish()
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: agents that come and go leave nothing behind. Method: a million ids over a day, one seen throughout.
    #[test]
    fn memory_follows_the_agents_that_are_there() {
        let mut agent_cache = AgentCache::new();
        let see = |agent_cache: &mut AgentCache, id: &str, now| {
            agent_cache.tidy(now);
            agent_cache.locate(&[Offer::new("o", id, "h", &[], &[])]);
            let (at, cached) = agent_cache.seen(0, id, now);
            cached.batch += 1;
            assert_eq!(*agent_cache.at(at).id, *id);
            agent_cache.at(at).batch
        };
        for number in 0..1_000_000u64 {
            let now = Timestamp::from_millis(number * 86_400 / 1000);
            assert_eq!(see(&mut agent_cache, &format!("agent-{number}"), now), 1);
            assert_eq!(u64::from(see(&mut agent_cache, "always", now)), number + 1);
        }
        assert!(agent_cache.len() < 40_000, "{}", agent_cache.len());
        assert!(agent_cache.known.capacity() < 80_000, "{}", agent_cache.known.capacity());
        assert!(agent_cache.table.capacity() < 80_000, "{}", agent_cache.table.capacity());
        assert_eq!(size_of::<CachedAgent>(), 64);
    }
}
