//! Executors: each has a cell with one [state word](super::executor_state), which decides the thread that frees its
//! resources.
//!
//! Which agent an executor counts on is decided in another word of its cell, which changes only for executors that are
//! bound late; see [`agent_binding`](super::agent_binding). They may be bound in any stage between `Reserved` and
//! `Vacant`.
//!
//! | thread | operation | ordering | pairs with |
//! |---|---|---|---|
//! | handler | [`AgentHint::set`], writes the allocation, then `Reserved` | Release store | Acquire of every thread that reads the allocation |
//! | the same | [`ExecutorCell::publish`]: `Launching`, by compare-exchange, which keeps flags that others have set | AcqRel | the same |
//! | update, agent loss, tick, kill | [`ExecutorCell::change`]: compare-exchange | AcqRel | each other: one thread wins each transition |
//! | update | [`ExecutorCell::mark_unreachable`]: its clock, then `Unreachable` | see [`AbsenceClock`] | tick |
//! | tick | [`ExecutorCell::give_up`]: its clock, then `GivenUp`; [`ExecutorCell::forget`] | see [`AbsenceClock`] | update, other ticks |
//! | the thread that frees the cell, an updater's end ahead of that | clears the fate: store | Relaxed | the free list publishes it to the cell's next user, and the count of the agent's ends ([`ended_counts`](super::ended_counts)) to a thread that forgets the agent |
//! | reports, drain | load | Acquire | the above |
//! | agent loss | [`AgentHint`]: load | Relaxed | the handler's commit: after the exchange that invalidates plans, the hints of all admitted executors are seen |
//! | update | [`AgentBinding::bind`], [`AgentBinding::refuse`]: see there | AcqRel | the end |
//! | the thread that won the transition to `Vacant` | [`ExecutorCell::ended_allocation`]: [`AgentBinding::end`] | AcqRel | the above |
//! | snapshot | the state and the agent; later the agent and the rest of the allocation, an Acquire fence, the state | | the handler's Release fence, one per batch, before it fills the cells |
//!
//! The allocation (cores and so on, but for a late agent) is written only by the handler that claimed the cell, before
//! `Reserved`, and read by others only in later states. The thread that wins the transition to `Vacant` frees it, once.

use std::time::Duration;

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

use super::absence_clock::AbsenceClock;
use super::agent_binding::AgentBinding;
use super::agent_hint::AgentHint;
use super::executor_state::{
    Before, CellStage, CellState, SEQUENCE_MAX, SeenState, ended_word, without_fate,
};
use super::queues::QueueAmount;
use super::slab::SlabCell;
use crate::limits::EXECUTOR_MEMORY_MAX;
use crate::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};
use crate::status::Fate;
use crate::time::Timestamp;

/// The memory of an executor leaves these bits of its word free.
const PORT_BITS: u32 = 16;
const _: () = assert!(EXECUTOR_MEMORY_MAX.get() <= u64::MAX >> PORT_BITS);

/// The resources of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allocation {
    /// The index of its agent's cell; [`NO_AGENT`](super::agent_binding::NO_AGENT) if it isn't bound.
    pub(crate) agent: u32,
    pub(crate) resources: ExecutorResources,
}

impl Allocation {
    /// What it takes of its queue, if it is in one.
    pub(crate) fn booked(&self) -> QueueAmount {
        QueueAmount::new(self.resources.cores, self.resources.memory)
    }
}

/// An executor's cell: 64 bytes, one cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct ExecutorCell {
    state: AtomicU64,
    cores: AtomicU64,
    /// The memory, and the port in the lower 16 bits; 0 is none.
    memory_and_port: AtomicU64,
    /// In milliseconds.
    launched: AtomicU64,
    /// When it became unreachable.
    unreachable_since: AbsenceClock,
    /// When it was given up.
    given_up_at: AbsenceClock,
    pub(crate) binding: AgentBinding,
    gpus: AtomicU32,
}

impl Default for ExecutorCell {
    fn default() -> ExecutorCell {
        ExecutorCell {
            state: AtomicU64::new(CellState::new(SEQUENCE_MAX, CellStage::Vacant).pack()),
            cores: AtomicU64::new(0),
            memory_and_port: AtomicU64::new(0),
            launched: AtomicU64::new(0),
            unreachable_since: AbsenceClock::new(),
            given_up_at: AbsenceClock::new(),
            binding: AgentBinding::new(),
            gpus: AtomicU32::new(0),
        }
    }
}

impl SlabCell for ExecutorCell {
    type Hint = AgentHint;
    type Beside = ();

    /// Clears how the executor ended. A vacant cell that still has a fate is one that was kept.
    fn reset(&self) {
        // Relaxed: no other thread writes a cell that is about to be freed.
        let word = self.state.load(Ordering::Relaxed);
        self.state.store(without_fate(word), Ordering::Relaxed);
    }
}

