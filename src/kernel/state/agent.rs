//! An agent's cell: one [word](super::agent_word) decides whether executors may start on the agent.
//!
//! | thread | operation | ordering | pairs with |
//! |---|---|---|---|
//! | handler | [`AgentCell::reserve`]: compare-exchange | AcqRel | `exclude`: after it, no reserve succeeds |
//! | update that binds an executor | [`AgentCell::reserve_bound`]: compare-exchange, then binds, then [`AgentCell::is_suspect`]: fetch-add of 0 | AcqRel | `exclude`, as above; `suspect`: the thread that reports the loss finds the executor bound, or this one finds the suspicion |
//! | any that ends an executor without an updater, or takes back a reservation | [`AgentCell::release`]: compare-exchange | Release | `retire` |
//! | the thread that inserts the agent | [`AgentCell::prepare`]: a fence, the other words; then [`AgentCell::activate`]: store | Release | all others: the cell is initialised before it belongs to the agent; the fence: `view` |
//! | any that counts a failure | `excluded_until`, then `exclude`: compare-exchange | Release | the load of `reserve` |
//! | any that reports a loss | `suspect_until`, then [`AgentCell::suspect`]: compare-exchange | AcqRel | the load of `reserve`; `is_suspect` |
//! | any that readmits the agent | `excluded_until`, `suspect_until`, then [`AgentCell::readmit`]: compare-exchange | Release | the load of `reserve` |
//! | tick | [`AgentCell::retire`]: compare-exchange | AcqRel | `reserve`: fails from now on |
//! | handler that plans, a sweep, a report, the setter of wanted hosts | [`AgentCell::count`], [`AgentCell::exclusion`]: load | Acquire | `activate`, `release` and the changes above |
//! | a report | [`AgentCell::view`]: load, loads of the other words, [`AgentCell::is_current`] | Acquire, with a fence before the last | the fences in `prepare` and `readmit`: no word of the cell's next agent is taken for this one's |
//!
//! Rarely used fields (the name, the times of failures) are behind a lock that the offer path doesn't take. Failures,
//! exclusions and suspicions are recorded under it, [`AgentCell::readmit`] ends them under it, and
//! [`AgentCell::retire`] checks and exchanges under it. So a reason to keep the agent is either there when `retire`
//! checks, or is recorded after the cell ceased to be the agent's. The latter happens only with suspicions, because a
//! thread that counts a failure still holds an executor there. And a failure, with the exclusion that it may cause,
//! comes before a readmission, which forgets both, or after it, and stays. The other words are hints: nothing is read
//! through them, so they need no ordering.

use std::sync::Arc;

use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering, fence, lock};

pub(crate) use super::agent_view::{AgentCapacity, AgentName, AgentRefusal, AgentView, seconds};
use super::agent_word::{
    EXCLUDED, GENERATION_SHIFT, LIVE, REVISION_MASK, REVISION_ONE, executors, room, with_started,
};
use super::ended_counts::{AgentEnds, EndedCounts};
use super::offered::{NOT_RECORDED, OfferedCell};
use super::slab::SlabCell;
use crate::config::ExclusionRule;
use crate::time::Timestamp;

/// How long an agent is used after all others because an executor failed on it, in seconds.
const FAILED_LATELY: u32 = 300;

/// One agent's cell: a cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct AgentCell {
    word: AtomicU64,
    excluded_until: AtomicU64,
    /// Until when no executor is placed because the agent may be lost. Relaxed: the later change of the word publishes
    /// it.
    suspect_until: AtomicU64,
    /// When the agent was last seen, in seconds. A hint without ordering; it may be late.
    seen: AtomicU32,
    /// When an executor failed after which none was placed, in seconds, plus one; 0 is never. A hint without ordering.
    failed: AtomicU32,
    /// The fingerprint of what the agent offered last, or [`NOT_RECORDED`]. A hint without ordering; see
    /// [`offered`](super::offered).
    offered: AtomicU32,
    cold: Mutex<ColdFields>,
}

