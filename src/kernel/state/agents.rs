//! All agents: found by id the first time, by cell afterwards.
//!
//! The map from ids to cells is used when an agent is first seen; no guard leaves it. When an agent is forgotten, its
//! cell's word is cleared first and its entry in the map is removed afterwards. A thread that finds an entry in between
//! removes it itself, so that it doesn't wait for the other thread. The words are in the cells; see
//! [`agent`](super::agent).

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::sync::{AtomicU64, Map, Ordering, prefetch};

use super::admission::ReleaseCounter;
pub(crate) use super::agent::{AgentCapacity, AgentRefusal};
use super::agent::{AgentCell, AgentName, AgentView};
use super::agent_binding::AGENT_INDEX_MAX;
pub(crate) use super::agent_key::AgentKey;
use super::ended_counts::{AgentEnds, UsedCounters};
use super::offered::OfferedRecord;
use super::offered_details::OfferedDetails;
use super::offered_numbers::{NumberLine, NumberLines, OfferedNumbers, PIECE};
use super::slab::Slab;
use crate::config::ExclusionRule;
use crate::time::Timestamp;

/// An agent's name as a key of the map, compared by id.
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
        // `Borrow` requires the hash of the id.
        self.0.id.hash(state);
    }
}

/// An agent's cell, the ends that are counted beside it, and what is recorded of the agent's offers.
pub(crate) type AgentAndRecord<'a> = (&'a AgentCell, AgentEnds<'a>, OfferedRecord<'a>);

/// All agents that were candidates for placement or reported lost, until they are forgotten.
#[derive(Debug)]
pub(crate) struct AgentTable {
    cells: Slab<AgentCell>,
    /// By the indices of the cells.
    pub(crate) offered: NumberLines,
    by_id: Map<ById, AgentKey>,
    /// By which counters executors end.
    pub(crate) used_counters: UsedCounters,
    /// The next agent's generation. Relaxed: it only hands out numbers.
    next_generation: AtomicU64,
}

impl AgentTable {
    pub(crate) fn new() -> AgentTable {
        AgentTable {
            cells: Slab::new(),
            offered: NumberLines::new(),
            by_id: Map::new(),
            used_counters: UsedCounters::default(),
            next_generation: AtomicU64::new(0),
        }
    }

    /// See [`Slab::grow_ahead`].
    pub(crate) fn grow_ahead(&self) {
        self.cells.grow_ahead();
    }

    /// The cells and the words beside them.
    #[cfg(all(counting, test))]
    pub(crate) fn words(&self) -> (&Slab<AgentCell>, &Map<impl Eq + Hash, AgentKey>, &AtomicU64) {
        (&self.cells, &self.by_id, &self.next_generation)
    }

    /// Returns the agent with `id`, if it is known.
    pub(crate) fn find(&self, id: &str) -> Option<AgentKey> {
        self.by_id.get(id)
    }

    /// Returns the agent with `id`; inserts it if it is unknown or was forgotten. `None` if the table is full. The host
    /// name may be empty, if it is unknown; a later call supplies it.
    pub(crate) fn find_or_insert(
        &self,
        id: &str,
        hostname: &str,
        now: Timestamp,
    ) -> Option<AgentKey> {
        loop {
            let key = match self.find(id) {
                Some(known) => known,
                None => self.insert(id, hostname, now)?,
            };
            if self.is_current(key) {
                if let Some((cell, record)) = self.cells.get_with_hint(key.index()) {
                    cell.learn_hostname(key.generation(), hostname, &record.unnamed);
                }
                return Some(key);
            }
            // It was forgotten since it was found, or the thread that forgot it has not removed the entry yet.
            self.by_id.remove_value(id, &key);
        }
    }

