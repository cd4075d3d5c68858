//! Suppress and revive: what the cluster was told last, against what the books say now.
//!
//! There is no event "demand rose". [`Demand::poll`] compares the state of the kernel with what was said last, and
//! returns the call that makes them agree, if one is due. So nothing is lost when events cross, and however many
//! executors end there is one revive.
//!
//! | field | meaning |
//! |---|---|
//! | suppressed | SUPPRESS was the last call |
//! | refused | offers were refused for a cap's sake since the last call; they stay refused until revived |
//! | wanted | the policy changed so that offers refused for other reasons may be welcome now |
//! | revived | when the last REVIVE was, in milliseconds, plus one; 0 for never |
//!
//! | who | does | ordering | pairs with |
//! |---|---|---|---|
//! | whoever polls | fence, load, compare-exchange, fence | SeqCst fences, AcqRel exchange | the fence of another poll: of a poll that suppresses and one that follows a release, at least one sees the other's write |
//! | handler at a cap | [`Demand::note_refused`] | Relaxed | nothing: the next poll sees it |
//! | handler, before it looks at the books; who sent answers | [`Demand::revival`] | Acquire | the exchange of the poll that revived: the books and the policy are at least as new as what it saw |
//! | reconfiguration | [`Demand::want`] | Release | the poll's exchange, for the policy |
//! | (re)registration | [`Demand::reset`] | Relaxed | nothing |

use std::time::Duration;

use crate::sync::{AtomicU64, Ordering, fence};
use crate::time::Timestamp;

const SUPPRESSED: u64 = 1;
const REFUSED: u64 = 2;
const WANTED: u64 = 4;
const REVIVED_SHIFT: u32 = 3;
/// The latest moment that the word has room for, in milliseconds; what is later is taken for it.
const REVIVED_MAX: u64 = (u64::MAX >> REVIVED_SHIFT) - 1;

/// Suppression is not repeated sooner than this for offers that still arrive.
const SUPPRESS_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A call that makes the cluster's offers follow the kernel's demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemandCall {
    /// Offer again, and forget what was refused.
    Revive,
    /// Offer nothing until revived.
    Suppress,
}

/// The demand word, and the moment of the last suppression (which only its own repetition depends on).
#[derive(Debug)]
pub(crate) struct Demand {
    word: AtomicU64,
    suppressed_at: AtomicU64,
}

impl Demand {
    pub(crate) fn new() -> Demand {
        Demand { word: AtomicU64::new(0), suppressed_at: AtomicU64::new(0) }
    }

    /// The cluster has a new subscription, which offers to us unless told otherwise.
    pub(crate) fn reset(&self) {
        self.word.fetch_and(!(SUPPRESSED | REFUSED | WANTED), Ordering::Relaxed);
    }

    /// Offers were refused for a cap's sake. Writes only if that is news.
    pub(crate) fn note_refused(&self) {
        if self.word.load(Ordering::Relaxed) & REFUSED == 0 {
            self.word.fetch_or(REFUSED, Ordering::Relaxed);
        }
    }

    /// Whether suppression was the last call.
    pub(crate) fn suppressed(&self) -> bool {
        // Relaxed: a moment's view.
        self.word.load(Ordering::Relaxed) & SUPPRESSED != 0
    }

    /// Which revive was the last.
    pub(crate) fn revival(&self) -> u64 {
        // Acquire: who knows of a revive doesn't refuse for what was over before it.
        self.word.load(Ordering::Acquire) >> REVIVED_SHIFT
    }

    /// Offers that were refused may be welcome now.
    pub(crate) fn want(&self) {
        // Release: the policy that came before is visible to who knows of the revive.
        self.word.fetch_or(WANTED, Ordering::Release);
    }

