//! A handler's private cache of agents, which finds an agent by id without touching memory that other threads write.
//!
//! An entry is a cache line and a half, the id among them. The hash table holds positions and a part of the hash, so
//! that it stays small, and so does the list of the shared cells to which the entries lead: both are found in a near
//! cache. So the entry and the cell, which lie far away, are waited for at the same time, and nothing else is. The
//! agents of several offers are looked up together and ahead of their use ([`AgentCache::locate`]), in loops short
//! enough that the processor waits for many lines at a time.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::constraint::Memo;
use crate::kernel::state::agent::seconds;
use crate::kernel::state::agents::{AgentCapacity, AgentKey, AgentRefusal, AgentTable};
use crate::kernel::state::inline_id::InlineId;
use crate::kernel::state::offered::NOT_RECORDED;
use crate::offer::Offer;
use crate::time::Timestamp;

/// An agent that was not offered for this many seconds is dropped when the cache would have to grow.
const FORGET_AFTER: u32 = 900;
/// How often, in seconds, a handler records in the shared entry that an agent was offered.
const REPORT_EVERY: u32 = 60;
/// The number of agents that are cached before any is dropped.
const KEEP: usize = 1024;
/// The number of offers whose agents are looked up in one loop.
const AT_ONCE: usize = 4;
/// No position, or no cell.
const NONE: u32 = u32::MAX;

/// A cached agent. The fields are in this order in memory, so that what is compared lies beside what is found.
#[derive(Debug)]
#[repr(C, align(32))]
pub(crate) struct CachedAgent {
    /// The key of the shared entry, once the agent was a candidate; [`AgentKey::NONE`] before.
    agent: AgentKey,
    /// Whether the agent meets the constraint; evaluated when either is new.
    pub(crate) memo: Memo,
    /// The last batch in which the agent was a candidate, and its first candidate there.
    pub(crate) batch: u32,
    pub(crate) candidate: u32,
    /// When an offer came last, and when that was recorded in the shared entry last, in seconds.
    seen: u32,
    reported: u32,
    id: InlineId,
}

impl CachedAgent {
    /// Has what the agent offers recorded with its next offer in any case, because now it could not be.
    #[cold]
    pub(super) fn record_again(&mut self) {
        // As far as possible from any time that the next offer may have, even if the clock jumps.
        self.reported = self.seen.wrapping_sub(1 << 31);
    }

    /// Returns how many executors the agent takes, or why it takes none. Creates the agent's shared entry if there is
    /// none yet, or none any more, and sets `cell` to the index of its cell.
    #[inline]
    fn capacity(
        &mut self,
        cell: &mut u32,
        agents: &AgentTable,
        offer: &Offer<'_>,
        now: Timestamp,
    ) -> Result<(AgentKey, AgentCapacity), AgentRefusal> {
        let key = self.agent;
        let mut capacity = agents.capacity(key, now);
        if capacity == Err(AgentRefusal::Retired) {
            return self.enter(cell, agents, offer, now);
        }
        // Only now, because the cell of a forgotten agent may be another agent's.
        // Wraps, so that a clock that jumped ahead and back doesn't put this off.
        if self.seen.wrapping_sub(self.reported) >= REPORT_EVERY {
            agents.record_seen(key, now);
            self.reported = self.seen;
            // What it offers is recorded in any case, now or with its next offer.
            capacity = capacity.map(|it| AgentCapacity { offered: NOT_RECORDED, ..it });
        }
        capacity.map(|capacity| (key, capacity))
    }

