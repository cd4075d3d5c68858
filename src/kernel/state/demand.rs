//! Suppress and revive: compares the last call to the cluster with what the caps allow now.
//!
//! There is no event for rising demand. [`DemandGuard::poll`] compares the state of the kernel with the last call, and
//! returns the call that makes them agree, if one is due. So nothing is lost when events cross, and however many
//! executors end, there is one revive.
//!
//! Handlers and polls share one word:
//!
//! | field | meaning |
//! |---|---|
//! | suppressed | SUPPRESS was the last call |
//! | refused | offers were refused at a cap since the last call; they stay refused until the next revive |
//! | revive requested | the policy changed or an agent was readmitted, so that offers refused for other reasons may be wanted now |
//! | revives | the number of REVIVE calls: two in one millisecond differ |
//!
//! | thread | operation | ordering | pairs with |
//! |---|---|---|---|
//! | poll, under the lock | [`DemandGuard::poll`]: load, compare-exchange | AcqRel | [`DemandState::request_revive`], [`DemandState::revives`] |
//! | handler at a cap | [`DemandState::record_refused`] | Relaxed | nothing: the next poll sees it |
//! | handler, before it loads admission; [`Kernel::answers_sent`](crate::kernel::Kernel::answers_sent) | [`DemandState::revives`] | Acquire | the exchange of the poll that revived: admission and the policy are at least as new as that poll saw them |
//! | reconfiguration, readmission of an agent | [`DemandState::request_revive`] | Release | the poll's exchange, for the policy |
//! | registration, under the lock | [`DemandGuard::reset`] | Relaxed | nothing |
//!
//! Polls and registrations take turns under a lock that nothing else takes. Three properties follow:
//!
//! * A poll returns what it records: it checks the caps once and records at most one call.
//! * Freed room is not missed. A poll that follows a release either comes after the poll that suppresses, and sees what
//!   that one recorded; or it comes before it, and then the release happens before the other poll checks the caps,
//!   because it checks them under the lock.
//! * A subscription begins before a poll or after it. In the first case the poll's call is for that subscription; in
//!   the second, nothing that the poll recorded remains.
//!
//! While one poll holds the lock, others wait for a few loads and at most three exchanges, and for the
//! [counters](super::counters).

use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::offer_watchdog::OfferWatchdog;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, lock};
use crate::time::Timestamp;

const SUPPRESSED: u64 = 1;
const REFUSED: u64 = 2;
const REVIVE_REQUESTED: u64 = 4;
const FLAGS: u64 = SUPPRESSED | REFUSED | REVIVE_REQUESTED;
const REVIVES_SHIFT: u32 = 3;
const REVIVES_ONE: u64 = 1 << REVIVES_SHIFT;

/// The time after which suppress is repeated if offers still arrive.
const SUPPRESS_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A call that makes the cluster's offers follow the kernel's demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum DemandCall {
    /// Offer again, and forget what was refused.
    Revive,
    /// Offer nothing until revived.
    Suppress,
}

/// The demand word and the history of calls. They are on separate cache lines: polls write the lock each time, and
/// handlers read the word with each batch.
#[derive(Debug)]
pub(crate) struct DemandState {
    word: CachePadded<AtomicU64>,
    history: CachePadded<Mutex<History>>,
}

/// When calls were made.
#[derive(Debug)]
struct History {
    suppressed_at: Timestamp,
    revived_at: Option<Timestamp>,
    watchdog: OfferWatchdog,
}

/// The lock of polls and registrations, held by one thread.
pub(crate) struct DemandGuard<'d> {
    word: &'d AtomicU64,
    history: MutexGuard<'d, History>,
}

impl DemandState {
    pub(crate) fn new() -> DemandState {
        let history = History {
            suppressed_at: Timestamp::ORIGIN,
            revived_at: None,
            watchdog: OfferWatchdog::new(),
        };
        DemandState {
            word: CachePadded::new(AtomicU64::new(0)),
            history: CachePadded::new(Mutex::new(history)),
        }
    }

    /// Waits for other polls and registrations.
    pub(crate) fn lock(&self) -> DemandGuard<'_> {
        DemandGuard { word: &self.word, history: lock(&self.history) }
    }

    /// The word that handlers read and write, and the lock of the history.
    #[cfg(all(counting, test))]
    pub(crate) fn words(&self) -> (&AtomicU64, &impl Sized) {
        (&self.word, &*self.history)
    }

    /// Records that offers were refused at a cap. Writes only if that changes the word.
    pub(crate) fn record_refused(&self) {
        if self.word.load(Ordering::Relaxed) & REFUSED == 0 {
            self.word.fetch_or(REFUSED, Ordering::Relaxed);
        }
    }

    /// Whether suppress was the last call.
    pub(crate) fn suppressed(&self) -> bool {
        // Relaxed: the answer is only of this moment.
        self.word.load(Ordering::Relaxed) & SUPPRESSED != 0
    }

    /// The number of revives.
    pub(crate) fn revives(&self) -> u64 {
        // Acquire: a thread that sees a revive doesn't refuse offers for a state from before it.
        self.word.load(Ordering::Acquire) >> REVIVES_SHIFT
    }

    /// Requests a revive, because offers that were refused may be wanted now.
    pub(crate) fn request_revive(&self) {
        // Release: a thread that sees the revive sees the policy.
        self.word.fetch_or(REVIVE_REQUESTED, Ordering::Release);
    }
}

