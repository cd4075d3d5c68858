//! Which agent an executor is bound to: a word in which the first of those that bind the executor, refuse the agent, or
//! end the executor decides.
//!
//! ```text
//!                        bind
//! Unbound (late) ─────────────────► an agent
//!            │ │         refuse
//!            │ └──────────────────► Unwelcome
//!            │            end
//!            └────────────────────► Ended
//! ```
//!
//! An executor that is placed on an agent's offer is bound from the beginning, and its word never changes. One that is
//! bound late begins as unbound; from there one compare-exchange leads on, and nothing leads back.
//!
//! | bits | field | |
//! |---|---|---|
//! | 26–63 | sequence | the lower 38 bits of the executor's sequence number: a change that is meant for an executor that has left the cell fails |
//! | 0–25 | agent | the index of the agent's cell, or one of three numbers that no cell has |
//!
//! | thread | operation | ordering | pairs with |
//! |---|---|---|---|
//! | the thread that fills the executor's cell | [`AgentBinding::set`]: store | Relaxed | the later store of the executor's state publishes it |
//! | the thread that binds | counts the executor on its agent, then [`AgentBinding::bind`]: compare-exchange | AcqRel | `end`, `index` |
//! | the thread that refuses the agent | [`AgentBinding::refuse`]: compare-exchange | AcqRel | `bind`, `end` |
//! | the thread that moved the executor to `Vacant` | [`AgentBinding::end`]: load, compare-exchange if it is unbound | AcqRel | `bind`: if that came first, this thread uncounts the executor; if not, the thread that tried to bind does |
//! | any other | [`AgentBinding::index`]: load | Acquire | `bind`: the agent's cell is initialised |
//!
//! The thread that binds reads the executor's state first. If the executor ends later, its word is not reused before
//! `end`, which closes it. So the exchange of a late thread fails because the word says so, or because it has another
//! sequence number by then. It succeeds wrongly only if exactly a multiple of 2³⁸ executors were placed in between.

use crate::sync::{AtomicU64, Ordering};

use super::agent_key::AgentKey;

/// The lower bits, for the agent's index.
const INDEX_MASK: u64 = AgentKey::INDEX_MASK;
const SEQUENCE_SHIFT: u32 = INDEX_MASK.count_ones();
/// No agent yet.
const UNBOUND: u64 = INDEX_MASK;
/// Ended before it was bound.
const ENDED: u64 = INDEX_MASK - 1;
/// The agent that it was found on doesn't take it.
const UNWELCOME: u64 = INDEX_MASK - 2;

/// An index that no agent's cell has: that of an executor that isn't bound.
pub(crate) const NO_AGENT: u32 = u32::MAX;
/// The largest index that an agent's cell may have.
pub(crate) const AGENT_INDEX_MAX: u32 = UNWELCOME as u32 - 1;

/// Whether an executor is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BindingState {
    /// Not yet.
    Unbound,
    /// To the agent in the cell with this index.
    Bound(u32),
    /// The agent that it was found on doesn't take it.
    Unwelcome,
    /// It ended before it was bound, or the word is another executor's.
    Ended,
}

/// The binding of an executor to an agent.
#[derive(Debug)]
pub(crate) struct AgentBinding(AtomicU64);

impl AgentBinding {
    pub(crate) fn new() -> AgentBinding {
        AgentBinding(AtomicU64::new(ENDED))
    }

    /// Sets the agent of an executor that is being placed; [`NO_AGENT`], or the index of [`AgentKey::NONE`], if it is
    /// bound late.
    #[inline]
    pub(crate) fn set(&self, sequence: u64, agent: u32) {
        // All bits of `NO_AGENT` are set, as those of `UNBOUND` are. Relaxed: the state of the cell publishes it.
        self.0.store(word(sequence, u64::from(agent) & INDEX_MASK), Ordering::Relaxed);
    }

    /// The index of the agent's cell, or [`NO_AGENT`]. It may be that of the cell's former executor.
    #[inline]
    pub(crate) fn index(&self) -> u32 {
        // Acquire: pairs with `bind`, for the agent's cell.
        index_of(self.0.load(Ordering::Acquire))
    }

    pub(crate) fn state(&self, sequence: u64) -> BindingState {
        state_of(self.0.load(Ordering::Acquire), sequence)
    }

