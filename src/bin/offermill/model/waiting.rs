//! Detects that executors are wanted and none can be placed, and decides when to report it.

use std::time::Duration;

use offermill::{Declined, Explanation, Kernel, Miss, Reason, ReasonKind, Timestamp};

/// The time without a placement after which the run counts as stalled.
const STALLED_AFTER: Duration = Duration::from_secs(5);
/// The longest pause between two reports.
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// How often the explanation is refreshed while the run is stalled.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// The most reasons that a report names.
pub(crate) const REASONS_MAX: usize = 3;

/// Watches whether the run is stalled.
#[derive(Debug)]
pub(crate) struct StallWatch {
    placed: u64,
    /// When an executor was placed last, or none was wanted.
    since: Timestamp,
    pause: Duration,
    report_at: Timestamp,
    reported: Option<ReportKey>,
    /// What to add if no offers come.
    no_offers_hint: Option<String>,
    /// The current explanation while the run is stalled.
    pub(crate) stall: Option<Stall>,
}

/// Why the run is stalled.
#[derive(Clone, Debug)]
pub(crate) struct Stall {
    pub(crate) explanation: Explanation,
    /// What to add if no offers come.
    pub(crate) no_offers_hint: Option<String>,
    /// Why no offers can come, if there is no subscription.
    pub(crate) unconnected: Option<String>,
    /// What the cluster says of executors that it has not started.
    pub(crate) delays: StartDelays,
}

/// What a cluster that chooses agents late says of executors that it has not started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StartDelays {
    /// What executors that were placed wait for: each reason with their number, the most frequent first.
    pub(crate) unstarted: Vec<(String, u64)>,
    /// Why the cluster took the last executor that it was asked for not at all, if none has started since.
    pub(crate) denied: Option<String>,
}

/// How far a run has come.
pub(crate) struct PlacementProgress {
    /// The number of executors that have got an agent so far.
    pub(crate) placed: u64,
    /// The number of executors that are alive.
    pub(crate) alive: u64,
    /// Why there is no subscription, if there is none.
    pub(crate) unconnected: Option<String>,
    /// What the cluster says of executors that it has not started.
    pub(crate) delays: StartDelays,
}

/// The part of an explanation whose change is worth another report: how many executors are wanted, the agents of the
/// nearest misses and their reasons, whether there is a subscription, what executors wait for that were placed, and
/// whether the cluster denies others.
type ReportKey = (u32, Vec<(Option<Box<str>>, Reason)>, bool, Vec<(String, u64)>, bool);

impl StallWatch {
    /// Not stalled.
    pub(crate) fn new(no_offers_hint: Option<String>) -> StallWatch {
        StallWatch {
            placed: 0,
            since: Timestamp::ORIGIN,
            pause: STALLED_AFTER,
            report_at: Timestamp::ORIGIN.plus(STALLED_AFTER),
            reported: None,
            no_offers_hint,
            stall: None,
        }
    }

    /// Updates the watch. Returns the stall if it should be reported now.
    pub(crate) fn poll(
        &mut self,
        kernel: &Kernel,
        progress: PlacementProgress,
        now: Timestamp,
    ) -> Option<Stall> {
        let PlacementProgress { placed, alive, unconnected, delays } = progress;
        let is_waiting = kernel.wanted() > 0 || !delays.unstarted.is_empty();
        if placed != self.placed || !is_waiting {
            let report_at = now.plus(STALLED_AFTER);
            let fresh = StallWatch::new(self.no_offers_hint.take());
            *self = StallWatch { placed, since: now, report_at, ..fresh };
            return None;
        }
        let is_fresh = |it: &Stall| now.since(it.explanation.at) < REFRESH_INTERVAL;
        if now.since(self.since) < STALLED_AFTER || self.stall.as_ref().is_some_and(is_fresh) {
            return None;
        }
        let explanation = kernel.explain(now);
        // A run that wants as many executors as fit has them.
        if !explanation.is_bounded && alive > 0 && delays == StartDelays::default() {
            self.stall = None;
            return None;
        }
        let no_offers_hint = self.no_offers_hint.clone();
        let stall = Stall { explanation, no_offers_hint, unconnected, delays };
        self.stall = Some(stall.clone());
        if now < self.report_at {
            return None;
        }
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        self.report_at = now.plus(self.pause);
        let key = Some(report_key(&stall));
        (key != self.reported).then(|| {
            self.reported = key;
            stall
        })
    }
}

fn report_key(stall: &Stall) -> ReportKey {
    let Stall { explanation, unconnected, delays, .. } = stall;
    let misses = explanation.declined.iter().filter_map(relevant_miss);
    let misses = misses.map(|(_, miss)| (miss.agent_id.clone(), miss.reason));
    let reasons = misses.take(REASONS_MAX).collect();
    let unstarted = delays.unstarted.clone();
    (explanation.wanted, reasons, unconnected.is_none(), unstarted, delays.denied.is_some())
}

/// The nearest miss, if it is an agent's. A cap that was reached once is not what the run waits for, and that no task
/// was picked says nothing of an agent.
pub(crate) fn relevant_miss(declined: &Declined) -> Option<(ReasonKind, &Miss)> {
    let is_relevant =
        |miss: &&Miss| miss.agent_id.is_some() && declined.kind != ReasonKind::NotPicked;
    let miss = declined.nearest.as_ref().filter(is_relevant)?;
    Some((declined.kind, miss))
}