#[derive(Debug, Default)]
struct ColdFields {
    name: Option<Arc<AgentName>>,
    /// Only if the agent has failures.
    failures: Option<Box<FailureTimes>>,
}

#[derive(Debug, Default)]
struct FailureTimes {
    at: Vec<Timestamp>,
    /// Until when the last of them may count.
    until: Timestamp,
}

impl Default for AgentCell {
    fn default() -> AgentCell {
        AgentCell {
            word: AtomicU64::new(0),
            excluded_until: AtomicU64::new(0),
            suspect_until: AtomicU64::new(0),
            seen: AtomicU32::new(0),
            failed: AtomicU32::new(0),
            offered: AtomicU32::new(NOT_RECORDED),
            cold: Mutex::new(ColdFields::default()),
        }
    }
}

impl SlabCell for AgentCell {
    type Hint = OfferedCell;
    type Beside = EndedCounts;
}

impl AgentCell {
    /// Initialises a claimed cell for an agent. Other threads don't find it before [`AgentCell::activate`].
    pub(crate) fn prepare(&self, name: Arc<AgentName>, now: Timestamp) {
        // Release: pairs with the fence in `view`. A thread that reads what is stored here, or added to it later, finds
        // that the cell isn't the former agent's any more.
        fence(Ordering::Release);
        self.offered.store(NOT_RECORDED, Ordering::Relaxed);
        *lock(&self.cold) = ColdFields { name: Some(name), failures: None };
        self.excluded_until.store(0, Ordering::Relaxed);
        self.suspect_until.store(0, Ordering::Relaxed);
        self.failed.store(0, Ordering::Relaxed);
        self.seen.store(seconds(now), Ordering::Relaxed);
    }

    pub(crate) fn activate(&self, generation: u64, ends: AgentEnds<'_>) {
        let word = LIVE | generation << GENERATION_SHIFT | u64::from(ends.sum_of_all());
        // Release: the cell is initialised before it belongs to the agent.
        self.word.store(word, Ordering::Release);
    }

    /// Undoes [`AgentCell::prepare`]: another thread inserted the agent first.
    pub(crate) fn abandon(&self) {
        lock(&self.cold).name = None;
    }

    /// Supplies the host name, if it is unknown.
    pub(crate) fn learn_hostname(&self, generation: u64, hostname: &str, unnamed: &AtomicU32) {
        if unnamed.load(Ordering::Relaxed) == 0 || hostname.is_empty() {
            return;
        }
        let mut cold = lock(&self.cold);
        if self.is_current(generation)
            && let Some(name) = cold.name.as_mut().filter(|name| name.hostname.is_empty())
        {
            *name = Arc::new(AgentName { id: name.id.clone(), hostname: hostname.into() });
            unnamed.store(0, Ordering::Relaxed);
        }
    }

    pub(crate) fn name(&self) -> Option<Arc<AgentName>> {
        lock(&self.cold).name.clone()
    }

    /// The generation of the agent in the cell, if there is one.
    pub(crate) fn generation(&self) -> Option<u64> {
        let word = self.word.load(Ordering::Acquire);
        (word & LIVE != 0).then_some(word >> GENERATION_SHIFT)
    }

    pub(crate) fn id(&self) -> Option<Arc<str>> {
        lock(&self.cold).name.as_ref().map(|name| Arc::clone(&name.id))
    }

    /// Returns what the agent takes, or why nothing. For planning; only `reserve` decides.
    #[inline(always)]
    pub(crate) fn capacity(
        &self,
        generation: u64,
        now: Timestamp,
        ends: AgentEnds<'_>,
    ) -> Result<AgentCapacity, AgentRefusal> {
        let (word, count) = self.count(ends);
        self.check_usable(word, generation, now)?;
        let executors = room(count);
        if executors == 0 {
            return Err(AgentRefusal::Full);
        }
        // Relaxed: a hint; see `offered`.
        let offered = self.offered.load(Ordering::Relaxed);
        Ok(AgentCapacity { executors, failed: self.failed_lately(now), offered })
    }