    /// Binds the executor with `sequence`, which the caller has counted on the agent, if it is unbound. Otherwise
    /// returns what it is, and the caller has to uncount it.
    pub(crate) fn bind(&self, sequence: u64, agent: u32) -> Result<(), BindingState> {
        self.leave_unbound(sequence, u64::from(agent))
    }

    /// Records that the agent on which the executor was found doesn't take it, if it is unbound.
    pub(crate) fn refuse(&self, sequence: u64) -> Result<(), BindingState> {
        self.leave_unbound(sequence, UNWELCOME)
    }

    /// Returns the index of the agent that the executor with `sequence` counts on, or [`NO_AGENT`]; from now on it is
    /// not bound any more. Only the thread that moved it to `Vacant` may call this.
    #[inline]
    pub(crate) fn end(&self, sequence: u64) -> u32 {
        let found = self.0.load(Ordering::Acquire);
        if found & INDEX_MASK == UNBOUND { self.end_unbound(sequence) } else { index_of(found) }
    }

    #[cold]
    fn end_unbound(&self, sequence: u64) -> u32 {
        match self.leave_unbound(sequence, ENDED) {
            Err(BindingState::Bound(agent)) => agent,
            Ok(()) | Err(_) => NO_AGENT,
        }
    }

    fn leave_unbound(&self, sequence: u64, next: u64) -> Result<(), BindingState> {
        let swapped = self.0.compare_exchange(
            word(sequence, UNBOUND),
            word(sequence, next),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        swapped.map(drop).map_err(|found| state_of(found, sequence))
    }
}

fn word(sequence: u64, index: u64) -> u64 {
    sequence << SEQUENCE_SHIFT | index
}

#[inline]
fn index_of(word: u64) -> u32 {
    let index = (word & INDEX_MASK) as u32;
    if index > AGENT_INDEX_MAX { NO_AGENT } else { index }
}

fn state_of(found: u64, sequence: u64) -> BindingState {
    if found >> SEQUENCE_SHIFT != word(sequence, 0) >> SEQUENCE_SHIFT {
        return BindingState::Ended;
    }
    match found & INDEX_MASK {
        UNBOUND => BindingState::Unbound,
        UNWELCOME => BindingState::Unwelcome,
        ENDED => BindingState::Ended,
        index => BindingState::Bound(index as u32),
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: each way out of unbound excludes the others, and a word of another executor is left alone. Method: all
    /// pairs of ways; then each way with a sequence number of a former and of a later executor.
    #[test]
    fn the_first_way_out_decides() {
        type Way = (fn(&AgentBinding, u64) -> bool, BindingState);
        let ways: [Way; 3] = [
            (|it, sequence| it.bind(sequence, 5).is_ok(), BindingState::Bound(5)),
            (|it, sequence| it.refuse(sequence).is_ok(), BindingState::Unwelcome),
            (|it, sequence| it.end(sequence) == NO_AGENT, BindingState::Ended),
        ];
        for (first, state) in ways {
            for (second, _) in &ways[..2] {
                let binding = AgentBinding::new();
                binding.set(7, NO_AGENT);
                assert_eq!((binding.state(7), binding.index()), (BindingState::Unbound, NO_AGENT));
                assert!(!second(&binding, 6) && !second(&binding, 8), "another executor's");
                assert!(first(&binding, 7));
                assert_eq!(binding.state(7), state);
                assert!(!second(&binding, 7));
                assert_eq!(binding.state(7), state);
            }
        }
    }

    /// Goal: an executor that was placed on an agent is bound to it, up to the largest index and sequence number.
    /// Method: set, and read in each way.
    #[test]
    fn executors_on_an_offers_agent_are_bound() {
        for (sequence, agent) in [(0, 0), (7, 3), (u64::MAX >> 16, AGENT_INDEX_MAX)] {
            let binding = AgentBinding::new();
            binding.set(sequence, agent);
            assert_eq!(binding.state(sequence), BindingState::Bound(agent));
            assert_eq!(binding.bind(sequence, 1), Err(BindingState::Bound(agent)));
            assert_eq!((binding.index(), binding.end(sequence)), (agent, agent));
        }
    }
}
