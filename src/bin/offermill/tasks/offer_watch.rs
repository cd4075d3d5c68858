//! [`OfferWatch`]: whether all agents have had the time to show what they have.

use std::time::Duration;

use offermill::Timestamp;

/// How long offers must have been looked at since an agent grew, or was lost, before a task that fits on none is
/// refused: by then all have made offers.
const SEEN_ALL_AFTER: Duration = Duration::from_secs(30);

/// Since when offers have been looked at without a change of agents. At a cap, and while nothing is wanted, they
/// aren't.
#[derive(Debug, Default)]
pub(super) struct OfferWatch {
    since: Option<Timestamp>,
}

impl OfferWatch {
    /// Offers are looked at.
    pub(super) fn look(&mut self, now: Timestamp) {
        self.since.get_or_insert(now);
    }

    /// An agent is new, has more than ever before, or is lost.
    pub(super) fn restart(&mut self, now: Timestamp) {
        self.since = Some(now);
    }

    /// No offers are looked at, until they are again.
    pub(super) fn stop(&mut self) {
        self.since = None;
    }

    /// Whether all agents were seen by now, as far as they have anything to offer.
    pub(super) fn has_seen_all(&self, now: Timestamp) -> bool {
        self.since.is_some_and(|since| now.since(since) >= SEEN_ALL_AFTER)
    }
}
