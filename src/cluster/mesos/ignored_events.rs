//! Reports of events that can't be decoded: a bounded number, whatever the master sends.

use std::collections::BTreeSet;

/// The maximum number of causes that are told apart. Errors may quote what can't be decoded.
const CAUSES_MAX: usize = 16;

/// The events that were ignored, of all subscriptions.
#[derive(Debug, Default)]
pub(super) struct IgnoredEvents {
    /// The causes that were reported, without their digits: positions and lengths vary.
    causes: BTreeSet<String>,
    events: u64,
}

impl IgnoredEvents {
    /// Counts an event that was ignored because of `why`. Returns the report, for the first event of each cause, and
    /// for each power of ten of the number of events.
    pub(super) fn count(&mut self, why: &str) -> Option<String> {
        self.events = self.events.saturating_add(1);
        let cause: String = why.chars().filter(|c| !c.is_ascii_digit()).collect();
        let is_new = self.causes.len() < CAUSES_MAX && self.causes.insert(cause);
        let events = self.events;
        match is_new {
            true if events == 1 => Some(format!("an event was ignored: {why}")),
            true => Some(format!("an event was ignored, number {events} of this run: {why}")),
            false if events >= 10 && events == 10_u64.pow(events.ilog10()) => {
                Some(format!("{events} events were ignored so far, the last one because: {why}"))
            }
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each cause is reported once, and how many events were ignored. Method: one cause at different positions,
    /// then another, then many of them.
    #[test]
    fn each_cause_is_reported_once() {
        let mut ignored = IgnoredEvents::default();
        let reports: Vec<_> =
            (0..99).filter_map(|at| ignored.count(&format!("bad at {at}"))).collect();
        assert_eq!(
            reports,
            [
                "an event was ignored: bad at 0",
                "10 events were ignored so far, the last one because: bad at 9",
            ]
        );
        let other = ignored.count("worse");
        assert_eq!(other.as_deref(), Some("an event was ignored, number 100 of this run: worse"));
    }

    /// Goal: any causes make a bounded number of reports. Method: a thousand causes, a hundred thousand events.
    #[test]
    fn reports_are_bounded() {
        let mut ignored = IgnoredEvents::default();
        let cause = |number: u32| "ab".repeat(number as usize % 1000);
        let reports = (0..100_000).filter_map(|number| ignored.count(&cause(number))).count();
        assert!(reports <= CAUSES_MAX + 5, "{reports}");
    }
}