    /// The call that is due, if one is; the caller must make it. `can_place` reads whether the caps leave room.
    pub(crate) fn poll(
        &self,
        can_place: impl Fn() -> bool,
        revive_interval: Duration,
        now: Timestamp,
    ) -> Option<DemandCall> {
        loop {
            // Pairs with the fence below of a poll that suppresses: it saw our release, or we see its word.
            fence(Ordering::SeqCst);
            let word = self.word.load(Ordering::Relaxed);
            let (next, call) = if can_place() {
                if word & (SUPPRESSED | REFUSED | WANTED) == 0 || !due(word, revive_interval, now) {
                    return None;
                }
                let revived = now.as_millis().min(REVIVED_MAX) + 1;
                (revived << REVIVED_SHIFT, DemandCall::Revive)
            } else {
                let again = word & REFUSED != 0 && self.may_suppress_again(now);
                if word & SUPPRESSED != 0 && !again {
                    return None;
                }
                (word & !REFUSED | SUPPRESSED, DemandCall::Suppress)
            };
            // AcqRel: pairs with `want` and `revival`.
            let swapped =
                self.word.compare_exchange(word, next, Ordering::AcqRel, Ordering::Relaxed);
            if swapped.is_err() {
                continue;
            }
            if call == DemandCall::Suppress {
                self.suppressed_at.store(now.as_millis(), Ordering::Relaxed);
                // Pairs with the fence above of a poll after a release.
                fence(Ordering::SeqCst);
                if can_place() && due(next, revive_interval, now) {
                    // Room appeared while we suppressed, and its poll may have come before our word.
                    continue;
                }
            }
            return Some(call);
        }
    }

    fn may_suppress_again(&self, now: Timestamp) -> bool {
        let last = Timestamp::from_millis(self.suppressed_at.load(Ordering::Relaxed));
        now.since(last) >= SUPPRESS_AGAIN_AFTER
    }
}

fn due(word: u64, interval: Duration, now: Timestamp) -> bool {
    match word >> REVIVED_SHIFT {
        0 => true,
        at => now.since(Timestamp::from_millis(at - 1)) >= interval,
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use DemandCall::{Revive, Suppress};

    const INTERVAL: Duration = Duration::from_secs(5);

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// Goal: one suppress at the cap, one revive when there is room, none sooner than the interval. Method: a history
    /// with a storm of ends in it.
    #[test]
    fn a_storm_of_ends_gives_one_revive() {
        let demand = Demand::new();
        let poll = |room: bool, millis| demand.poll(|| room, INTERVAL, at(millis));
        assert_eq!(poll(true, 0), None, "offers come by themselves at first");
        assert_eq!(poll(false, 1), Some(Suppress));
        assert_eq!(poll(false, 2), None);
        assert_eq!(poll(true, 3), Some(Revive));
        for millis in 4..5_003 {
            assert_eq!(poll(false, millis), if millis == 4 { Some(Suppress) } else { None });
            assert_eq!(poll(true, millis), None, "{millis}");
        }
        assert_eq!(poll(true, 5_003), Some(Revive));
        assert_eq!(poll(true, 50_003), None);
    }

    /// Goal: offers that arrive though suppressed lead to another suppress, and offers that were refused at a cap to a
    /// revive. Method: note a refusal in both situations.
    #[test]
    fn stray_offers_are_answered_by_suppressing_again() {
        let demand = Demand::new();
        let poll = |room: bool, millis| demand.poll(|| room, INTERVAL, at(millis));
        assert_eq!(poll(false, 0), Some(Suppress));
        demand.note_refused();
        assert_eq!(poll(false, 999), None, "not at once");
        assert_eq!(poll(false, 1_000), Some(Suppress));
        assert_eq!(poll(false, 9_000), None);
        assert_eq!(poll(true, 9_000), Some(Revive));
        demand.note_refused();
        assert_eq!(poll(true, 9_001), None);
        assert_eq!(poll(true, 14_000), Some(Revive), "refused at a cap that is gone");
        demand.want();
        assert_eq!(poll(true, 19_000), Some(Revive), "the policy changed");
        demand.reset();
        assert_eq!(poll(true, 99_000), None, "a new subscription offers by itself");
    }

    /// Goal: no moment is too late to revive at. Method: moments that the word has no room for, as the fuzz input
    /// `poll_at_the_end_of_time` has them.
    #[test]
    fn the_end_of_time_is_a_moment() {
        for millis in [REVIVED_MAX, REVIVED_MAX + 1, u64::MAX - 1, u64::MAX] {
            let demand = Demand::new();
            demand.want();
            assert_eq!(demand.poll(|| true, INTERVAL, at(millis)), Some(Revive), "{millis}");
            assert_eq!(demand.revival(), REVIVED_MAX + 1);
            assert_eq!(demand.poll(|| true, INTERVAL, at(millis)), None, "it was said");
        }
    }
}
