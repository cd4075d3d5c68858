//! The offer watchdog: detects that no offers arrive though there is room, so that a lost revive is repeated.
//!
//! A refused offer comes back when its refusal ends. If nothing was offered for longer than the longest refusal, either
//! the cluster has nothing to offer, and a further revive does no harm, or a revive was lost.
//!
//! It has no shared words: it is behind the lock of [demand](super::demand).

use std::time::Duration;

use crate::time::Timestamp;

/// How much longer than the longest refusal the watchdog waits.
const SLACK: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct OfferWatchdog {
    /// The number of offers answered at the last check.
    answered: u64,
    /// Since when that number has not changed, if known.
    since: Option<Timestamp>,
}

impl OfferWatchdog {
    pub(crate) fn new() -> OfferWatchdog {
        OfferWatchdog { answered: 0, since: None }
    }

    /// Starts anew, for a new subscription or after a call that changes what is offered.
    pub(crate) fn reset(&mut self) {
        self.since = None;
    }

    /// Returns whether no offer was answered for longer than `refusal`, the longest refusal; if so, starts anew.
    /// `answered` is the number of offers answered so far.
    pub(crate) fn has_expired(&mut self, answered: u64, refusal: Duration, now: Timestamp) -> bool {
        let patience = refusal.saturating_add(SLACK);
        // If it is further ahead than that, the clock had jumped ahead and is right again.
        let usable = |since: &Timestamp| self.answered == answered && since.since(now) <= patience;
        let known = self.since.filter(usable);
        self.answered = answered;
        let too_long = known.is_some_and(|since| now.since(since) >= patience);
        if known.is_none() || too_long {
            self.since = Some(now);
        }
        too_long
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: missing offers are noticed once per period, and an offer starts the period anew. Method: a history.
    #[test]
    fn missing_offers_are_noticed_when_refusals_are_over() {
        let mut watchdog = OfferWatchdog::new();
        let refusal = Duration::from_secs(20);
        let ask = |watchdog: &mut OfferWatchdog, answered, seconds: u64| {
            watchdog.has_expired(answered, refusal, Timestamp::from_millis(seconds * 1000))
        };
        assert!(!ask(&mut watchdog, 0, 100), "the first look begins it");
        assert!(!ask(&mut watchdog, 0, 129));
        assert!(ask(&mut watchdog, 0, 130));
        assert!(!ask(&mut watchdog, 0, 131), "it began anew");
        assert!(!ask(&mut watchdog, 1, 159), "an offer came");
        assert!(!ask(&mut watchdog, 1, 188) && ask(&mut watchdog, 1, 189));
        watchdog.reset();
        assert!(!ask(&mut watchdog, 1, 500) && ask(&mut watchdog, 1, 530));
    }
}
