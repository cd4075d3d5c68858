//! A handler's private cache of agents, which finds an agent by id without touching memory that other threads write.
//!
//! An entry is one cache line, with the id beside it. The hash table holds positions and a part of the hash, so that it
//! stays small. The agents of several offers are looked up together and ahead of their use ([`AgentCache::locate`]), in
//! loops short enough that the processor waits for many lines at a time.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::constraint::Memo;
use crate::kernel::state::agent::seconds;
use crate::kernel::state::agents::{AgentCapacity, AgentKey, AgentRefusal, AgentTable};
use crate::kernel::state::offered::NOT_RECORDED;
use crate::offer::Offer;
use crate::time::Timestamp;

/// An agent that was not offered for this many seconds is dropped when the cache would have to grow.
const FORGET_AFTER: u32 = 900;
/// How often, in seconds, a handler records in the shared entry that an agent was offered.
const REPORT_EVERY: u32 = 60;
/// The number of agents that are cached before any is dropped.
const KEEP: usize = 1024;
/// No position.
const NONE: u32 = u32::MAX;

/// A cached agent.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct CachedAgent {
    id: Box<str>,
    /// The key of the shared entry, once the agent was a candidate.
    agent: Option<AgentKey>,
    /// Whether the agent meets the constraint; evaluated when either is new.
    pub(crate) memo: Memo,
    /// The last batch in which the agent was a candidate, and its first candidate there.
    pub(crate) batch: u32,
    pub(crate) candidate: u32,
    /// When an offer came last, and when that was recorded in the shared entry last, in seconds.
    seen: u32,
    reported: u32,
}

impl CachedAgent {
    /// Has what the agent offers recorded with its next offer in any case, because now it could not be.
    #[cold]
    pub(super) fn record_again(&mut self) {
        // As far as possible from any time that the next offer may have, even if the clock jumps.
        self.reported = self.seen.wrapping_sub(1 << 31);
    }

    /// Returns how many executors the agent takes, or why it takes none. Creates the agent's shared entry if there is
    /// none yet, or none any more.
    pub(crate) fn capacity(
        &mut self,
        agents: &AgentTable,
        offer: &Offer<'_>,
        now: Timestamp,
    ) -> Result<(AgentKey, AgentCapacity), AgentRefusal> {
        if let Some(key) = self.agent {
            let mut capacity = agents.capacity(key, now);
            if capacity != Err(AgentRefusal::Retired) {
                // Only now, because the cell of a forgotten agent may be another agent's.
                // Wraps, so that a clock that jumped ahead and back doesn't put this off.
                if self.seen.wrapping_sub(self.reported) >= REPORT_EVERY {
                    agents.record_seen(key, now);
                    self.reported = self.seen;
                    // What it offers is recorded in any case, now or with its next offer.
                    capacity = capacity.map(|it| AgentCapacity { offered: NOT_RECORDED, ..it });
                }
                return capacity.map(|capacity| (key, capacity));
            }
        }
        let key =
            agents.find_or_insert(offer.agent_id, offer.hostname, now).ok_or(AgentRefusal::Full)?;
        agents.record_seen(key, now);
        self.agent = Some(key);
        self.reported = self.seen;
        // Likewise: what another handler has recorded may have equal amounts, but other attributes.
        let capacity = agents.capacity(key, now);
        capacity.map(|it| (key, AgentCapacity { offered: NOT_RECORDED, ..it }))
    }
}

/// The position of an agent in [`AgentCache::known`].
#[derive(Clone, Copy, Debug)]
struct CachePosition {
    at: u32,
    /// Bits of the id's hash. If they are equal, the ids are almost always equal.
    tag: u32,
}

impl CachePosition {
    fn new(at: u32, hash: u64) -> CachePosition {
        CachePosition { at, tag: (hash >> 16) as u32 }
    }
}

/// All agents that a handler has cached: at most [`KEEP`], or twice those that it saw in the last 15 minutes, plus
/// those that were new in its last batch.
#[derive(Debug)]
pub(crate) struct AgentCache {
    known: Vec<CachedAgent>,
    table: HashTable<CachePosition>,
    hasher: RandomState,
    sweep_at: usize,
    /// The positions of the agents of the offers that were located last.
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

    /// Drops agents that were not seen for long, if there are many. Positions change.
    pub(crate) fn evict_stale(&mut self, now: Timestamp) {
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
            let rehash = |place: &CachePosition| hash(hasher, &known[place.at as usize].id);
            table.insert_unique(hash_id, CachePosition::new(at, hash_id), rehash);
        }
    }

    /// Looks up the agents of these offers, for [`AgentCache::entry`].
    pub(crate) fn locate(&mut self, offers: &[Offer<'_>]) {
        let AgentCache { known, table, hasher, located, .. } = self;
        located.clear();
        located.extend(offers.iter().map(|offer| {
            let hash = hash(hasher, offer.agent_id);
            let found = table.find(hash, |place| place.tag == CachePosition::new(0, hash).tag);
            found.map_or(NONE, |place| place.at)
        }));
        // Only the last comparison decides. The others are cheap and load what it needs.
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

    /// Returns the agent of the offer with this position among those located last, and the agent's position, which is
    /// valid until the next [`AgentCache::evict_stale`]. Adds the agent if it is new.
    pub(crate) fn entry(
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

    /// Clears the batch numbers of all agents.
    pub(crate) fn forget_batches(&mut self) {
        self.known.iter_mut().for_each(|known| known.batch = 0);
    }

    /// The agent at a position that [`AgentCache::entry`] returned.
    pub(crate) fn at(&mut self, at: u32) -> &mut CachedAgent {
        &mut self.known[at as usize]
    }

    /// The agent at a position, if there is one.
    #[inline]
    pub(crate) fn find(&mut self, at: u32) -> Option<&mut CachedAgent> {
        self.known.get_mut(at as usize)
    }

    /// Adds an agent that was unknown when the offers were located. Returns its position.
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
        let at = entry.or_insert(CachePosition::new(fresh, hash_id)).get().at;
        if at == fresh {
            let seconds = seconds(now);
            known.push(CachedAgent {
                id: id.into(),
                agent: None,
                memo: Memo::default(),
                batch: 0,
                candidate: 0,
                seen: seconds,
                reported: seconds,
            });
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

    /// Goal: the cache doesn't grow with agents that come and go. Method: a million ids over a day, one seen
    /// throughout.
    #[test]
    fn memory_follows_the_agents_that_are_there() {
        let mut agent_cache = AgentCache::new();
        let see = |agent_cache: &mut AgentCache, id: &str, now| {
            agent_cache.evict_stale(now);
            agent_cache.locate(&[Offer::new("o", id, "h", &[], &[])]);
            let (at, cached) = agent_cache.entry(0, id, now);
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
