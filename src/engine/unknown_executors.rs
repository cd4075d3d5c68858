//! Reports of executors that run though the kernel doesn't know them, each of which is killed. The user is told of the
//! first, and whenever their number reaches a power of ten.

/// The number of such reports so far, without those of executors that are being killed already.
#[derive(Debug, Default)]
pub(super) struct UnknownExecutors {
    reports: u64,
}

impl UnknownExecutors {
    /// Counts a report of one, by an agent if one is named. Returns the sentence for the user, if one is due.
    pub(super) fn count(&mut self, executor: &str, agent_id: Option<&str>) -> Option<String> {
        self.reports = self.reports.saturating_add(1);
        let on = agent_id.map_or_else(String::new, |id| format!(" on agent {id}"));
        let what = format!("executor {executor}{on}, which this framework doesn't have");
        match self.reports {
            1 => Some(format!("{what}, is reported to run, and is killed")),
            reports if reports == 10_u64.pow(reports.ilog10()) => Some(format!(
                "{reports} reports of unknown executors so far, each of which is killed; the last one is {what}"
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: executors without end make a bounded number of reports, which say who is killed. Method: a hundred
    /// thousand, with an agent and without.
    #[test]
    fn reports_are_bounded() {
        let mut unknown = UnknownExecutors::default();
        let reports: Vec<_> = (1..=100_000)
            .filter_map(|number| {
                unknown.count(&format!("e-{number}"), (number < 100).then_some("S1"))
            })
            .collect();
        let expected = [
            "executor e-1 on agent S1, which this framework doesn't have, is reported to run, and is killed",
            "10 reports of unknown executors so far, each of which is killed; the last one is executor e-10 on \
             agent S1, which this framework doesn't have",
        ];
        assert_eq!(reports[..2], expected);
        assert_eq!(reports.len(), 6, "{reports:#?}");
    }
}
