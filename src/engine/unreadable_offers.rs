//! Offers that are declined because they can't be read, and their reports: one for each agent and cause, however often
//! the cluster makes such offers again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::notice::Notice;

/// The maximum number of agents and causes that are told apart.
const REPORTS_MAX: usize = 256;

/// An offer that can't be read, or that isn't used because a text in it is too long.
pub(crate) struct RefusedOffer {
    /// Its id; empty if that can't be read either.
    pub(crate) id: String,
    /// Its agent, if known.
    pub(crate) agent_id: Option<String>,
    pub(crate) why: String,
}

/// An agent, if known, and why its offers can't be read.
type Cause = (Option<String>, String);

/// What was reported so far.
#[derive(Debug, Default)]
pub(crate) struct UnreadableReports {
    reported: BTreeSet<Cause>,
}

impl UnreadableReports {
    /// Returns the notices about `offers`, which were refused for `refuse`.
    pub(crate) fn report(&mut self, offers: Vec<RefusedOffer>, refuse: Duration) -> Vec<Notice> {
        let mut numbers: BTreeMap<Cause, (usize, usize)> = BTreeMap::new();
        for RefusedOffer { id, agent_id, why } in offers {
            let (offers, unanswered) = numbers.entry((agent_id, why)).or_default();
            *offers += 1;
            *unanswered += usize::from(id.is_empty());
        }
        numbers.retain(|cause, _| {
            self.reported.len() < REPORTS_MAX && self.reported.insert(cause.clone())
        });
        let notices = numbers.into_iter().map(|((agent_id, why), (offers, unanswered))| {
            Notice::Unreadable { offers, unanswered, agent_id, why, refuse }
        });
        notices.collect()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    fn offer(id: &str, agent: &str, why: &str) -> RefusedOffer {
        let agent_id = Some(agent.to_owned()).filter(|agent| !agent.is_empty());
        RefusedOffer { id: id.to_owned(), agent_id, why: why.to_owned() }
    }

    fn report(reports: &mut UnreadableReports, offers: Vec<RefusedOffer>) -> Vec<String> {
        let notices = reports.report(offers, Duration::from_secs(5));
        let notices = notices.into_iter().map(|notice| match notice {
            Notice::Unreadable { offers, unanswered, agent_id, why, .. } => {
                format!("{agent_id:?} {why} {offers} {unanswered}")
            }
            _ => String::new(),
        });
        notices.collect()
    }

    /// Goal: each cause is reported once per agent, with its number of offers. Method: batches of two agents and one
    /// that can't be read, with two causes, repeatedly.
    #[test]
    fn each_agent_and_cause_is_reported_once() {
        let mut reports = UnreadableReports::default();
        let batch = || {
            vec![
                offer("o1", "S1", "bad"),
                offer("o2", "S2", "bad"),
                offer("", "S1", "bad"),
                offer("", "", "bad"),
            ]
        };
        let expected = ["None bad 1 1", "Some(\"S1\") bad 2 1", "Some(\"S2\") bad 1 0"];
        assert_eq!(report(&mut reports, batch()), expected);
        assert!(report(&mut reports, batch()).is_empty());
        let expected = ["Some(\"S1\") worse 1 0"];
        assert_eq!(report(&mut reports, vec![offer("o3", "S1", "worse")]), expected);
    }

    /// Goal: agents without end make a bounded number of reports. Method: more agents than are told apart.
    #[test]
    fn reports_are_bounded() {
        let mut reports = UnreadableReports::default();
        let offers = (0..2 * REPORTS_MAX).map(|agent| offer("o", &format!("S{agent}"), "bad"));
        assert_eq!(report(&mut reports, offers.collect()).len(), REPORTS_MAX);
        assert!(report(&mut reports, vec![offer("o", "S", "bad")]).is_empty());
    }
}
