//! Executors: a cell each, with one state word that decides who frees its resources.
//!
//! ```text
//!            commit          RUNNING             end
//! Reserved ─────────► Launching ──► Running ─────────────► Vacant
//!    │                    │   ▲       │  ▲                   ▲
//!    │ commit failed      │   └──┐    │  │ seen again        │
//!    ▼                    ▼      │    ▼  │                   │
//! Vacant                  └────► Limbo ──┘───── end ─────────┤
//!                                  │  too long               │
//!                                  ▼                         │
//!                                Adrift ──── end, forgotten ─┘   (its resources were released already)
//! ```
//!
//! The state word holds the executor's sequence number, so that a transition for an executor that has left its cell
//! fails, and how the last one ended, until the cell is used again.
//!
//! | who | does | ordering | pairs with |
//! |---|---|---|---|
//! | handler | fills the hold, then `Reserved`, then `Launching` | Release | Acquire of everyone who reads the hold |
//! | update, agent loss, tick, kill | [`Executor::change`]: compare-exchange | AcqRel | each other: one wins each transition |
//! | reports, drain | load | Acquire | the above |
//! | snapshot | the hold between two loads of the state, and an Acquire fence | | the handler's Release fence, one a batch, before it fills the cells |
//!
//! The hold (cores and so on) is written only by the handler that claimed the cell, before `Reserved`, and read by
//! others only in states after it; whoever wins the transition to `Vacant` frees it, once.

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

use super::slab::Cell;
use crate::resources::{Gpus, Mebibytes, MilliCpus};
use crate::status::Fate;
use crate::time::Timestamp;

/// Where in its life an executor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// The cell holds nobody; the fate says how its last executor ended.
    Vacant,
    /// Planned, not yet admitted.
    Reserved,
    /// Admitted, not yet seen running.
    Launching,
    Running,
    /// Out of sight; its resources are still counted.
    Limbo,
    /// Out of sight for long; its resources are counted no more.
    Adrift,
}

/// The fate whose number this is. Others aren't written.
const fn fate_from_bits(bits: u64) -> Fate {
    match bits {
        0 => Fate::Finished,
        1 => Fate::Failed,
        2 => Fate::Killed,
        3 => Fate::Lost,
        4 => Fate::Unreachable,
        _ => Fate::Alive,
    }
}

impl Stage {
    /// The stage whose number this is. Others aren't written.
    const fn from_bits(bits: u64) -> Stage {
        match bits {
            0 => Stage::Vacant,
            1 => Stage::Reserved,
            2 => Stage::Launching,
            3 => Stage::Running,
            4 => Stage::Limbo,
            _ => Stage::Adrift,
        }
    }

    /// Whether the executor's resources are counted in the books.
    pub(crate) const fn counted(self) -> bool {
        matches!(self, Stage::Launching | Stage::Running | Stage::Limbo)
    }

    /// Whether the executor is as the cluster last said, and was not lost from sight.
    pub(crate) const fn in_sight(self) -> bool {
        matches!(self, Stage::Launching | Stage::Running)
    }

    /// Whether there is an executor that updates can be about.
    pub(crate) const fn live(self) -> bool {
        self.counted() || matches!(self, Stage::Adrift)
    }
}

/// The state word, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) sequence: u64,
    pub(crate) stage: Stage,
    pub(crate) fate: Fate,
    /// It was asked to end: its end is nobody's failure.
    pub(crate) asked_to_end: bool,
    /// Something hints that it may be lost: reconcile it.
    pub(crate) doubtful: bool,
    /// How often it came back and there was no room, modulo 64: so a return that began before a refusal fails.
    pub(crate) refusals: u8,
}

const SEQUENCE_SHIFT: u32 = 16;
/// Sequence numbers have 48 bits: at ten million executors a second they last for 326 days.
pub(crate) const SEQUENCE_MAX: u64 = u64::MAX >> SEQUENCE_SHIFT;
const ASKED_TO_END: u64 = 1 << 8;
const DOUBTFUL: u64 = 1 << 9;
const REFUSALS_SHIFT: u32 = 10;
const REFUSALS_MASK: u8 = 0x3f;