    /// As [`CachedAgent::capacity`], of an agent whose shared entry isn't known.
    #[cold]
    fn enter(
        &mut self,
        cell: &mut u32,
        agents: &AgentTable,
        offer: &Offer<'_>,
        now: Timestamp,
    ) -> Result<(AgentKey, AgentCapacity), AgentRefusal> {
        let key =
            agents.find_or_insert(offer.agent_id, offer.hostname, now).ok_or(AgentRefusal::Full)?;
        agents.record_seen(key, now);
        self.agent = key;
        *cell = key.index();
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
    /// For each of them, the index of its cell in the shared table, or [`NONE`]: in a small batch, what is read of the
    /// cell is asked for before it is known whose it is.
    cells: Vec<u32>,
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
            cells: Vec::new(),
            table: HashTable::new(),
            hasher: RandomState::default(),
            sweep_at: KEEP,
            located: Vec::new(),
        }
    }

    /// Drops agents that were not seen for long, if there are many. Positions change.
    #[inline]
    pub(crate) fn evict_stale(&mut self, now: Timestamp) {
        if self.known.len() >= self.sweep_at {
            self.sweep(now);
        }
    }

    #[cold]
    fn sweep(&mut self, now: Timestamp) {
        let seconds = seconds(now);
        self.known.retain(|known| seconds.saturating_sub(known.seen) <= FORGET_AFTER);
        self.sweep_at = (self.known.len() * 2).max(KEEP);
        self.known.shrink_to(self.sweep_at);
        self.table = HashTable::with_capacity(self.known.len());
        let AgentCache { known, cells, table, hasher, .. } = self;
        cells.clear();
        cells.shrink_to(known.capacity());
        cells.extend(known.iter().map(|known| cell_of(known.agent)));
        for (cached, at) in known.iter().zip(0u32..) {
            let hash_id = hash(hasher, cached.id.as_bytes());
            let rehash =
                |place: &CachePosition| hash(hasher, known[place.at as usize].id.as_bytes());
            table.insert_unique(hash_id, CachePosition::new(at, hash_id), rehash);
        }
    }

    /// Looks up the agents of these offers, for [`AgentCache::entry`], and prefetches their cells.
    pub(crate) fn locate(&mut self, offers: &[Offer<'_>], agents: &AgentTable) {
        let AgentCache { known, table, hasher, located, .. } = self;
        located.clear();
        if offers.len() <= AT_ONCE {
            self.locate_few(offers, agents);
            return;
        }
        located.extend(offers.iter().map(|offer| {
            let hash = hash(hasher, offer.agent_id.as_bytes());
            let found = table.find(hash, |place| place.tag == CachePosition::new(0, hash).tag);
            found.map_or(NONE, |place| place.at)
        }));
        // Only the last comparison decides. The other is cheap and loads what it needs.
        for (at, offer) in located.iter_mut().zip(offers) {
            let known = known.get(*at as usize);
            if !known.is_some_and(|known| known.id.ends_as(offer.agent_id.as_bytes())) {
                *at = NONE;
            }
        }
        for (at, offer) in located.iter_mut().zip(offers) {
            match known.get(*at as usize) {
                Some(known) if known.id.as_bytes() == offer.agent_id.as_bytes() => {
                    // The cell of an agent that doesn't meet the constraint isn't looked at.
                    if !known.memo.was_unmet() && known.agent != AgentKey::NONE {
                        agents.prefetch(known.agent.index());
                    }
                }
                _ => *at = NONE,
            }
        }
    }

    /// Looks up the agents of a few offers, all of which the processor works on at a time anyway.
    #[inline]
    fn locate_few(&mut self, offers: &[Offer<'_>], agents: &AgentTable) {
        let AgentCache { known, cells, table, hasher, located, .. } = self;
        for offer in offers {
            let id = offer.agent_id.as_bytes();
            let hash = hash(hasher, id);
            let found = table.find(hash, |place| place.tag == CachePosition::new(0, hash).tag);
            let at = found.map_or(NONE, |place| place.at);
            if let Some(cell) = cells.get(at as usize).filter(|cell| **cell != NONE) {
                agents.prefetch(*cell);
            }
            let is_same = known.get(at as usize).is_some_and(|known| known.id.as_bytes() == id);
            located.push(if is_same { at } else { NONE });
        }
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

    /// How many executors the agent at a position takes, or why it takes none; `None` if no agent has the position.
    /// Creates the agent's shared entry if there is none. `offer` is one of the agent's.
    #[inline]
    pub(crate) fn capacity(
        &mut self,
        at: u32,
        agents: &AgentTable,
        offer: &Offer<'_>,
        now: Timestamp,
    ) -> Option<Result<(AgentKey, AgentCapacity), AgentRefusal>> {
        let cached = self.known.get_mut(at as usize)?;
        let cell = self.cells.get_mut(at as usize)?;
        Some(cached.capacity(cell, agents, offer, now))
    }

    /// Adds an agent that was unknown when the offers were located. Returns its position.
    #[cold]
    fn find_or_insert(&mut self, id: &str, now: Timestamp) -> u32 {
        let AgentCache { known, cells, table, hasher, .. } = self;
        let fresh = known.len() as u32;
        let hash_id = hash(hasher, id.as_bytes());
        let entry = table.entry(
            hash_id,
            |place| known[place.at as usize].id.as_bytes() == id.as_bytes(),
            |place| hash(hasher, known[place.at as usize].id.as_bytes()),
        );
        let at = entry.or_insert(CachePosition::new(fresh, hash_id)).get().at;
        if at == fresh {
            let seconds = seconds(now);
            known.push(CachedAgent {
                agent: AgentKey::NONE,
                memo: Memo::default(),
                batch: 0,
                candidate: 0,
                seen: seconds,
                reported: seconds,
                id: InlineId::new(id),
            });
            cells.push(NONE);
        }
        at
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
}

/// The index of an agent's cell, or [`NONE`].
fn cell_of(agent: AgentKey) -> u32 {
    if agent == AgentKey::NONE { NONE } else { agent.index() }
}

fn hash(hasher: &RandomState, id: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(id);
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
        let (mut agent_cache, agents) = (AgentCache::new(), AgentTable::new());
        let see = |agent_cache: &mut AgentCache, id: &str, now| {
            agent_cache.evict_stale(now);
            agent_cache.locate(&[Offer::new("o", id, "h", &[], &[])], &agents);
            let (at, cached) = agent_cache.entry(0, id, now);
            cached.batch += 1;
            assert_eq!(agent_cache.at(at).id.as_bytes(), id.as_bytes());
            agent_cache.at(at).batch
        };
        for number in 0..1_000_000u64 {
            let now = Timestamp::from_millis(number * 86_400 / 1000);
            assert_eq!(see(&mut agent_cache, &format!("agent-{number}"), now), 1);
            assert_eq!(u64::from(see(&mut agent_cache, "always", now)), number + 1);
        }
        assert!((10_000..40_000).contains(&agent_cache.len()), "{}", agent_cache.len());
        assert!(agent_cache.known.capacity() < 80_000, "{}", agent_cache.known.capacity());
        assert!(agent_cache.cells.capacity() < 80_000, "{}", agent_cache.cells.capacity());
        assert!(agent_cache.table.capacity() < 80_000, "{}", agent_cache.table.capacity());
        assert_eq!(size_of::<CachedAgent>(), 96);
    }
    /// Goal: an id is never taken for another one that has the same hash. Method: an id that the table leads to another
    /// agent, whose id has the same length and the same last byte, looked up by itself and with others.
    #[test]
    fn equal_hashes_mislead_nobody() {
        let offer = |id| Offer::new("o", id, "h", &[], &[]);
        for offers in [1, AT_ONCE, AT_ONCE + 1] {
            let (mut agent_cache, agents) = (AgentCache::new(), AgentTable::new());
            agent_cache.locate(&[offer("agent-1x")], &agents);
            let (at, _) = agent_cache.entry(0, "agent-1x", Timestamp::ORIGIN);
            let AgentCache { table, hasher, .. } = &mut agent_cache;
            let hash_id = hash(hasher, b"agent-2x");
            table.insert_unique(hash_id, CachePosition::new(at, hash_id), |_| hash_id);
            agent_cache.locate(&vec![offer("agent-2x"); offers], &agents);
            assert_eq!(agent_cache.located, vec![NONE; offers]);
            let (at, _) = agent_cache.entry(offers - 1, "agent-2x", Timestamp::ORIGIN);
            assert_eq!(agent_cache.at(at).id.as_bytes(), b"agent-2x");
        }
    }
}