    /// Gives the agent a cell and an entry. Returns the key of the entry, which another thread may have made.
    fn insert(&self, id: &str, hostname: &str, now: Timestamp) -> Option<AgentKey> {
        let mut claimed = Vec::with_capacity(1);
        if !self.cells.claim(1, &mut claimed) {
            return None;
        }
        let index = *claimed.first()?;
        if index > AGENT_INDEX_MAX {
            self.cells.free(index);
            return None;
        }
        let (cell, record) = self.cells.get_with_hint(index)?;
        let (_, ends) = self.cell(index)?;
        let key = AgentKey::new(index, self.next_generation.fetch_add(1, Ordering::Relaxed));
        let name = Arc::new(AgentName { id: id.into(), hostname: hostname.into() });
        record.unnamed.store(u32::from(hostname.is_empty()), Ordering::Relaxed);
        cell.prepare(Arc::clone(&name), now);
        let winner = self.by_id.get_or_insert_with(ById(name), || {
            // Under the entry's lock: a thread that retires the agent at once finds an entry to remove, and a thread
            // that finds the entry doesn't take the agent for a forgotten one.
            cell.activate(key.generation(), ends);
            key
        });
        if winner != key {
            cell.abandon();
            self.cells.free(index);
        }
        Some(winner)
    }

    /// The cell with this index, and the ends that are counted beside it.
    #[inline]
    fn cell(&self, index: u32) -> Option<(&AgentCell, AgentEnds<'_>)> {
        let (cell, ended, offset) = self.cells.get_with_beside(index)?;
        Some((cell, ended.at(offset, &self.used_counters)))
    }

    /// See [`AgentCell::capacity`]. Always inlined: each candidate asks.
    #[inline(always)]
    pub(crate) fn capacity(
        &self,
        key: AgentKey,
        now: Timestamp,
    ) -> Result<AgentCapacity, AgentRefusal> {
        let (cell, ends) = self.cell(key.index()).ok_or(AgentRefusal::Retired)?;
        cell.capacity(key.generation(), now, ends)
    }

    /// Records other numbers of what the agent offers, with the details that are recorded, unless the agent was
    /// forgotten. Returns `false`, and has done nothing, unless the recorded details are known to go with `numbers`; or
    /// if another thread is recording the agent or allocating its memory.
    #[inline]
    pub(crate) fn record_numbers(
        &self,
        key: AgentKey,
        offered: u32,
        mut numbers: OfferedNumbers,
    ) -> bool {
        let Some(cell) = self.cells.get(key.index()) else { return true };
        let writing = self.offered.get(key.index()).and_then(NumberLine::try_begin);
        numbers.generation = key.generation();
        let Some(writing) = writing.filter(|writing| writing.has_details_of(&numbers)) else {
            return false;
        };
        // As below.
        if cell.is_current(numbers.generation) {
            cell.set_offered(offered);
            writing.finish(numbers, false);
        }
        true
    }

    /// Has the record of what the agent offered rewritten by `write`, unless the agent was forgotten. Returns `false`,
    /// and has done nothing, if another thread is recording the agent, reads its details or is allocating its memory.
    pub(crate) fn record_offered(
        &self,
        key: AgentKey,
        offered: u32,
        write: impl FnOnce(&mut OfferedNumbers, &mut OfferedDetails),
    ) -> bool {
        let Some((cell, record)) = self.cells.get_with_hint(key.index()) else { return true };
        let Some(line) = self.offered.get_or_make(key.index()) else { return false };
        let generation = key.generation();
        record.rewrite(
            line,
            |numbers, details| {
                // If the agent is forgotten from here on, the record is of an agent that is never asked for again, and
                // the fingerprint one that no other agent has.
                let is_current = cell.is_current(generation);
                if is_current {
                    write(numbers, details);
                    numbers.generation = generation;
                }
                is_current
            },
            || cell.set_offered(offered),
        )
    }

    /// Asks memory for the numbers of the agent's record.
    #[inline]
    pub(crate) fn prefetch_record(&self, key: AgentKey) {
        if let Some(line) = self.offered.get(key.index()) {
            line.prefetch();
        }
    }

