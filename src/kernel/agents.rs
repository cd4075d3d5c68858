//! Agents: a cell each, with one word that decides whether executors may start there.
//!
//! | bits | field | |
//! |---|---|---|
//! | 26–63 | generation | whose cell it is: unique among all agents that this kernel meets |
//! | 25 | live | the cell is somebody's |
//! | 24 | excluded | until the moment in `excluded_until` |
//! | 16–23 | strikes | grows with each exclusion, so that lifting an old one can't lift a new one |
//! | 0–15 | executors | counted ones |
//!
//! | who | does | ordering | pairs with |
//! |---|---|---|---|
//! | handler | [`Agents::reserve`]: compare-exchange | AcqRel | `exclude`: after it, no reserve succeeds |
//! | whoever ends an executor | [`Agents::release`]: fetch-sub | Release | `retire` |
//! | whoever counts a failure | `excluded_until`, then `exclude`: compare-exchange | Release | `reserve`'s load |
//! | tick | [`Agents::retire`]: compare-exchange | AcqRel | `reserve`: fails from now on |
//!
//! Everything that happens seldom (the id, the times of failures) is behind a lock that no offer touches. The map from
//! ids to cells is for the first sight of an agent; its guard never outlives the expression that took it.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;

use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering, lock};

use super::limits::EXECUTORS_PER_AGENT_MAX;
use super::slab::{Cell, Slab};
use crate::config::ExclusionRule;
use crate::time::Timestamp;

const EXECUTORS_MASK: u64 = 0xffff;
const STRIKE_ONE: u64 = 1 << 16;
const STRIKES_MASK: u64 = 0xff << 16;
const EXCLUDED: u64 = 1 << 24;
const LIVE: u64 = 1 << 25;
const GENERATION_SHIFT: u32 = 26;

/// For so long, in seconds, an agent comes last on which an executor failed.
const FAILED_LATELY: u32 = 300;

/// Whole seconds since the origin.
pub(crate) fn seconds(now: Timestamp) -> u32 {
    u32::try_from(now.as_millis() / 1000).unwrap_or(u32::MAX)
}

/// Which cell (the lower 26 bits), and whose (the generation above): so there are 2²⁶ cells at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct AgentKey(u64);

impl AgentKey {
    const INDEX_MASK: u64 = (1 << GENERATION_SHIFT) - 1;

    fn new(index: u32, generation: u64) -> AgentKey {
        AgentKey(generation << GENERATION_SHIFT | u64::from(index))
    }

    pub(crate) fn index(self) -> u32 {
        (self.0 & Self::INDEX_MASK) as u32
    }

    fn generation(self) -> u64 {
        self.0 >> GENERATION_SHIFT
    }
}

/// What an agent takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    pub(crate) key: AgentKey,
    /// So many executors.
    pub(crate) executors: u32,
    /// An executor failed there lately, and none was placed since: others come first.
    pub(crate) failed: bool,
}

/// Why an agent takes no executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barred {
    /// The agent was forgotten since it was looked up.
    Retired,
    Excluded(Timestamp),
    Suspect(Timestamp),
    Full,
}

/// Who an agent is, for reports.
#[derive(Debug)]
pub(crate) struct AgentName {
    pub(crate) id: Box<str>,
    pub(crate) hostname: Box<str>,
}

/// An agent's name as the key of the map from ids.
#[derive(Debug)]
struct ById(Arc<AgentName>);

impl Borrow<str> for ById {
    fn borrow(&self) -> &str {
        &self.0.id
    }
}

impl PartialEq for ById {
    fn eq(&self, other: &ById) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for ById {}

impl Hash for ById {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // As `Borrow` demands: like the id.
        self.0.id.hash(state);
    }
}

/// One agent's cell: a cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Agent {
    word: AtomicU64,
    excluded_until: AtomicU64,
    /// Lost, perhaps: nothing is started until then. A hint; no ordering.
    suspect_until: AtomicU64,
    /// When it was last known to be there, as far as that is written down, in seconds. A hint; no ordering.
    seen: AtomicU32,
    /// When an executor failed that none was placed after, in seconds, plus one; 0 for never. A hint; no ordering.
    failed: AtomicU32,
    next_free: AtomicU32,
    seldom: Mutex<Seldom>,
}

#[derive(Debug, Default)]
struct Seldom {
    name: Option<Arc<AgentName>>,
    /// Of agents that have any.
    failures: Option<Box<Failures>>,
}

#[derive(Debug, Default)]
struct Failures {
    at: Vec<Timestamp>,
    /// As long as the last of them may count.
    until: Timestamp,
}

