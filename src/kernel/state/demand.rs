//! Suppress and revive: what the cluster was told last, against what the books say now.
//!
//! There is no event "demand rose". [`Demand::poll`] compares the state of the kernel with what was said last, and
//! returns the call that makes them agree, if one is due. So nothing is lost when events cross, and however many
//! executors end there is one revive.
//!
//! Handlers share one word with it:
//!
//! | field | meaning |
//! |---|---|
//! | suppressed | SUPPRESS was the last call |
//! | refused | offers were refused for a cap's sake since the last call; they stay refused until revived |
//! | wanted | the policy changed so that offers refused for other reasons may be welcome now |
//! | revives | how many REVIVEs there were: two in one millisecond differ |
//!
//! | thread | does | ordering | pairs with |
//! |---|---|---|---|
//! | a poll, under the lock | [`DemandGuard::poll`]: load, compare-exchange | AcqRel | [`Demand::request_revive`], [`Demand::revives`] |
//! | handler at a cap | [`Demand::record_refused`] | Relaxed | nothing: the next poll sees it |
//! | handler, before it looks at the admission word; [`Kernel::answers_sent`](crate::kernel::Kernel::answers_sent) | [`Demand::revives`] | Acquire | the exchange of the poll that revived: the admission word and the policy are at least as new as what that poll saw |
//! | reconfiguration | [`Demand::request_revive`] | Release | the poll's exchange, for the policy |
//! | (re)registration, under the lock | [`DemandGuard::reset`] | Relaxed | nothing |
//!
//! Polls and registrations take turns under a lock, and nothing else takes it. Three things follow:
//!
//! * What a poll records is what it returns: it looks at the caps once and records at most one call.
//! * Room isn't forgotten. A poll that follows a release either comes after the poll that suppresses, and sees what
//!   that one recorded, or before it; then the release happens before the other's look at the caps, which comes after
//!   the lock is taken.
//! * A subscription begins before a poll or after it. In the first case the poll's call is for that subscription, and
//!   in the second nothing is left of what the poll recorded.
//!
//! While one poll has the lock, others wait for a few loads and at most three exchanges, and for the
//! [counters](crate::kernel::reports::counters).

use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::offer_watchdog::OfferWatchdog;
use crate::kernel::Core;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, lock};
use crate::time::Timestamp;

const SUPPRESSED: u64 = 1;
const REFUSED: u64 = 2;
const REVIVE_REQUESTED: u64 = 4;
const FLAGS: u64 = SUPPRESSED | REFUSED | REVIVE_REQUESTED;
const REVIVES_SHIFT: u32 = 3;
const REVIVES_ONE: u64 = 1 << REVIVES_SHIFT;

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

/// The demand word, and what polls alone need to know of earlier calls. These are on lines of their own: polls write
/// the lock each time, and handlers read the word with each batch.
#[derive(Debug)]
pub(crate) struct Demand {
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

/// The right to make calls: whoever has it is alone with it.
pub(crate) struct DemandGuard<'d> {
    word: &'d AtomicU64,
    history: MutexGuard<'d, History>,
}

impl Demand {
    pub(crate) fn new() -> Demand {
        let history = History {
            suppressed_at: Timestamp::ORIGIN,
            revived_at: None,
            watchdog: OfferWatchdog::new(),
        };
        let history = CachePadded::new(Mutex::new(history));
        Demand { word: CachePadded::new(AtomicU64::new(0)), history }
    }

    /// Waits for other polls and registrations.
    pub(crate) fn lock(&self) -> DemandGuard<'_> {
        DemandGuard { word: &self.word, history: lock(&self.history) }
    }

    /// The word that handlers read and write, and the lock of what polls know.
    #[cfg(all(counting, test))]
    pub(crate) fn words(&self) -> (&AtomicU64, &impl Sized) {
        (&self.word, &*self.history)
    }

    /// Offers were refused for a cap's sake. Writes only if that is news.
    pub(crate) fn record_refused(&self) {
        if self.word.load(Ordering::Relaxed) & REFUSED == 0 {
            self.word.fetch_or(REFUSED, Ordering::Relaxed);
        }
    }

    /// Whether suppression was the last call.
    pub(crate) fn suppressed(&self) -> bool {
        // Relaxed: a moment's view.
        self.word.load(Ordering::Relaxed) & SUPPRESSED != 0
    }

    /// How many revives there were.
    pub(crate) fn revives(&self) -> u64 {
        // Acquire: a thread that knows of a revive doesn't refuse for what was over before it.
        self.word.load(Ordering::Acquire) >> REVIVES_SHIFT
    }

    /// Offers that were refused may be welcome now.
    pub(crate) fn request_revive(&self) {
        // Release: the policy that came before is visible to a thread that knows of the revive.
        self.word.fetch_or(REVIVE_REQUESTED, Ordering::Release);
    }
}