impl State {
    pub(crate) const fn new(sequence: u64, stage: Stage) -> State {
        State {
            sequence,
            stage,
            fate: Fate::Alive,
            asked_to_end: false,
            doubtful: false,
            refusals: 0,
        }
    }

    fn pack(self) -> u64 {
        let flag = |set: bool, bit: u64| if set { bit } else { 0 };
        self.sequence << SEQUENCE_SHIFT
            | u64::from(self.refusals & REFUSALS_MASK) << REFUSALS_SHIFT
            | flag(self.doubtful, DOUBTFUL)
            | flag(self.asked_to_end, ASKED_TO_END)
            | (self.fate as u64) << 4
            | self.stage as u64
    }

    fn unpack(word: u64) -> State {
        State {
            sequence: word >> SEQUENCE_SHIFT,
            stage: Stage::from_bits(word & 0xf),
            fate: fate_from_bits(word >> 4 & 0xf),
            asked_to_end: word & ASKED_TO_END != 0,
            doubtful: word & DOUBTFUL != 0,
            refusals: (word >> REFUSALS_SHIFT) as u8 & REFUSALS_MASK,
        }
    }
}

/// What an executor holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    /// The index of its agent's cell.
    pub(crate) agent: u32,
    pub(crate) cores: MilliCpus,
    pub(crate) memory: Mebibytes,
    pub(crate) gpus: Gpus,
    pub(crate) port: Option<u16>,
}

/// One executor's cell: 64 bytes, a cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Executor {
    state: AtomicU64,
    cores: AtomicU64,
    memory: AtomicU64,
    /// When its stage last changed in a way that starts a clock, in milliseconds.
    since: AtomicU64,
    launched: AtomicU64,
    agent: AtomicU32,
    gpus: AtomicU32,
    port: AtomicU32,
    next_free: AtomicU32,
}

impl Default for Executor {
    fn default() -> Executor {
        Executor {
            state: AtomicU64::new(State::new(SEQUENCE_MAX, Stage::Vacant).pack()),
            cores: AtomicU64::new(0),
            memory: AtomicU64::new(0),
            since: AtomicU64::new(0),
            launched: AtomicU64::new(0),
            agent: AtomicU32::new(0),
            gpus: AtomicU32::new(0),
            port: AtomicU32::new(0),
            next_free: AtomicU32::new(0),
        }
    }
}

impl Cell for Executor {
    fn next_free(&self) -> &AtomicU32 {
        &self.next_free
    }
}

impl Executor {
    pub(crate) fn state(&self) -> State {
        // Acquire: pairs with the Release of `reserve` and `publish`, for the hold.
        State::unpack(self.state.load(Ordering::Acquire))
    }

    /// To be called between the claim of cells and the first [`Executor::reserve`] of one of them: once for all.
    pub(crate) fn before_reserving() {
        // Release: pairs with the fence in `Core::snapshot`. A snapshot that reads what is stored from here on, and
        // then the state, doesn't find the cell's former executor any more.
        fence(Ordering::Release);
    }

    /// Fills a claimed cell, after [`Executor::before_reserving`]. Nobody counts on it until [`Executor::publish`].
    pub(crate) fn reserve(&self, sequence: u64, hold: &Hold, now: Timestamp) {
        // Relaxed: the store of the state publishes them.
        self.cores.store(hold.cores.millis(), Ordering::Relaxed);
        self.memory.store(hold.memory.get(), Ordering::Relaxed);
        self.gpus.store(hold.gpus.get(), Ordering::Relaxed);
        self.port.store(hold.port.map_or(0, u32::from), Ordering::Relaxed);
        self.agent.store(hold.agent, Ordering::Relaxed);
        self.since.store(now.as_millis(), Ordering::Relaxed);
        self.launched.store(now.as_millis(), Ordering::Relaxed);
        self.state.store(State::new(sequence, Stage::Reserved).pack(), Ordering::Release);
    }

