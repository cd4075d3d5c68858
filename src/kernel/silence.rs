//! When nothing comes though there is room: a revive can be lost on its way, and its loss makes no noise.
//!
//! A refused offer comes back when its refusal is over. So when nothing was offered for longer than the longest
//! refusal, either the cluster has nothing to offer, and asking does no harm, or it was never told to.
//!
//! | field | meaning |
//! |---|---|
//! | answered | offers answered when somebody looked last |
//! | since | since when there were no more of them, in milliseconds, plus one; 0 for unknown |
//!
//! | who | does | ordering |
//! |---|---|---|
//! | whoever polls | swap, store, compare-exchange | Relaxed: of two polls that find silence one breaks it; nothing is read by it |
//! | (re)registration | store | Relaxed |

use std::time::Duration;

use crate::sync::{AtomicU64, Ordering};
use crate::time::Timestamp;

/// So much longer than the longest refusal is silence.
const SLACK: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Silence {
    answered: AtomicU64,
    since: AtomicU64,
}

impl Silence {
    pub(crate) fn new() -> Silence {
        Silence { answered: AtomicU64::new(0), since: AtomicU64::new(0) }
    }

    /// It begins anew: a subscription, or a call that changes what comes.
    pub(crate) fn reset(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    /// Whether it has lasted for longer than refusals do, of which the longest is `refusal`: true for one of those who
    /// ask, and then it begins anew. `answered` are the offers that were answered so far.
    pub(crate) fn is_too_long(&self, answered: u64, refusal: Duration, now: Timestamp) -> bool {
        let stamp = now.as_millis().saturating_add(1);
        let since = self.since.load(Ordering::Relaxed);
        if self.answered.swap(answered, Ordering::Relaxed) != answered || since == 0 {
            self.since.store(stamp, Ordering::Relaxed);
            return false;
        }
        let lasted = now.since(Timestamp::from_millis(since - 1));
        lasted >= refusal.saturating_add(SLACK)
            && self
                .since
                .compare_exchange(since, stamp, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: silence is noticed once each time that it is too long, and offers break it. Method: a history.
    #[test]
    fn silence_is_noticed_when_refusals_are_over() {
        let silence = Silence::new();
        let refusal = Duration::from_secs(20);
        let ask = |answered, seconds: u64| {
            silence.is_too_long(answered, refusal, Timestamp::from_millis(seconds * 1000))
        };
        assert!(!ask(0, 100), "the first look begins it");
        assert!(!ask(0, 129));
        assert!(ask(0, 130));
        assert!(!ask(0, 131), "it began anew");
        assert!(!ask(1, 159), "an offer came");
        assert!(!ask(1, 188) && ask(1, 189));
        silence.reset();
        assert!(!ask(1, 500) && ask(1, 530));
    }
}