impl ExecutorCell {
    pub(crate) fn state(&self) -> CellState {
        // Acquire: pairs with the Release of `reserve` and `publish`, for the allocation.
        CellState::unpack(self.state.load(Ordering::Acquire))
    }

    /// As [`ExecutorCell::state`], for reports.
    #[inline]
    pub(crate) fn seen(&self) -> SeenState {
        SeenState(self.state.load(Ordering::Acquire))
    }

    /// Must be called once between claiming cells and the first [`ExecutorCell::reserve`] of one of them.
    pub(crate) fn before_reserving() {
        // Release: pairs with the fence in `Core::look_again`. A snapshot that reads a value stored after this fence
        // and then the state doesn't find the cell's former executor any more.
        fence(Ordering::Release);
    }

    /// Fills a claimed cell, after [`ExecutorCell::before_reserving`]. The executor isn't live before
    /// [`ExecutorCell::publish`].
    #[inline]
    pub(crate) fn reserve(&self, sequence: u64, allocation: &Allocation, now: Timestamp) {
        // Relaxed: the store of the state publishes them.
        self.cores.store(allocation.resources.cores.millis(), Ordering::Relaxed);
        let ExecutorResources { memory, port, gpus, .. } = allocation.resources;
        let memory_and_port = memory.get() << PORT_BITS | port.map_or(0, u64::from);
        self.memory_and_port.store(memory_and_port, Ordering::Relaxed);
        self.gpus.store(gpus.get(), Ordering::Relaxed);
        self.binding.set(sequence, allocation.agent);
        self.launched.store(now.as_millis(), Ordering::Relaxed);
        self.state.store(CellState::new(sequence, CellStage::Reserved).pack(), Ordering::Release);
    }

    /// Called if the commit succeeded: the executor is live.
    #[inline]
    pub(crate) fn publish(&self, sequence: u64) {
        let word = |stage| CellState::new(sequence, stage).pack();
        let (reserved, launching) = (word(CellStage::Reserved), word(CellStage::Launching));
        // Not a store: a kill may have set its flag since `reserve`. AcqRel: as in `change`.
        let published =
            self.state.compare_exchange(reserved, launching, Ordering::AcqRel, Ordering::Relaxed);
        if published.is_err() {
            self.publish_flagged(sequence);
        }
    }

    /// [`ExecutorCell::publish`] of an executor that has a flag already.
    #[cold]
    fn publish_flagged(&self, sequence: u64) {
        let _ =
            self.change(sequence, |state| Some(CellState { stage: CellStage::Launching, ..state }));
    }

    /// Called if the commit failed: the cell is vacant again.
    pub(crate) fn withdraw(&self, sequence: u64) {
        // A flag that was set since `reserve` is lost. A store would suffice, but loom assumes that the exchange which
        // set the flag may come after it.
        self.state.swap(CellState::new(sequence, CellStage::Vacant).pack(), Ordering::Release);
    }