    /// All cells that were ever in use, with the ends that are counted beside them, and with what is recorded of their
    /// agents' offers, in the order of their indices. None for a cell whose segment is being allocated: no agent is
    /// there yet.
    pub(crate) fn records(&self) -> impl Iterator<Item = Option<AgentAndRecord<'_>>> {
        let mut piece = None;
        self.cells.iter_with_hints_and_beside().zip(0usize..).map(move |(found, index)| {
            let at = index % PIECE;
            if at == 0 {
                piece = self.offered.piece(index / PIECE);
            }
            let (cell, offered, ended, offset) = found?;
            let numbers = piece.and_then(|lines| lines.get(at));
            let ends = ended.at(offset, &self.used_counters);
            Some((cell, ends, OfferedRecord::new(offered, numbers)))
        })
    }

    /// See [`AgentCell::reserve`]. Always inlined, as that is: each accepted offer calls it.
    #[inline(always)]
    pub(crate) fn reserve(
        &self,
        key: AgentKey,
        executors: u32,
        now: Timestamp,
    ) -> Result<bool, AgentRefusal> {
        let (cell, ends) = self.cell(key.index()).ok_or(AgentRefusal::Retired)?;
        cell.reserve(key.generation(), executors, now, ends)
    }

    /// See [`AgentCell::reserve_bound`].
    pub(crate) fn reserve_bound(&self, key: AgentKey, now: Timestamp) -> Result<(), AgentRefusal> {
        let (cell, ends) = self.cell(key.index()).ok_or(AgentRefusal::Retired)?;
        cell.reserve_bound(key.generation(), now, ends)
    }

    /// See [`AgentCell::is_suspect`].
    pub(crate) fn is_suspect(&self, key: AgentKey, now: Timestamp) -> bool {
        self.cells.get(key.index()).is_some_and(|cell| cell.is_suspect(now))
    }

    /// See [`AgentCell::set_unrecorded`].
    pub(crate) fn set_unrecorded(&self, index: u32) {
        if let Some(cell) = self.cells.get(index) {
            cell.set_unrecorded();
        }
    }

    /// See [`AgentCell::clear_failure_mark`].
    pub(crate) fn clear_failure_mark(&self, index: u32) {
        if let Some(cell) = self.cells.get(index) {
            cell.clear_failure_mark();
        }
    }

    /// See [`AgentCell::release`].
    pub(crate) fn release(&self, index: u32, executors: u32) {
        if let Some(cell) = self.cells.get(index) {
            cell.release(executors);
        }
    }

    /// Counts an executor of an updater with this counter as ended; see [`ended_counts`](super::ended_counts).
    #[inline]
    pub(crate) fn count_ended(&self, index: u32, counter: ReleaseCounter) {
        if let Some((_, ends)) = self.cell(index) {
            ends.add(counter);
        }
    }

    /// Asks memory for the agent's cell.
    #[inline]
    pub(crate) fn prefetch(&self, index: u32) {
        if let Some(cell) = self.cells.get(index) {
            prefetch(cell);
        }
    }

    /// See [`AgentCell::record_failure`].
    pub(crate) fn record_failure(
        &self,
        index: u32,
        rule: Option<&ExclusionRule>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        self.cells.get(index)?.record_failure(rule, now)
    }

    /// The number of executors on the agent in the cell.
    pub(crate) fn executors_at(&self, index: u32) -> u32 {
        self.cell(index).map_or(0, |(cell, ends)| cell.count(ends).1.into())
    }

    /// The number of executors on the agent.
    pub(crate) fn executors(&self, key: AgentKey) -> u32 {
        self.cell(key.index()).map_or(0, |(cell, ends)| cell.executors(key.generation(), ends))
    }

    /// Whether the key is still its agent's: the agent was not forgotten.
    pub(crate) fn is_current(&self, key: AgentKey) -> bool {
        self.cells.get(key.index()).is_some_and(|cell| cell.is_current(key.generation()))
    }

    /// The agents that hold executors, each as it is when the iterator reaches it.
    pub(crate) fn holders(&self) -> impl Iterator<Item = (AgentKey, Arc<AgentName>)> {
        self.cells().filter_map(|(index, cell, ends)| {
            cell.holder(ends).map(|(generation, name)| (AgentKey::new(index, generation), name))
        })
    }

    /// Prevents executors from starting on the agent with `id` before `until`. Inserts the agent if it is unknown or
    /// was forgotten, so that the suspicion is there when its first offer comes. `None` if the table is full.
    pub(crate) fn suspect(&self, id: &str, until: Timestamp, now: Timestamp) -> Option<AgentKey> {
        loop {
            let key = self.find_or_insert(id, "", now)?;
            if self.cells.get(key.index())?.suspect(key.generation(), until) {
                return Some(key);
            }
            // It was forgotten in between; insert it again.
        }
    }

    /// Ends the exclusion and the suspicion of the agent with `id`; see [`AgentCell::readmit`].
    pub(crate) fn readmit(&self, id: &str, now: Timestamp) -> bool {
        let readmit = |key: AgentKey| {
            self.cells.get(key.index()).is_some_and(|cell| cell.readmit(key.generation(), now))
        };
        self.find(id).is_some_and(readmit)
    }

    /// See [`AgentCell::record_seen`].
    pub(crate) fn record_seen(&self, key: AgentKey, now: Timestamp) {
        if let Some(cell) = self.cells.get(key.index()) {
            cell.record_seen(now);
        }
    }

    /// Forgets the agent whenever it was seen last, unless something else keeps it; see [`AgentCell::retire`].
    #[cfg(test)]
    pub(crate) fn retire(&self, key: AgentKey, now: Timestamp) -> bool {
        self.forget(key, Timestamp::MAX, now, &|| false)
    }

    /// See [`AgentCell::retire`]; for `names_stay` see [`AgentTable::sweep`].
    fn forget(
        &self,
        key: AgentKey,
        before: Timestamp,
        now: Timestamp,
        names_stay: &dyn Fn() -> bool,
    ) -> bool {
        let Some((cell, ends)) = self.cell(key.index()) else { return false };
        if !cell.retire(key.generation(), before, now, ends) {
            return false;
        }
        let stays = names_stay();
        let name = if stays { cell.name() } else { cell.take_name() };
        if let Some(name) = name {
            self.by_id.remove_value(&*name.id, &key);
        }
        if !stays {
            self.cells.free(key.index());
        }
        true
    }

    /// Forgets all agents that were not seen since `before` and that nothing keeps. Returns how many.
    ///
    /// `names_stay` is called after an agent was forgotten, hence after all its executors have left their cells. If it
    /// returns `true`, the agent's cell keeps its name and is not reused.
    pub(crate) fn sweep(
        &self,
        before: Timestamp,
        now: Timestamp,
        names_stay: &dyn Fn() -> bool,
    ) -> usize {
        let stale = self.cells().filter_map(|(index, cell, ends)| {
            cell.stale(before, ends).map(|generation| AgentKey::new(index, generation))
        });
        stale.filter(|key| self.forget(*key, before, now, names_stay)).count()
    }

    /// The generation of the agent in the cell, if there is one.
    #[inline]
    pub(crate) fn generation(&self, index: u32) -> Option<u64> {
        self.cells.get(index)?.generation()
    }

    /// The name of the agent in the cell, if it is of this generation.
    pub(crate) fn name_of(&self, index: u32, generation: u64) -> Option<Arc<AgentName>> {
        self.cells.get(index)?.name_of(generation)
    }

    /// The id of the agent in the cell.
    pub(crate) fn id(&self, index: u32) -> Option<Arc<str>> {
        self.cells.get(index)?.id()
    }

    /// All agents with the indices of their cells and their names, each as it is when the iterator reaches it.
    pub(crate) fn views(
        &self,
        now: Timestamp,
    ) -> impl Iterator<Item = (u32, AgentView, Arc<AgentName>)> {
        self.cells().filter_map(move |(index, cell, ends)| {
            let view = cell.view(now, ends)?;
            Some((index, view, cell.name_of(view.generation)?))
        })
    }

    /// All cells that were ever in use, with their indices and the ends that are counted beside them.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (u32, &AgentCell, AgentEnds<'_>)> {
        self.cells.iter_with_beside().map(|(index, (cell, ended, offset))| {
            (index, cell, ended.at(offset, &self.used_counters))
        })
    }

    /// The ends of all exclusions in force.
    pub(crate) fn exclusions(&self, now: Timestamp) -> impl Iterator<Item = Timestamp> {
        self.cells.iter().filter_map(move |(_, cell)| cell.exclusion(now))
    }

    /// The ids of all agents that are excluded, and until when.
    pub(crate) fn excluded(&self, now: Timestamp) -> impl Iterator<Item = (Arc<str>, Timestamp)> {
        self.cells().filter_map(move |(_, cell, ends)| {
            let until = cell.exclusion(now)?;
            let view = cell.view(now, ends)?;
            let name = cell.name_of(view.generation)?;
            Some((Arc::clone(&name.id), view.excluded_until.unwrap_or(until)))
        })
    }

    /// The number of known agents.
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
        let agents = AgentTable::new();
        let key = agents.find_or_insert("S1", "host", at(0)).unwrap();
        assert_eq!(agents.record_failure(key.index(), Some(&RULE), at(0)), None);
        assert_eq!(agents.record_failure(key.index(), Some(&RULE), at(90)), None);
        assert_eq!(
            agents.record_failure(key.index(), Some(&RULE), at(101)),
            None,
            "the first is out of the window"
        );
        assert_eq!(agents.record_failure(key.index(), Some(&RULE), at(102)), Some(at(152)));
        assert_eq!(agents.reserve(key, 1, at(151)), Err(AgentRefusal::Excluded(at(152))));
        assert!(!agents.retire(key, at(151)), "an exclusion is remembered");
        assert_eq!(agents.reserve(key, 1, at(152)), Ok(true), "it is marked as well");
        assert!(!agents.retire(key, at(200)), "an agent with executors is remembered");
        agents.release(key.index(), 1);
        assert!(agents.retire(key, at(200)));
        assert_eq!(agents.reserve(key, 1, at(200)), Err(AgentRefusal::Retired));
        assert_eq!(agents.len(), 0);
    }

    /// Goal: if the clock goes back, no agent is forgotten earlier. Method: see an agent late, then early, and by an
    /// update early, as the fuzz input `clock_goes_far_back_and_forward` does; sweep at the later time.
    #[test]
    fn a_clock_that_went_back_forgets_no_agent_sooner() {
        let agents = AgentTable::new();
        let key = agents.find_or_insert("S1", "host", at(4_000_000)).unwrap();
        agents.record_seen(key, at(0));
        agents.record_failure(key.index(), None, at(1_000));
        assert_eq!(agents.sweep(at(4_000_000), at(4_900_000), &|| false), 0);
        assert_eq!(agents.sweep(at(4_001_000), at(4_901_000), &|| false), 1);
        let again = agents.find_or_insert("S2", "host", at(0)).unwrap();
        assert_eq!(key.index(), again.index(), "the cell is reused");
        let swept = agents.sweep(at(1_000), at(901_000), &|| false);
        assert_eq!(swept, 1, "and seen as its new agent is");
    }

    /// Goal: the key of a forgotten agent doesn't reserve anything of the next agent in its cell. Method: retire,
    /// insert another agent in the same cell, use the old key.
    #[test]
    fn an_old_key_opens_nothing() {
        let agents = AgentTable::new();
        let old = agents.find_or_insert("S1", "host", at(0)).unwrap();
        assert!(agents.retire(old, at(0)));
        let new = agents.find_or_insert("S2", "host", at(0)).unwrap();
        assert_eq!(old.index(), new.index(), "the cell is reused");
        assert_eq!(agents.reserve(old, 1, at(0)), Err(AgentRefusal::Retired));
        assert_eq!(agents.reserve(new, 1, at(0)), Ok(false));
    }
}