impl Default for Agent {
    fn default() -> Agent {
        Agent {
            word: AtomicU64::new(0),
            excluded_until: AtomicU64::new(0),
            suspect_until: AtomicU64::new(0),
            seen: AtomicU32::new(0),
            failed: AtomicU32::new(0),
            next_free: AtomicU32::new(0),
            seldom: Mutex::new(Seldom::default()),
        }
    }
}

impl Cell for Agent {
    fn next_free(&self) -> &AtomicU32 {
        &self.next_free
    }
}

impl Agent {
    fn name(&self) -> Option<Arc<AgentName>> {
        lock(&self.seldom).name.clone()
    }

    /// How many executors `word` has room for, or why none.
    fn room(&self, word: u64, generation: u64, now: Timestamp) -> Result<u32, Barred> {
        if word & LIVE == 0 || word >> GENERATION_SHIFT != generation {
            return Err(Barred::Retired);
        }
        if word & EXCLUDED != 0 {
            // Relaxed: stored before the bit that the caller's Acquire saw; a newer value only bars for longer.
            let until = Timestamp::from_millis(self.excluded_until.load(Ordering::Relaxed));
            if now < until {
                return Err(Barred::Excluded(until));
            }
        }
        let suspect = Timestamp::from_millis(self.suspect_until.load(Ordering::Relaxed));
        if now < suspect {
            return Err(Barred::Suspect(suspect));
        }
        match EXECUTORS_PER_AGENT_MAX - (word & EXECUTORS_MASK) as u32 {
            0 => Err(Barred::Full),
            room => Ok(room),
        }
    }

    /// Whether an executor failed here lately, and none was placed since.
    fn failed_lately(&self, now: Timestamp) -> bool {
        let failed = self.failed.load(Ordering::Relaxed);
        failed != 0 && seconds(now).saturating_sub(failed - 1) <= FAILED_LATELY
    }

    /// Starts an exclusion, or a longer one; returns when it ends. After this no executor is placed here before.
    fn exclude(&self, generation: u64, until: Timestamp) -> Timestamp {
        let before = self.excluded_until.fetch_max(until.as_millis(), Ordering::Relaxed);
        let until = until.max(Timestamp::from_millis(before));
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & LIVE == 0 || word >> GENERATION_SHIFT != generation {
                return until;
            }
            let strikes = word.wrapping_add(STRIKE_ONE) & STRIKES_MASK;
            let next = word & !STRIKES_MASK | strikes | EXCLUDED;
            // Release: whoever sees the bit sees until when.
            let swapped =
                self.word.compare_exchange_weak(word, next, Ordering::Release, Ordering::Relaxed);
            match swapped {
                Ok(_) => return until,
                Err(current) => word = current,
            }
        }
    }
}

/// An agent as a report shows it.
#[derive(Clone, Debug)]
pub(crate) struct AgentView {
    pub(crate) name: Arc<AgentName>,
    pub(crate) executors: u32,
    /// Until when it is excluded, if it is.
    pub(crate) excluded_until: Option<Timestamp>,
}

/// All agents that executors were or could have been placed on.
#[derive(Debug)]
pub(crate) struct Agents {
    cells: Slab<Agent>,
    by_id: DashMap<ById, AgentKey>,
    met: AtomicU64,
}

impl Agents {
    pub(crate) fn new() -> Agents {
        Agents { cells: Slab::new(), by_id: DashMap::new(), met: AtomicU64::new(0) }
    }

    /// The agent with `id`, as it is known.
    pub(crate) fn find(&self, id: &str) -> Option<AgentKey> {
        self.by_id.get(id).map(|key| *key)
    }

    /// The agent with `id`, met for the first time if need be. `None` when the table is full.
    pub(crate) fn meet(&self, id: &str, hostname: &str, now: Timestamp) -> Option<AgentKey> {
        if let Some(known) = self.find(id) {
            return Some(known);
        }
        let mut claimed = Vec::with_capacity(1);
        if !self.cells.claim(1, &mut claimed) {
            return None;
        }
        let index = *claimed.first()?;
        if u64::from(index) > AgentKey::INDEX_MASK {
            self.cells.free(index);
            return None;
        }
        let cell = self.cells.get(index)?;
        // Relaxed: a number that nobody else gets.
        let generation = self.met.fetch_add(1, Ordering::Relaxed) & (u64::MAX >> GENERATION_SHIFT);
        let key = AgentKey::new(index, generation);
        let name = Arc::new(AgentName { id: id.into(), hostname: hostname.into() });
        *lock(&cell.seldom) = Seldom { name: Some(Arc::clone(&name)), failures: None };
        cell.excluded_until.store(0, Ordering::Relaxed);
        cell.suspect_until.store(0, Ordering::Relaxed);
        cell.seen.store(seconds(now), Ordering::Relaxed);
        cell.failed.store(0, Ordering::Relaxed);
        let winner = match self.by_id.entry(ById(name)) {
            Entry::Vacant(entry) => {
                // Under the entry's lock, so that whoever retires the agent at once finds an entry to remove. Release:
                // the cell is whole before it is anybody's.
                cell.word.store(LIVE | generation << GENERATION_SHIFT, Ordering::Release);
                *entry.insert(key)
            }
            Entry::Occupied(entry) => *entry.get(),
        };
        if winner != key {
            lock(&cell.seldom).name = None;
            self.cells.free(index);
        }
        Some(winner)
    }

