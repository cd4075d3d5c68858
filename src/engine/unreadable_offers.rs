//! Offers that are declined because they can't be read, and their reports: one for each agent and cause, however often
//! the cluster makes such offers again. Of agents and causes beyond a number, only the count of offers is reported.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::notice::Notice;
use crate::foreign_text::cut_message;
use crate::limits::FOREIGN_ID_BYTES_MAX;

/// The maximum number of agents and causes that are told apart.
const REPORTS_MAX: usize = 256;

/// An offer that is declined because it can't be read, or because a text in it is too long.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedOffer {
    /// Its id; empty if that can't be read either. Then it can't be declined.
    pub id: String,
    /// Its agent's id, if known.
    pub agent_id: Option<String>,
    /// Why it is refused. Equal causes should have equal texts: each is reported once per agent.
    pub why: String,
}

impl RefusedOffer {
    /// Creates an offer that can't be read, of an unknown agent.
    #[must_use]
    pub fn new(id: impl Into<String>, why: impl Into<String>) -> RefusedOffer {
        RefusedOffer { id: id.into(), agent_id: None, why: why.into() }
    }

    /// Sets the agent.
    #[must_use]
    pub fn with_agent(self, agent_id: Option<String>) -> RefusedOffer {
        RefusedOffer { agent_id, ..self }
    }

    /// Leaves out ids that are too long, and cuts the reason.
    pub(crate) fn bounded(self) -> RefusedOffer {
        let is_short = |id: &String| id.len() <= FOREIGN_ID_BYTES_MAX;
        RefusedOffer {
            id: Some(self.id).filter(is_short).unwrap_or_default(),
            agent_id: self.agent_id.filter(is_short),
            why: cut_message(self.why),
        }
    }
}

/// An agent, if known, and why its offers can't be read.
type Cause = (Option<String>, String);

/// What was reported so far.
#[derive(Debug, Default)]
pub(crate) struct UnreadableReports {
    reported: BTreeSet<Cause>,
    /// The number of offers with other agents or causes, for which there was no room.
    others: u64,
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
        let mut others: Option<(String, usize, usize)> = None;
        numbers.retain(|cause, (offers, unanswered)| {
            if self.reported.contains(cause) {
                return false;
            }
            if self.reported.len() < REPORTS_MAX {
                return self.reported.insert(cause.clone());
            }
            let (last, all, all_unanswered) = others.get_or_insert_default();
            last.clone_from(&cause.1);
            *all += *offers;
            *all_unanswered += *unanswered;
            false
        });
        let mut notices: Vec<_> = numbers
            .into_iter()
            .map(|((agent_id, why), (offers, unanswered))| Notice::Unreadable {
                offers,
                unanswered,
                agent_id,
                why,
                refuse,
            })
            .collect();
        if let Some((last, offers, unanswered)) = others
            && let Some(why) = self.count_others(offers as u64, &last)
        {
            notices.push(Notice::Unreadable { offers, unanswered, agent_id: None, why, refuse });
        }
        notices
    }

    /// Counts offers that aren't reported by their agents and causes. Returns the report if their number has reached a
    /// further power of ten.
    fn count_others(&mut self, offers: u64, last: &str) -> Option<String> {
        let power = |number: u64| number.checked_ilog10();
        let before = power(self.others);
        self.others = self.others.saturating_add(offers);
        let others = self.others;
        (power(others) > before).then(|| {
            format!("so far {others} offers with further agents or causes, the last one: {last}")
        })
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

    /// Goal: agents without end make a bounded number of reports, and the number of their offers is still reported.
    /// Method: more agents than are told apart, then a hundred thousand offers one by one.
    #[test]
    fn reports_are_bounded() {
        let mut reports = UnreadableReports::default();
        let offers = (0..2 * REPORTS_MAX).map(|agent| offer("o", &format!("S{agent}"), "bad"));
        let first = report(&mut reports, offers.collect());
        assert_eq!(first.len(), REPORTS_MAX + 1);
        let expected =
            "None so far 256 offers with further agents or causes, the last one: bad 256 0";
        assert_eq!(first.last().map(String::as_str), Some(expected));
        assert!(report(&mut reports, vec![offer("o", "S0", "bad")]).is_empty());
        let more = (257..=100_000).flat_map(|number| {
            report(&mut reports, vec![offer("", &format!("T{number}"), "worse")])
        });
        let expected = [1000, 10_000, 100_000].map(|number| {
            format!(
                "None so far {number} offers with further agents or causes, the last one: worse 1 1"
            )
        });
        assert!(more.eq(expected));
    }
}