impl DemandGuard<'_> {
    /// The cluster has a new subscription, which offers to us unless told otherwise.
    pub(crate) fn reset(&mut self) {
        self.word.fetch_and(!FLAGS, Ordering::Relaxed);
        self.history.watchdog.reset();
    }

    /// The call that is due, if one is; the caller must make it. `has_room` is whether the caps leave room, as looked
    /// at since the lock was taken.
    pub(crate) fn poll(
        &mut self,
        has_room: bool,
        revive_interval: Duration,
        now: Timestamp,
    ) -> Option<DemandCall> {
        let mut word = self.word.load(Ordering::Relaxed);
        let call = if has_room {
            let early = |last| now.since(last) < revive_interval;
            if word & FLAGS == 0 || self.history.revived_at.is_some_and(early) {
                return None;
            }
            DemandCall::Revive
        } else {
            let again = now.since(self.history.suppressed_at) >= SUPPRESS_AGAIN_AFTER;
            if word & SUPPRESSED != 0 && !(again && word & REFUSED != 0) {
                return None;
            }
            DemandCall::Suppress
        };
        let recorded = |word: u64| match call {
            DemandCall::Revive => (word & !FLAGS) + REVIVES_ONE,
            DemandCall::Suppress => word & !REFUSED | SUPPRESSED,
        };
        // AcqRel: pairs with `request_revive` and `revives`. It fails only for a flag that has been raised just now.
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

impl Core {
    /// The call that is due, if `subscription` is the one in force; none stands for whichever is.
    pub(crate) fn poll_demand(
        &self,
        subscription: Option<u64>,
        now: Timestamp,
    ) -> Option<DemandCall> {
        let mut demand = self.demand.lock();
        let in_force = |number| number == self.subscription.epoch();
        if !self.subscription.connected() || !subscription.is_none_or(in_force) {
            return None;
        }
        let policy = self.policy.load();
        let admission = self.admission.load();
        let has_room = !admission.closed() && self.caps_reached(&policy, admission).is_none();
        let interval = policy.config.revive_interval;
        let mut call = demand.poll(has_room, interval, now);
        if call.is_none() && has_room {
            let answered = self.counters.sum().offers;
            let refusal = policy.config.refuse.longest();
            if !demand.history.watchdog.has_expired(answered, refusal, now) {
                return None;
            }
            self.demand.request_revive();
            call = demand.poll(has_room, interval, now);
        }
        if call.is_some() || !has_room {
            demand.history.watchdog.reset();
        }
        call
    }

    /// A subscription begins.
    pub(crate) fn registered(&self) -> u64 {
        let mut demand = self.demand.lock();
        demand.reset();
        self.subscription.begin()
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
    /// revive. Method: note a refusal in both situations.
    #[test]
    fn stray_offers_are_answered_by_suppressing_again() {
        let demand = Demand::new();
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

    /// Goal: no moment is too late to revive at. Method: the first and the last moments, among them what the fuzz input
    /// `poll_at_the_end_of_time` has.
    #[test]
    fn the_end_of_time_is_a_moment() {
        for millis in [0, 1, 1 << 61, u64::MAX - 1, u64::MAX] {
            let demand = Demand::new();
            for revives in 1..=3 {
                demand.request_revive();
                // Each is due, at whichever moment.
                let call = demand.lock().poll(true, Duration::ZERO, at(millis));
                assert_eq!((call, demand.revives()), (Some(Revive), revives), "{millis}");
                assert_eq!(demand.lock().poll(true, INTERVAL, at(millis)), None, "it was said");
            }
            demand.request_revive();
            assert_eq!(demand.lock().poll(true, INTERVAL, at(millis)), None, "not so soon");
        }
    }
}