    /// What the agent takes, or why nothing. A plan's view: only `reserve` decides.
    pub(crate) fn opening(&self, key: AgentKey, now: Timestamp) -> Result<Opening, Barred> {
        let cell = self.cells.get(key.index()).ok_or(Barred::Retired)?;
        // Acquire: pairs with `exclude`'s Release.
        let word = cell.word.load(Ordering::Acquire);
        let executors = cell.room(word, key.generation(), now)?;
        Ok(Opening { key, executors, failed: cell.failed_lately(now) })
    }

    /// Counts `executors` more on the agent, if it may take them. Lifts an exclusion that has run out, and the mark of
    /// a failure.
    pub(crate) fn reserve(
        &self,
        key: AgentKey,
        executors: u32,
        now: Timestamp,
    ) -> Result<(), Barred> {
        let cell = self.cells.get(key.index()).ok_or(Barred::Retired)?;
        let mut word = cell.word.load(Ordering::Acquire);
        loop {
            if cell.room(word, key.generation(), now)? < executors {
                return Err(Barred::Full);
            }
            let next = (word & !EXCLUDED) + u64::from(executors);
            // AcqRel: after an exclusion in this word's order nothing is reserved.
            match cell.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    if cell.failed.load(Ordering::Relaxed) != 0 {
                        cell.failed.store(0, Ordering::Relaxed);
                    }
                    return Ok(());
                }
                Err(current) => word = current,
            }
        }
    }

    /// Counts `executors` fewer. The caller holds them, so the cell can't have become another's.
    pub(crate) fn release(&self, index: u32, executors: u32) {
        if let Some(cell) = self.cells.get(index) {
            let before = cell.word.fetch_sub(u64::from(executors), Ordering::Release);
            debug_assert!(before & EXECUTORS_MASK >= u64::from(executors), "released too many");
        }
    }

    /// Marks the agent of an executor that failed, and that the caller still holds: for a while it comes last, until it
    /// gets another. An agent that failed is also one that is there.
    pub(crate) fn mark_failed(&self, index: u32, now: Timestamp) {
        if let Some(cell) = self.cells.get(index) {
            cell.failed.store(seconds(now).saturating_add(1), Ordering::Relaxed);
            cell.seen.store(seconds(now), Ordering::Relaxed);
        }
    }

    /// Notes a failure of an executor that the caller still holds; returns until when the agent is excluded if this
    /// was one too many.
    pub(crate) fn count_failure(
        &self,
        index: u32,
        rule: &ExclusionRule,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let cell = self.cells.get(index)?;
        let generation = cell.word.load(Ordering::Acquire) >> GENERATION_SHIFT;
        {
            let mut seldom = lock(&cell.seldom);
            let failures = seldom.failures.get_or_insert_default();
            failures.at.retain(|at| now.since(*at) <= rule.window);
            failures.at.push(now);
            failures.until = now.plus(rule.window);
            if failures.at.len() < usize::from(rule.failures) {
                return None;
            }
            seldom.failures = None;
        }
        let until = rule.expiry.map_or(Timestamp::MAX, |expiry| now.plus(expiry));
        Some(cell.exclude(generation, until))
    }

    /// How many executors the agent holds.
    pub(crate) fn executors(&self, key: AgentKey) -> u32 {
        let word = self.cells.get(key.index()).map_or(0, |cell| cell.word.load(Ordering::Acquire));
        if word >> GENERATION_SHIFT == key.generation() {
            (word & EXECUTORS_MASK) as u32
        } else {
            0
        }
    }

    /// Lets nothing start on the agent before `until`.
    pub(crate) fn suspect(&self, key: AgentKey, until: Timestamp) {
        if let Some(cell) = self.cells.get(key.index()) {
            cell.suspect_until.fetch_max(until.as_millis(), Ordering::Relaxed);
        }
    }

    /// Notes that the agent is there.
    pub(crate) fn note_seen(&self, key: AgentKey, now: Timestamp) {
        if let Some(cell) = self.cells.get(key.index()) {
            cell.seen.store(seconds(now), Ordering::Relaxed);
        }
    }

    /// Forgets the agent, unless it holds executors, is excluded or suspect, or has failures that may still count.
    pub(crate) fn retire(&self, key: AgentKey, now: Timestamp) -> bool {
        let Some(cell) = self.cells.get(key.index()) else { return false };
        let word = cell.word.load(Ordering::Acquire);
        if word & EXECUTORS_MASK != 0 || word >> GENERATION_SHIFT != key.generation() {
            return false;
        }
        if let Err(Barred::Excluded(_) | Barred::Suspect(_) | Barred::Retired) =
            cell.room(word, key.generation(), now)
        {
            return false;
        }
        {
            let seldom = lock(&cell.seldom);
            if seldom.failures.as_ref().is_some_and(|failures| now <= failures.until) {
                return false;
            }
        }
        // AcqRel: a reserve in this word's order comes before, and this fails, or after, and that one does.
        if cell.word.compare_exchange(word, 0, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return false;
        }
        let name = lock(&cell.seldom).name.take();
        if let Some(name) = name {
            self.by_id.remove_if(&*name.id, |_, known| *known == key);
        }
        self.cells.free(key.index());
        true
    }

    /// Forgets every agent that was not seen since `before` and that nothing refers to. Returns how many.
    pub(crate) fn sweep(&self, before: Timestamp, now: Timestamp) -> usize {
        let stale = |(index, cell): (u32, &Agent)| {
            let word = cell.word.load(Ordering::Acquire);
            let unseen = cell.seen.load(Ordering::Relaxed) < seconds(before);
            let idle = word & LIVE != 0 && word & EXECUTORS_MASK == 0;
            (unseen && idle).then_some(AgentKey::new(index, word >> GENERATION_SHIFT))
        };
        self.cells.iter().filter_map(stale).filter(|key| self.retire(*key, now)).count()
    }

    /// The name of the agent in a cell.
    pub(crate) fn name(&self, index: u32) -> Option<Arc<AgentName>> {
        self.cells.get(index)?.name()
    }

    /// All agents, as they are while this walks by.
    pub(crate) fn views(&self, now: Timestamp) -> impl Iterator<Item = (u32, AgentView)> {
        self.cells.iter().filter_map(move |(index, cell)| {
            let word = cell.word.load(Ordering::Acquire);
            if word & LIVE == 0 {
                return None;
            }
            let name = cell.name()?;
            let until = Timestamp::from_millis(cell.excluded_until.load(Ordering::Relaxed));
            let excluded_until = (word & EXCLUDED != 0 && now < until).then_some(until);
            let executors = (word & EXECUTORS_MASK) as u32;
            Some((index, AgentView { name, executors, excluded_until }))
        })
    }

    /// How many agents are known.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use std::time::Duration;

    const RULE: ExclusionRule = ExclusionRule {
        failures: 3,
        window: Duration::from_millis(100),
        expiry: Some(Duration::from_millis(50)),
    };

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// Goal: failures count within a sliding window, exclude, and expire. Method: a history with a gap.
    #[test]
    fn failures_in_the_window_exclude_until_the_expiry() {
        let agents = Agents::new();
        let key = agents.meet("S1", "host", at(0)).unwrap();
        assert_eq!(agents.count_failure(key.index(), &RULE, at(0)), None);
        assert_eq!(agents.count_failure(key.index(), &RULE, at(90)), None);
        assert_eq!(
            agents.count_failure(key.index(), &RULE, at(101)),
            None,
            "the first is out of the window"
        );
        assert_eq!(agents.count_failure(key.index(), &RULE, at(102)), Some(at(152)));
        assert_eq!(agents.reserve(key, 1, at(151)), Err(Barred::Excluded(at(152))));
        assert!(!agents.retire(key, at(151)), "an exclusion is remembered");
        assert_eq!(agents.reserve(key, 1, at(152)), Ok(()));
        assert!(!agents.retire(key, at(200)), "an agent with executors is remembered");
        agents.release(key.index(), 1);
        assert!(agents.retire(key, at(200)));
        assert_eq!(agents.reserve(key, 1, at(200)), Err(Barred::Retired));
        assert_eq!(agents.len(), 0);
    }

    /// Goal: an agent is one line. Method: ask the compiler.
    #[test]
    fn a_cell_is_a_line() {
        assert_eq!(size_of::<Agent>(), 64);
    }

    /// Goal: a late offer of a forgotten agent meets a new entry, not the old one's books. Method: retire, meet again
    /// in the same cell, use the old key.
    #[test]
    fn an_old_key_opens_nothing() {
        let agents = Agents::new();
        let old = agents.meet("S1", "host", at(0)).unwrap();
        assert!(agents.retire(old, at(0)));
        let new = agents.meet("S2", "host", at(0)).unwrap();
        assert_eq!(old.index(), new.index(), "the cell is reused");
        assert_eq!(agents.reserve(old, 1, at(0)), Err(Barred::Retired));
        assert_eq!(agents.reserve(new, 1, at(0)), Ok(()));
    }
}