    /// The word, and the number of executors on the agent in the cell at that moment. Reads again while others change
    /// the word.
    #[inline(always)]
    pub(super) fn count(&self, ends: AgentEnds<'_>) -> (u64, u16) {
        // Acquire: pairs with the Release of `exclude`; and the ends read below include those that made room for the
        // last executor that the word counts.
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let ended = ends.sum();
            let again = self.word.load(Ordering::Acquire);
            if again == word {
                // A cell without an agent counts nothing: its word is 0, the ends of its last agent are not.
                return (word, if word & LIVE == 0 { 0 } else { executors(word, ended) });
            }
            word = again;
        }
    }

    /// Stores the fingerprint of what is recorded of the agent's offers, unless it is there; see
    /// [`offered`](super::offered).
    pub(crate) fn set_offered(&self, offered: u32) {
        if self.offered.load(Ordering::Relaxed) != offered {
            self.offered.store(offered, Ordering::Relaxed);
        }
    }

    /// Has the agent's next offer recorded, whatever it is.
    pub(crate) fn set_unrecorded(&self) {
        // Relaxed: a hint; see `offered`.
        self.offered.store(NOT_RECORDED, Ordering::Relaxed);
    }

    /// Counts `executors` more if the agent takes them. Returns whether its failure mark must be
    /// [cleared](AgentCell::clear_failure_mark). Clears an exclusion that has ended.
    #[inline(always)]
    pub(crate) fn reserve(
        &self,
        generation: u64,
        executors: u32,
        now: Timestamp,
        ends: AgentEnds<'_>,
    ) -> Result<bool, AgentRefusal> {
        loop {
            let (word, count) = self.count(ends);
            self.check_usable(word, generation, now)?;
            if u32::from(room(count)) < executors {
                return Err(AgentRefusal::Full);
            }
            // AcqRel: nothing is reserved after an exclusion in this word's order. Executors that have ended since the
            // count only make room.
            if self.exchange(word, with_started(word & !EXCLUDED, executors), Ordering::AcqRel) {
                return Ok(self.failed.load(Ordering::Relaxed) != 0);
            }
        }
    }

    /// Counts an executor that the cluster has placed here on its own. A suspicion doesn't prevent that: the executor
    /// is there. Otherwise as [`AgentCell::reserve`].
    pub(crate) fn reserve_bound(
        &self,
        generation: u64,
        now: Timestamp,
        ends: AgentEnds<'_>,
    ) -> Result<(), AgentRefusal> {
        loop {
            let (word, count) = self.count(ends);
            match self.check_usable(word, generation, now) {
                Ok(()) | Err(AgentRefusal::Suspect(_)) => {}
                Err(refusal) => return Err(refusal),
            }
            if room(count) == 0 {
                return Err(AgentRefusal::Full);
            }
            // AcqRel: as in `reserve`.
            if self.exchange(word, with_started(word & !EXCLUDED, 1), Ordering::AcqRel) {
                return Ok(());
            }
        }
    }

    /// Whether the agent was reported lost, after the caller has bound an executor here. If this doesn't see the
    /// report, the reporter sees the executor.
    pub(crate) fn is_suspect(&self, now: Timestamp) -> bool {
        // AcqRel: in this word's order, the suspicion comes before, and this sees until when, or after, and the thread
        // that suspects sees what this one did before.
        self.word.fetch_add(0, Ordering::AcqRel);
        now < Timestamp::from_millis(self.suspect_until.load(Ordering::Relaxed))
    }

    /// Clears the failure mark: executors that were reserved here were admitted.
    pub(crate) fn clear_failure_mark(&self) {
        self.failed.store(0, Ordering::Relaxed);
    }

    /// Counts `executors` fewer. The caller holds them, so the cell is still the agent's.
    pub(crate) fn release(&self, executors: u32) {
        loop {
            let word = self.word.load(Ordering::Relaxed);
            let fewer = with_started(word, executors.wrapping_neg());
            if self.exchange(word, fewer, Ordering::Release) {
                return;
            }
        }
    }

    /// Replaces the word by `next` if it is `word`. May fail although it is.
    #[inline(always)]
    fn exchange(&self, word: u64, next: u64, order: Ordering) -> bool {
        self.word.compare_exchange_weak(word, next, order, Ordering::Relaxed).is_ok()
    }

    /// Records the failure of an executor that the caller still holds: for a while other agents are used first, until
    /// the agent gets another executor. This also counts as having seen the agent. With a rule the failure is counted,
    /// and if this excludes the agent, returns until when.
    pub(crate) fn record_failure(
        &self,
        rule: Option<&ExclusionRule>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let generation = self.word.load(Ordering::Acquire) >> GENERATION_SHIFT;
        // Held until the word is changed, so that a readmission comes before or after all of it.
        let mut cold = lock(&self.cold);
        self.failed.store(seconds(now).saturating_add(1), Ordering::Relaxed);
        self.record_seen(now);
        let rule = rule?;
        let failures = cold.failures.get_or_insert_default();
        failures.at.retain(|at| now.since(*at) <= rule.window);
        failures.at.push(now);
        failures.until = failures.until.max(now.plus(rule.window));
        if failures.at.len() < usize::from(rule.failures) {
            return None;
        }
        cold.failures = None;
        let until = rule.expiry.map_or(Timestamp::MAX, |expiry| now.plus(expiry));
        Some(self.exclude(generation, until))
    }

    /// The number of executors on the agent; 0 if the cell is another's.
    pub(crate) fn executors(&self, generation: u64, ends: AgentEnds<'_>) -> u32 {
        let (word, count) = self.count(ends);
        if word >> GENERATION_SHIFT == generation { count.into() } else { 0 }
    }

    /// Whether the cell still belongs to the agent.
    pub(crate) fn is_current(&self, generation: u64) -> bool {
        self.generation() == Some(generation)
    }

    /// The generation and name of the agent in the cell, if it holds executors.
    pub(crate) fn holder(&self, ends: AgentEnds<'_>) -> Option<(u64, Arc<AgentName>)> {
        let (word, count) = self.count(ends);
        if count > 0 { Some((word >> GENERATION_SHIFT, self.name()?)) } else { None }
    }

    /// Prevents executors from starting on the agent before `until`: after this no `reserve` succeeds at an earlier
    /// time. Returns `false` and changes nothing if the cell is not the agent's any more.
    pub(crate) fn suspect(&self, generation: u64, until: Timestamp) -> bool {
        // Held until the word is changed, so that the cell doesn't become another agent's in between.
        let _seldom = lock(&self.cold);
        self.is_current(generation) && {
            self.suspect_until.fetch_max(until.as_millis(), Ordering::Relaxed);
            self.bump_revision(generation, 0, 0);
            true
        }
    }

    /// Ends an exclusion and a suspicion, and forgets failures and the failure mark. Returns whether the agent was
    /// excluded or suspect; `false` if the cell is not the agent's any more.
    pub(crate) fn readmit(&self, generation: u64, now: Timestamp) -> bool {
        // Held until the word is changed, as for an exclusion.
        let mut cold = lock(&self.cold);
        let word = self.word.load(Ordering::Acquire);
        let refusal = self.check_usable(word, generation, now).err();
        if refusal == Some(AgentRefusal::Retired) {
            return false;
        }
        cold.failures = None;
        self.clear_failure_mark();
        // Release: as in `prepare`, because these stores are not on top of its own.
        fence(Ordering::Release);
        // Relaxed: the change of the word publishes them.
        self.excluded_until.store(0, Ordering::Relaxed);
        self.suspect_until.store(0, Ordering::Relaxed);
        self.bump_revision(generation, EXCLUDED, 0);
        refusal.is_some()
    }

    /// Records that the agent was seen. If the clock goes back, the agent is not forgotten earlier.
    pub(crate) fn record_seen(&self, now: Timestamp) {
        self.seen.fetch_max(seconds(now), Ordering::Relaxed);
    }

    /// Removes the agent from the cell, unless it holds executors, was seen since `before`, is excluded or suspect, or
    /// has failures that may still count. The caller that succeeds frees the cell.
    pub(crate) fn retire(
        &self,
        generation: u64,
        before: Timestamp,
        now: Timestamp,
        ends: AgentEnds<'_>,
    ) -> bool {
        // Held until after the exchange, so that no failure or suspicion is recorded between the check and the
        // exchange. The word alone would not show a failure: its executor may have come and gone.
        let cold = lock(&self.cold);
        let (word, count) = self.count(ends);
        if count != 0 || self.check_usable(word, generation, now).is_err() {
            return false;
        }
        let counting = cold.failures.as_ref().is_some_and(|failures| now <= failures.until);
        if counting || !self.unseen_since(before) {
            return false;
        }
        // AcqRel: in this word's order, a `reserve` comes before, and this fails, or after, and the `reserve` fails.
        self.word.compare_exchange(word, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn unseen_since(&self, before: Timestamp) -> bool {
        u64::from(self.seen.load(Ordering::Relaxed)) * 1000 < before.as_millis()
    }

    /// Removes the name from a cell that belongs to no agent any more.
    pub(crate) fn take_name(&self) -> Option<Arc<AgentName>> {
        lock(&self.cold).name.take()
    }

    /// The generation of an agent without executors that was not seen since `before`.
    pub(crate) fn stale(&self, before: Timestamp, ends: AgentEnds<'_>) -> Option<u64> {
        let (word, count) = self.count(ends);
        let idle = word & LIVE != 0 && count == 0;
        (idle && self.unseen_since(before)).then_some(word >> GENERATION_SHIFT)
    }

    /// The agent in the cell, for reports. None if the cell ceases to be the agent's meanwhile.
    #[inline]
    pub(crate) fn view(&self, now: Timestamp, ends: AgentEnds<'_>) -> Option<AgentView> {
        let (word, count) = self.count(ends);
        if word & LIVE == 0 {
            return None;
        }
        // Relaxed: as in `check_usable`.
        let suspect_until = Timestamp::from_millis(self.suspect_until.load(Ordering::Relaxed));
        let view = AgentView {
            generation: word >> GENERATION_SHIFT,
            executors: count,
            excluded_until: self.excluded_until(word, now),
            suspect_until: (now < suspect_until).then_some(suspect_until),
            seen: self.seen.load(Ordering::Relaxed),
        };
        // Acquire: pairs with the fences in `prepare` and `readmit`. If a word above is the next agent's, the load
        // below finds that the cell isn't this one's any more.
        fence(Ordering::Acquire);
        self.is_current(view.generation).then_some(view)
    }

    /// The name of the agent in the cell, if it is still of this generation.
    pub(crate) fn name_of(&self, generation: u64) -> Option<Arc<AgentName>> {
        let name = self.name();
        // After the name: it is written before the cell becomes the agent's, and removed after it ceases to be.
        name.filter(|_| self.is_current(generation))
    }

    /// The id and the host name of the agent in the cell, if it is still of this generation.
    pub(crate) fn names_of(&self, generation: u64) -> Option<(Arc<str>, Arc<str>)> {
        let copied = |name: &Arc<AgentName>| (Arc::clone(&name.id), Arc::clone(&name.hostname));
        let names = lock(&self.cold).name.as_ref().map(copied)?;
        // As in `name_of`.
        self.is_current(generation).then_some(names)
    }

    /// Until when the agent in the cell is excluded, if it is.
    pub(crate) fn exclusion(&self, now: Timestamp) -> Option<Timestamp> {
        let word = self.word.load(Ordering::Acquire);
        self.excluded_until(word, now)
    }

    fn excluded_until(&self, word: u64, now: Timestamp) -> Option<Timestamp> {
        let until = Timestamp::from_millis(self.excluded_until.load(Ordering::Relaxed));
        (word & EXCLUDED != 0 && now < until).then_some(until)
    }

    /// Why the agent takes no executor, unless it does or is merely full. Always inlined: each offer asks.
    #[inline(always)]
    fn check_usable(&self, word: u64, generation: u64, now: Timestamp) -> Result<(), AgentRefusal> {
        if word & LIVE == 0 || word >> GENERATION_SHIFT != generation {
            return Err(AgentRefusal::Retired);
        }
        if word & EXCLUDED != 0 {
            // Relaxed: stored before the bit that the caller's Acquire saw. A newer value extends the exclusion or ends
            // it: then it was readmitted.
            let until = Timestamp::from_millis(self.excluded_until.load(Ordering::Relaxed));
            if now < until {
                return Err(AgentRefusal::Excluded(until));
            }
        }
        // Relaxed: stored before the revision that the caller's Acquire saw, as above.
        let suspect = Timestamp::from_millis(self.suspect_until.load(Ordering::Relaxed));
        if now < suspect {
            return Err(AgentRefusal::Suspect(suspect));
        }
        Ok(())
    }

    /// Whether an executor failed here recently and none was placed since.
    fn failed_lately(&self, now: Timestamp) -> bool {
        let failed = self.failed.load(Ordering::Relaxed);
        failed != 0 && seconds(now).saturating_sub(failed - 1) <= FAILED_LATELY
    }

    /// Starts or extends an exclusion. Returns when it ends; no executor is placed here before.
    fn exclude(&self, generation: u64, until: Timestamp) -> Timestamp {
        let before = self.excluded_until.fetch_max(until.as_millis(), Ordering::Relaxed);
        self.bump_revision(generation, 0, EXCLUDED);
        until.max(Timestamp::from_millis(before))
    }

    /// Changes the revision, clears `clear` and sets `set`, so that a compare-exchange based on an earlier word fails.
    fn bump_revision(&self, generation: u64, clear: u64, set: u64) {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & LIVE != 0 && word >> GENERATION_SHIFT == generation {
            let revision = word.wrapping_add(REVISION_ONE) & REVISION_MASK;
            let next = word & !(REVISION_MASK | clear) | revision | set;
            // Release: a thread that sees the revision sees the time until which it applies. Acquire: pairs with
            // `is_suspect`.
            let swapped =
                self.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Relaxed);
            match swapped {
                Ok(_) => return,
                Err(current) => word = current,
            }
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::kernel::state::admission::Admission;
    use crate::kernel::state::ended_counts::UsedCounters;
    use crate::kernel::state::slab::Beside;
    use crate::limits::EXECUTORS_PER_AGENT_MAX;

    /// Nothing is counted beside a cell.
    fn no_ends() -> AgentEnds<'static> {
        static NONE: LazyLock<(EndedCounts, UsedCounters)> =
            LazyLock::new(|| (EndedCounts::new(1), UsedCounters::default()));
        NONE.0.at(0, &NONE.1)
    }

    /// Goal: a cell is one cache line. Method: ask the compiler.
    #[test]
    fn a_cell_is_a_line() {
        assert_eq!(size_of::<AgentCell>(), 64);
    }

    /// Goal: an agent is a holder while there are executors on it. Method: a cell before it belongs to an agent, then
    /// two executors that come and go.
    #[test]
    fn a_holder_has_executors() {
        let cell = AgentCell::default();
        let holder = |cell: &AgentCell| {
            cell.holder(no_ends()).map(|(generation, name)| (generation, name.id.clone()))
        };
        let name = AgentName { id: "S1".into(), hostname: "host".into() };
        cell.prepare(Arc::new(name), Timestamp::ORIGIN);
        assert_eq!(holder(&cell), None, "not yet an agent's");
        cell.activate(7, no_ends());
        assert_eq!(holder(&cell), None);
        cell.reserve(7, 2, Timestamp::ORIGIN, no_ends()).unwrap();
        assert_eq!(holder(&cell), Some((7, "S1".into())));
        cell.release(1);
        assert_eq!(holder(&cell), Some((7, "S1".into())));
        cell.release(1);
        assert_eq!(holder(&cell), None);
    }
    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// A cell that belongs to an agent of this generation.
    fn cell(generation: u64) -> AgentCell {
        let cell = AgentCell::default();
        cell.prepare(Arc::new(AgentName { id: "S1".into(), hostname: "host".into() }), at(0));
        cell.activate(generation, no_ends());
        cell
    }

    /// Goal: a new revision changes nothing else of the word but what is asked for, and only the agent's own. Method: a
    /// full circle of revisions, with each change of the exclusion, made twice.
    #[test]
    fn a_revision_changes_what_is_asked_for() {
        for (generation, executors) in [(0, 0), (1, 1), (5, EXECUTORS_PER_AGENT_MAX)] {
            let cell = cell(generation);
            if executors > 0 {
                cell.reserve(generation, executors, at(0), no_ends()).unwrap();
            }
            let changes = [(0, 0), (0, EXCLUDED), (0, EXCLUDED), (EXCLUDED, 0), (EXCLUDED, 0)];
            for (clear, set) in changes.into_iter().cycle().take(600) {
                let before = cell.word.load(Ordering::Relaxed);
                cell.bump_revision(generation + 1, clear, set);
                assert_eq!(cell.word.load(Ordering::Relaxed), before);
                cell.bump_revision(generation, clear, set);
                let after = cell.word.load(Ordering::Relaxed);
                assert_eq!(after >> 16 & 0xff, ((before >> 16) + 1) & 0xff);
                assert_eq!(after & !(0xff << 16), before & !(0xff << 16) & !clear | set);
            }
            cell.release(executors);
            assert!(cell.retire(generation, at(10_000), at(10_000), no_ends()));
            cell.bump_revision(0, 0, EXCLUDED);
            assert_eq!(cell.word.load(Ordering::Relaxed), 0);
        }
    }

    /// Goal: a cell is an agent's from its activation until it is retired, and stale without executors for long.
    /// Method: both, for a few generations, with and without executors.
    #[test]
    fn a_cell_is_one_agents_at_a_time() {
        for generation in [0, 1, 2] {
            let cell = cell(generation);
            assert!(cell.is_current(generation) && !cell.is_current(generation + 1));
            assert_eq!(
                (cell.stale(at(1), no_ends()), cell.stale(at(0), no_ends())),
                (Some(generation), None)
            );
            cell.reserve(generation, 1, at(0), no_ends()).unwrap();
            assert_eq!(cell.stale(at(1), no_ends()), None);
            cell.release(1);
            assert!(cell.retire(generation, at(1), at(1), no_ends()));
            assert_eq!([0, 1, 2].map(|other| cell.is_current(other)), [false; 3]);
            assert_eq!(
                (cell.stale(at(1), no_ends()), cell.view(at(1), no_ends()).is_some()),
                (None, false)
            );
        }
    }

    /// Goal: an agent that is full takes no executor that was started there, even while it is suspect. Method: the last
    /// executor that it takes, and one more.
    #[test]
    fn a_full_agent_takes_no_bound_executor() {
        for suspect in [false, true] {
            let cell = cell(1);
            cell.reserve(1, EXECUTORS_PER_AGENT_MAX - 1, at(0), no_ends()).unwrap();
            assert!(!suspect || cell.suspect(1, at(1000)));
            assert_eq!(cell.reserve_bound(1, at(1), no_ends()), Ok(()));
            assert_eq!(cell.reserve_bound(1, at(1), no_ends()), Err(AgentRefusal::Full));
        }
    }

    /// Goal: suspicion and exclusion end at their times, and a failure is recent for 5 min. Method: the moments around
    /// each end.
    #[test]
    fn each_end_is_exact() {
        let cell = cell(1);
        assert!(cell.suspect(1, at(1000)));
        assert_eq!([999, 1000].map(|now| cell.is_suspect(at(now))), [true, false]);
        let expiry = Some(std::time::Duration::from_millis(1000));
        let rule = ExclusionRule { failures: 1, expiry, ..ExclusionRule::default() };
        let until = at(1_001_000);
        assert_eq!(cell.record_failure(Some(&rule), at(1_000_000)), Some(until));
        let exclusion = |now| cell.exclusion(at(now));
        assert_eq!([1_000_999, 1_001_000].map(exclusion), [Some(until), None]);
        let failed = |now| cell.capacity(1, at(now), no_ends()).map(|capacity| capacity.failed);
        assert_eq!([1_300_999, 1_301_000].map(failed), [Ok(true), Ok(false)]);
    }

    /// Goal: executors that have ended beside the cell aren't on the agent any more, in whatever is asked; they leave
    /// room for others, the agent can be forgotten, and the next one in the cell begins with none. Method: agents that
    /// are filled, one after the other in one cell, whose executors end by each counter and without one.
    #[test]
    fn ends_beside_the_cell_count() {
        let (cell, ended) = (AgentCell::default(), EndedCounts::new(3));
        let admission = Admission::new();
        let counters: Vec<_> = (0..6).map(|_| admission.take_counter()).collect();
        let used = UsedCounters::default();
        counters.iter().for_each(|counter| used.add(*counter));
        let [ends, neighbour] = [1, 2].map(|offset| ended.at(offset, &used));
        let now = at(1);
        for generation in 1..4 {
            let name = AgentName { id: "S1".into(), hostname: "host".into() };
            cell.prepare(Arc::new(name), at(0));
            cell.activate(generation, ends);
            assert_eq!(cell.count(ends).1, 0, "the next agent's");
            let capacity = |ends| cell.capacity(generation, now, ends).map(|it| it.executors);
            let full = AgentRefusal::Full;
            cell.reserve(generation, EXECUTORS_PER_AGENT_MAX, now, ends).unwrap();
            assert_eq!(capacity(ends), Err(full));
            for (counter, count) in counters.iter().zip(1u16..) {
                ends.add(*counter);
                assert_eq!(capacity(ends), Ok(count));
                let left = EXECUTORS_PER_AGENT_MAX - u32::from(count);
                assert_eq!(cell.executors(generation, ends), left);
            }
            assert_ne!(capacity(neighbour), capacity(ends), "each agent has its own");
            assert_eq!(cell.reserve(generation, 7, now, ends), Err(full), "six have ended");
            cell.reserve(generation, 5, now, ends).unwrap();
            cell.reserve_bound(generation, now, ends).unwrap();
            assert_eq!(cell.reserve_bound(generation, now, ends), Err(full));
            cell.release(1);
            cell.reserve_bound(generation, now, ends).unwrap();
            assert_eq!(u32::from(cell.count(ends).1), EXECUTORS_PER_AGENT_MAX);
            (0..1000).for_each(|_| cell.release(1));
            for _ in 1..EXECUTORS_PER_AGENT_MAX - 1000 {
                ends.add(counters[1]);
            }
            assert_eq!(cell.holder(ends).map(|(generation, _)| generation), Some(generation));
            assert!(!cell.retire(generation, at(2000), now, ends), "one is left");
            assert_eq!((cell.stale(at(2000), ends), cell.count(ends).1), (None, 1));
            ends.add(counters[2]);
            assert_eq!(cell.stale(at(2000), ends), Some(generation));
            assert!(cell.holder(ends).is_none());
            assert_eq!(cell.view(now, ends).map(|view| view.executors), Some(0));
            assert!(cell.retire(generation, at(2000), now, ends));
            assert_eq!((cell.generation(), cell.count(ends).1), (None, 0));
            assert!(cell.holder(ends).is_none());
        }
    }
}