impl DemandGuard<'_> {
    /// Resets the word for a new subscription, whose offers are neither suppressed nor refused.
    pub(crate) fn reset(&mut self) {
        self.word.fetch_and(!FLAGS, Ordering::Relaxed);
        self.history.watchdog.reset();
    }

    /// Whether no offer was answered for longer than `refusal`; see [`OfferWatchdog::has_expired`].
    pub(crate) fn watchdog_has_expired(
        &mut self,
        answered: u64,
        refusal: Duration,
        now: Timestamp,
    ) -> bool {
        self.history.watchdog.has_expired(answered, refusal, now)
    }

    /// See [`OfferWatchdog::reset`].
    pub(crate) fn reset_watchdog(&mut self) {
        self.history.watchdog.reset();
    }

    /// Returns the call that is due, if there is one; the caller must send it. `has_room` is whether the caps leave
    /// room, checked under the lock.
    pub(crate) fn poll(
        &mut self,
        has_room: bool,
        revive_interval: Duration,
        now: Timestamp,
    ) -> Option<DemandCall> {
        let mut word = self.word.load(Ordering::Relaxed);
        let call = if has_room {
            let early = |last: Timestamp| last.is_recent(revive_interval, now);
            if word & FLAGS == 0 || self.history.revived_at.is_some_and(early) {
                return None;
            }
            DemandCall::Revive
        } else {
            let again = !self.history.suppressed_at.is_recent(SUPPRESS_AGAIN_AFTER, now);
            if word & SUPPRESSED != 0 && !(again && word & REFUSED != 0) {
                return None;
            }
            DemandCall::Suppress
        };
        let recorded = |word: u64| match call {
            DemandCall::Revive => (word & !FLAGS) + REVIVES_ONE,
            DemandCall::Suppress => word & !REFUSED | SUPPRESSED,
        };
        // AcqRel: pairs with `request_revive` and `revives`. It fails only if a flag was set concurrently.
        while let Err(current) =
            self.word.compare_exchange(word, recorded(word), Ordering::AcqRel, Ordering::Relaxed)
        {
            word = current;
        }
        match call {
            DemandCall::Revive => self.history.revived_at = Some(now),
            DemandCall::Suppress => self.history.suppressed_at = now,
        }
        Some(call)
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
    /// in which many executors end at once.
    #[test]
    fn many_ends_at_once_give_one_revive() {
        let demand = DemandState::new();
        let poll = |room: bool, millis| demand.lock().poll(room, INTERVAL, at(millis));
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
    /// revive. Method: record a refusal in both situations.
    #[test]
    fn offers_during_suppression_suppress_again() {
        let demand = DemandState::new();
        let poll = |room: bool, millis| demand.lock().poll(room, INTERVAL, at(millis));
        assert_eq!(poll(false, 0), Some(Suppress));
        demand.record_refused();
        assert_eq!(poll(false, 999), None, "not at once");
        assert_eq!(poll(false, 1_000), Some(Suppress));
        assert_eq!(poll(false, 9_000), None);
        assert_eq!(poll(true, 9_000), Some(Revive));
        demand.record_refused();
        assert_eq!(poll(true, 9_001), None);
        assert_eq!(poll(true, 14_000), Some(Revive), "refused at a cap that is gone");
        demand.request_revive();
        assert_eq!(poll(true, 19_000), Some(Revive), "the policy changed");
        demand.lock().reset();
        assert_eq!(poll(true, 99_000), None, "a new subscription offers by itself");
    }

    /// Goal: a revive can be due at any time. Method: the first and the last moments, among them those of the fuzz
    /// input `poll_at_the_end_of_time`.
    #[test]
    fn the_end_of_time_is_a_moment() {
        for millis in [0, 1, 1 << 61, u64::MAX - 1, u64::MAX] {
            let demand = DemandState::new();
            for revives in 1..=3 {
                demand.request_revive();
                // Each is due at any moment.
                let call = demand.lock().poll(true, Duration::ZERO, at(millis));
                assert_eq!((call, demand.revives()), (Some(Revive), revives), "{millis}");
                assert_eq!(demand.lock().poll(true, INTERVAL, at(millis)), None, "it was said");
            }
            demand.request_revive();
            assert_eq!(demand.lock().poll(true, INTERVAL, at(millis)), None, "not so soon");
        }
    }
}