    /// The commit succeeded: the executor is counted.
    pub(crate) fn publish(&self, sequence: u64) {
        // Not a store: a kill may have left its mark since `reserve`.
        let _ = self.change(sequence, |state| Some(State { stage: Stage::Launching, ..state }));
    }

    /// The commit failed: the cell is nobody's again.
    pub(crate) fn withdraw(&self, sequence: u64) {
        self.state.store(State::new(sequence, Stage::Vacant).pack(), Ordering::Release);
    }

    /// Moves the executor with `sequence` to the state that `next` gives for its present one. Returns both, or, when
    /// `next` gives none or another executor lives here, the present state alone.
    pub(crate) fn change(
        &self,
        sequence: u64,
        next: impl Fn(State) -> Option<State>,
    ) -> Result<(State, State), State> {
        let mut word = self.state.load(Ordering::Acquire);
        loop {
            let state = State::unpack(word);
            if state.sequence != sequence {
                return Err(state);
            }
            let Some(wanted) = next(state) else { return Err(state) };
            // AcqRel: the winner of a transition sees the hold, and who sees the new state sees what led to it.
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

    /// What it holds. Meaningful after a state other than `Vacant` was seen.
    pub(crate) fn hold(&self) -> Hold {
        // Relaxed: published by the state.
        let port = self.port.load(Ordering::Relaxed);
        Hold {
            agent: self.agent.load(Ordering::Relaxed),
            cores: MilliCpus::from_millis(self.cores.load(Ordering::Relaxed)),
            memory: Mebibytes::new(self.memory.load(Ordering::Relaxed)),
            gpus: Gpus::new(self.gpus.load(Ordering::Relaxed)),
            port: u16::try_from(port).ok().filter(|port| *port != 0),
        }
    }

    /// The index of the cell of its agent, of [`Executor::hold`] the part that says where to look next. In any state:
    /// it may be that of the cell's former executor, and is good for looking ahead alone.
    pub(crate) fn agent(&self) -> u32 {
        self.agent.load(Ordering::Relaxed)
    }

    /// The last moment from which a clock runs: launched, or gone out of sight.
    pub(crate) fn since(&self) -> Timestamp {
        Timestamp::from_millis(self.since.load(Ordering::Relaxed))
    }

    /// Starts a clock. Relaxed: the change of state that follows publishes it.
    pub(crate) fn set_since(&self, now: Timestamp) {
        self.since.store(now.as_millis(), Ordering::Relaxed);
    }

    pub(crate) fn launched(&self) -> Timestamp {
        Timestamp::from_millis(self.launched.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: a kill that comes between admission and publication is not forgotten. Method: in that order.
    #[test]
    fn publishing_keeps_a_kill() {
        let executor = Executor::default();
        let cores = MilliCpus::from_cores(1);
        let (memory, gpus) = (Mebibytes::new(1), Gpus::ZERO);
        let hold = Hold { agent: 0, cores, memory, gpus, port: None };
        Executor::before_reserving();
        executor.reserve(7, &hold, Timestamp::ORIGIN);
        executor.change(7, |state| Some(State { asked_to_end: true, ..state })).unwrap();
        executor.publish(7);
        let expected = State { asked_to_end: true, ..State::new(7, Stage::Launching) };
        assert_eq!(executor.state(), expected);
    }

    /// Goal: the state word loses nothing. Method: pack and unpack each combination.
    #[test]
    fn states_survive_packing() {
        use Stage::{Adrift, Launching, Limbo, Reserved, Running, Vacant};
        for stage in [Vacant, Reserved, Launching, Running, Limbo, Adrift] {
            for fate in [
                Fate::Finished,
                Fate::Failed,
                Fate::Killed,
                Fate::Lost,
                Fate::Unreachable,
                Fate::Alive,
            ] {
                for flags in 0..4 {
                    let state = State {
                        sequence: SEQUENCE_MAX - flags,
                        stage,
                        fate,
                        asked_to_end: flags & 1 != 0,
                        doubtful: flags & 2 != 0,
                        refusals: flags as u8 * 21,
                    };
                    assert_eq!(State::unpack(state.pack()), state);
                }
            }
        }
        assert_eq!(size_of::<Executor>(), 64);
    }
}
