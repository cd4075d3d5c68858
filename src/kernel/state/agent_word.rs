//! The bits of the word in an agent's cell, and what they say of its executors.
//!
//! | bits | field | |
//! |---|---|---|
//! | 26–63 | generation | identifies the agent: unique among all agents of this kernel |
//! | 25 | live | the cell belongs to an agent |
//! | 24 | excluded | until the time in `excluded_until` |
//! | 16–23 | revision | grows with each exclusion, suspicion and readmission, so that a compare-exchange that didn't see it fails |
//! | 0–15 | started | the ends that updaters had counted before the agent came, and the executors started on it, less those that were taken back or ended without an updater, modulo 2¹⁶; see [`ended_counts`](super::ended_counts) |
//!
//! Which thread changes it, and in which order, is in [`agent`](super::agent).

use crate::limits::EXECUTORS_PER_AGENT_MAX;

const STARTED_MASK: u64 = 0xffff;
pub(super) const REVISION_ONE: u64 = 1 << 16;
pub(super) const REVISION_MASK: u64 = 0xff << 16;
pub(super) const EXCLUDED: u64 = 1 << 24;
pub(super) const LIVE: u64 = 1 << 25;
pub(super) const GENERATION_SHIFT: u32 = 26;

/// The executors that live on the agent.
#[inline]
pub(super) fn executors(word: u64, ended: u16) -> u16 {
    (word as u16).wrapping_sub(ended)
}

/// How many more executors an agent takes that has these.
#[inline]
pub(super) fn room(executors: u16) -> u16 {
    EXECUTORS_PER_AGENT_MAX as u16 - executors
}

/// The word with `more` executors added to those that were started, modulo 2¹⁶.
#[inline]
pub(super) fn with_started(word: u64, more: u32) -> u64 {
    word & !STARTED_MASK | word.wrapping_add(more.into()) & STARTED_MASK
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: executors that come and go change nothing but their bits, however often these have wrapped, and the
    /// numbers are theirs. Method: starts and ends of all sizes around each multiple of 2¹⁶, beside other bits.
    #[test]
    fn executors_change_their_bits_alone() {
        let others = 5 << GENERATION_SHIFT | LIVE | EXCLUDED | REVISION_MASK;
        for ended in [0, 1, 0x7fff, u16::MAX] {
            for live in [0, 1, 2, 0x8000, EXECUTORS_PER_AGENT_MAX - 1, EXECUTORS_PER_AGENT_MAX] {
                let none = others | u64::from(ended);
                let word = with_started(none, live);
                assert_eq!(word & !STARTED_MASK, others);
                let count = executors(word, ended);
                let numbers = (u32::from(count), u32::from(room(count)));
                assert_eq!(numbers, (live, EXECUTORS_PER_AGENT_MAX - live));
                assert_eq!(with_started(word, live.wrapping_neg()), none);
            }
        }
    }
}
