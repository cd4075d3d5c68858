//! [`AgentSurvey`]: whether all agents have had the time to show what they have.

use std::time::Duration;

use offermill::Timestamp;

/// How long offers must have come since an agent grew, or was lost, before a task that fits on none is refused: by then
/// all have made offers.
const COMPLETE_AFTER: Duration = Duration::from_secs(30);

/// Since when offers have come without a change of agents. At a cap, and while nothing is wanted, none come to tasks.
#[derive(Debug, Default)]
pub(super) struct AgentSurvey {
    since: Option<Timestamp>,
}

impl AgentSurvey {
    /// Offers have come: it begins, if it doesn't go on.
    pub(super) fn offered(&mut self, now: Timestamp) {
        self.since.get_or_insert(now);
    }

    /// An agent is new, has more than ever before, or is lost: it begins again, if it goes on.
    pub(super) fn changed(&mut self, now: Timestamp) {
        self.since = self.since.map(|_| now);
    }

    /// No offers come until they are wanted again.
    pub(super) fn stop(&mut self) {
        self.since = None;
    }

    /// Whether all agents were seen by now, as far as they have anything to offer.
    pub(super) fn is_complete(&self, now: Timestamp) -> bool {
        self.since.is_some_and(|since| now.since(since) >= COMPLETE_AFTER)
    }
}
