//! When nothing comes though there is room: a revive can be lost on its way, and its loss makes no noise.
//!
//! A refused offer comes back when its refusal is over. So when nothing was offered for longer than the longest
//! refusal, either the cluster has nothing to offer, and asking does no harm, or it was never told to.
//!
//! No shared words: it belongs to the [demand](super::demand)'s lock.

use std::time::Duration;

use crate::time::Timestamp;

/// So much longer than the longest refusal is silence.
const SLACK: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct OfferWatchdog {
    /// How many offers were answered at the last look.
    answered: u64,
    /// Since when there were no more of them, if that is known.
    since: Option<Timestamp>,
}

impl OfferWatchdog {
    pub(crate) fn new() -> OfferWatchdog {
        OfferWatchdog { answered: 0, since: None }
    }

    /// It begins anew: a subscription, or a call that changes what comes.
    pub(crate) fn reset(&mut self) {
        self.since = None;
    }

    /// Whether it has lasted for longer than refusals do, of which the longest is `refusal`; if so, it begins anew.
    /// `answered` are the offers that were answered so far.
    pub(crate) fn has_expired(&mut self, answered: u64, refusal: Duration, now: Timestamp) -> bool {
        let known = self.since.filter(|_| self.answered == answered);
        self.answered = answered;
        let too_long = known.is_some_and(|since| now.since(since) >= refusal.saturating_add(SLACK));
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

    /// Goal: silence is noticed once each time that it is too long, and offers break it. Method: a history.
    #[test]
    fn silence_is_noticed_when_refusals_are_over() {
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