    /// Moves the executor with `sequence` to the state that `next` returns for its current one. Returns both states. If
    /// `next` returns none or the cell holds another executor, returns the current state as an error.
    pub(crate) fn change(
        &self,
        sequence: u64,
        next: impl Fn(CellState) -> Option<CellState>,
    ) -> Result<(CellState, CellState), CellState> {
        let mut word = self.state.load(Ordering::Acquire);
        loop {
            let state = CellState::unpack(word);
            if state.sequence != sequence {
                return Err(state);
            }
            let Some(wanted) = next(state) else { return Err(state) };
            // AcqRel: the winner of a transition sees the allocation, and a thread that sees the new state sees what
            // led to it.
            let swapped = self.state.compare_exchange_weak(
                word,
                wanted.pack(),
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            match swapped {
                Ok(_) => return Ok((state, wanted)),
                Err(current) => word = current,
            }
        }
    }

    /// Moves the executor with `sequence` to `Vacant`, if updates can be about it. Returns the former state; as an
    /// error, if nothing was changed. Does what [`ExecutorCell::change`] does, on the word as it is: most updates of
    /// short-lived executors are ends.
    #[inline]
    pub(crate) fn end(&self, sequence: u64, fate: Fate) -> Result<Before, CellState> {
        let mut word = self.state.load(Ordering::Acquire);
        loop {
            let Some(ended) = ended_word(word, sequence, fate) else {
                return Err(CellState::unpack(word));
            };
            let swapped =
                self.state.compare_exchange_weak(word, ended, Ordering::AcqRel, Ordering::Acquire);
            match swapped {
                Ok(_) => return Ok(Before(word)),
                Err(current) => word = current,
            }
        }
    }

    /// The resources of the executor. Valid only after a state other than `Vacant` was read.
    #[inline]
    pub(crate) fn allocation(&self) -> Allocation {
        Allocation { agent: self.binding.index(), resources: self.resources() }
    }

    /// What the executor with `sequence` held, and the agent that it counted on. From now on it can't be bound any
    /// more. Only the thread that moved it to `Vacant` may call this.
    #[inline]
    pub(crate) fn ended_allocation(&self, sequence: u64) -> Allocation {
        Allocation { agent: self.binding.end(sequence), resources: self.resources() }
    }

    #[inline]
    fn resources(&self) -> ExecutorResources {
        // Relaxed: published by the state.
        let memory_and_port = self.memory_and_port.load(Ordering::Relaxed);
        let port = memory_and_port as u16;
        ExecutorResources {
            cores: MilliCpus::from_millis(self.cores.load(Ordering::Relaxed)),
            memory: Mebibytes::new(memory_and_port >> PORT_BITS),
            gpus: Gpus::new(self.gpus.load(Ordering::Relaxed)),
            port: (port != 0).then_some(port),
        }
    }

    /// The index of its agent's cell, or [`NO_AGENT`](super::agent_binding::NO_AGENT). May be read in any state; it may
    /// be that of the cell's former executor, so use it only to prefetch or check it afterwards.
    pub(crate) fn agent(&self) -> u32 {
        self.binding.index()
    }

    /// Marks the executor with `sequence` as unreachable, if it is reachable. Starts the clock of this absence first,
    /// so that a thread that sees the new stage sees since when. Returns what [`ExecutorCell::change`] returns.
    pub(crate) fn mark_unreachable(
        &self,
        sequence: u64,
        now: Timestamp,
    ) -> Result<(CellState, CellState), CellState> {
        loop {
            let clock = self.unreachable_since.read();
            let seen = self.state();
            if seen.sequence != sequence || !seen.stage.is_reachable() {
                return Err(seen);
            }
            let absences = seen.absences.wrapping_add(1);
            let begun = CellState { absences, ..seen }.absence();
            // If another thread has started the clock meanwhile, read the state again.
            if !self.unreachable_since.start(clock, begun, now) {
                continue;
            }
            let changed = self.change(sequence, |state| {
                let unseen =
                    CellState { stage: CellStage::Unreachable, absences, doubtful: false, ..state };
                let same = state.absences == seen.absences && state.stage.is_reachable();
                same.then_some(unseen)
            });
            if changed.is_ok() {
                return changed;
            }
        }
    }

    /// How long the executor has been unreachable or, if it was given up, how long ago that was. None if it is
    /// reachable, or has returned or ended since `state` was read.
    pub(crate) fn unreachable_for(&self, state: CellState, now: Timestamp) -> Option<Duration> {
        match state.stage {
            CellStage::Unreachable => self.unreachable_since.age(state.absence(), now),
            CellStage::GivenUp => self.given_up_at.age(state.absence(), now),
            _ => None,
        }
    }

    /// Gives up the executor with `sequence` if it has been unreachable for at least `after`. Returns whether this call
    /// did.
    pub(crate) fn give_up(&self, sequence: u64, after: Duration, now: Timestamp) -> bool {
        loop {
            let clock = self.given_up_at.read();
            let seen = self.state();
            let due = self.unreachable_for(seen, now).is_some_and(|age| age >= after);
            if seen.sequence != sequence || seen.stage != CellStage::Unreachable || !due {
                return false;
            }
            // As in `mark_unreachable`.
            if !self.given_up_at.start(clock, seen.absence(), now) {
                continue;
            }
            let changed = self.change(sequence, |state| {
                let same = state.absences == seen.absences && state.stage == CellStage::Unreachable;
                same.then_some(CellState { stage: CellStage::GivenUp, ..state })
            });
            if changed.is_ok() {
                return true;
            }
        }
    }

    /// Ends the executor with `sequence` if it was given up at least `after` ago. Returns the former state if this call
    /// did.
    pub(crate) fn forget(
        &self,
        sequence: u64,
        after: Duration,
        now: Timestamp,
    ) -> Option<CellState> {
        let seen = self.state();
        if seen.stage != CellStage::GivenUp || self.unreachable_for(seen, now)? < after {
            return None;
        }
        let changed = self.change(sequence, |state| {
            let same = state.absences == seen.absences && state.stage == CellStage::GivenUp;
            same.then_some(CellState { stage: CellStage::Vacant, fate: Fate::Lost, ..state })
        });
        changed.ok().map(|(before, _)| before)
    }

    pub(crate) fn launched(&self) -> Timestamp {
        Timestamp::from_millis(self.launched.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: a kill between admission and publication is kept. Method: in that order.
    #[test]
    fn publishing_keeps_a_kill() {
        let executor = ExecutorCell::default();
        let cores = MilliCpus::from_cores(1);
        let memory = Mebibytes::new(1);
        let resources = ExecutorResources { cores, memory, ..ExecutorResources::NONE };
        let allocation = Allocation { agent: 0, resources };
        ExecutorCell::before_reserving();
        executor.reserve(7, &allocation, Timestamp::ORIGIN);
        executor.change(7, |state| Some(CellState { asked_to_end: true, ..state })).unwrap();
        executor.publish(7);
        let expected = CellState { asked_to_end: true, ..CellState::new(7, CellStage::Launching) };
        assert_eq!(executor.state(), expected);
    }

    const NO_ALLOCATION: Allocation = Allocation { agent: 0, resources: ExecutorResources::NONE };

    /// Goal: the counts of absences and refusals wrap without changing other fields. Method: an executor becomes
    /// unreachable and returns 600 times, is given up every third time, and is refused once each time; its sequence
    /// number, flags and clocks stay right.
    #[test]
    fn absences_and_refusals_wrap_alone() {
        let executor = ExecutorCell::default();
        let after = Duration::from_millis(10);
        executor.reserve(SEQUENCE_MAX, &NO_ALLOCATION, Timestamp::ORIGIN);
        executor.publish(SEQUENCE_MAX);
        for n in 1..=600u64 {
            let lost = Timestamp::from_millis(n * 100);
            let due = lost.plus(after);
            executor.mark_unreachable(SEQUENCE_MAX, lost).unwrap();
            assert!(
                executor.mark_unreachable(SEQUENCE_MAX, due).is_err(),
                "it is unreachable already"
            );
            assert!(!executor.give_up(SEQUENCE_MAX, after, Timestamp::from_millis(n * 100 + 9)));
            if n % 3 == 0 {
                assert!(executor.give_up(SEQUENCE_MAX, after, due));
                assert_eq!(executor.unreachable_for(executor.state(), due), Some(Duration::ZERO));
                assert_eq!(executor.forget(SEQUENCE_MAX, after, due), None);
            }
            let back = |state: CellState| {
                let refusals = state.refusals.wrapping_add(1);
                Some(CellState { stage: CellStage::Running, refusals, ..state })
            };
            executor.change(SEQUENCE_MAX, back).unwrap();
            let expected = CellState {
                absences: n as u8,
                refusals: (n % 8) as u8,
                ..CellState::new(SEQUENCE_MAX, CellStage::Running)
            };
            assert_eq!(executor.state(), expected);
        }
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// An executor that is unreachable since 100 ms.
    fn unreachable(sequence: u64) -> ExecutorCell {
        let executor = ExecutorCell::default();
        executor.reserve(sequence, &NO_ALLOCATION, at(0));
        executor.publish(sequence);
        executor.mark_unreachable(sequence, at(100)).unwrap();
        executor
    }

    /// Goal: an executor that is known to be unreachable isn't doubtful any more. Method: one that is doubtful becomes
    /// unreachable.
    #[test]
    fn the_unreachable_are_not_doubtful() {
        let executor = ExecutorCell::default();
        executor.reserve(7, &NO_ALLOCATION, at(0));
        executor.publish(7);
        executor.change(7, |state| Some(CellState { doubtful: true, ..state })).unwrap();
        let (before, after) = executor.mark_unreachable(7, at(1)).unwrap();
        assert_eq!((before.doubtful, after.doubtful), (true, false));
        assert_eq!(executor.state(), after);
    }

    /// Goal: an executor is given up when it is due, once, and forgotten when that is due; another one, and one that is
    /// in another stage, stays as it is. Method: the moments around both ends, with the number of the executor and that
    /// of another one.
    #[test]
    fn each_is_given_up_and_forgotten_when_due() {
        let after = Duration::from_millis(50);
        let executor = unreachable(7);
        let give_up = |sequence, now| {
            let before = executor.state();
            let given_up = executor.give_up(sequence, after, at(now));
            assert_eq!(executor.state() != before, given_up);
            given_up
        };
        let forget = |sequence, now| executor.forget(sequence, after, at(now)).map(|it| it.stage);
        assert_eq!(forget(7, 1000), None, "it was not given up");
        assert_eq!([(8, 150), (6, 150), (7, 149)].map(|(it, now)| give_up(it, now)), [false; 3]);
        assert!(give_up(7, 150));
        assert_eq!([(8, 200), (6, 200)].map(|(it, now)| give_up(it, now)), [false; 2]);
        assert!(!give_up(7, 1000), "it was given up before");
        assert_eq!([(8, 200), (7, 199)].map(|(it, now)| forget(it, now)), [None; 2]);
        assert_eq!(forget(7, 200), Some(CellStage::GivenUp));
        let forgotten = executor.state();
        assert_eq!((forgotten.stage, forgotten.fate), (CellStage::Vacant, Fate::Lost));
        assert!(!give_up(7, 1000) && forget(7, 1000).is_none(), "it has ended");
    }
}
