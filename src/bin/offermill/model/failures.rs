//! The number of failed executors that count against the run.

use std::collections::VecDeque;
use std::time::Duration;

use offermill::Timestamp;

/// Counts failures: all of them, or those within a time window.
#[derive(Debug)]
pub(crate) struct FailureWindow {
    window: Option<Duration>,
    /// All failures so far.
    all: u64,
    /// The times of the failures that count; empty without a window.
    moments: VecDeque<Timestamp>,
}

impl FailureWindow {
    /// No failures yet. Without a window failures count for ever.
    pub(crate) fn new(window: Option<Duration>) -> FailureWindow {
        FailureWindow { window, all: 0, moments: VecDeque::new() }
    }

    /// How many failures count at `now`, given the number of all so far. The run ends after few enough to store each.
    pub(crate) fn count(&mut self, now: Timestamp, all: u64) -> u64 {
        let Some(window) = self.window else { return all };
        let new = all.saturating_sub(self.all);
        self.all = all;
        self.moments.extend((0..new).map(|_| now));
        while self.moments.front().is_some_and(|first| now.since(*first) > window) {
            self.moments.pop_front();
        }
        self.moments.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: with a window old failures are forgotten, without one none is. Method: a few failures far apart.
    #[test]
    fn failures_count_within_the_window() {
        let at = |seconds| Timestamp::ORIGIN.plus(Duration::from_secs(seconds));
        let mut failures = FailureWindow::new(Some(Duration::from_secs(10)));
        let counts = [(0, 1), (5, 2), (10, 4), (11, 4), (21, 4), (22, 5)]
            .map(|(seconds, all)| failures.count(at(seconds), all));
        assert_eq!(counts, [1, 2, 4, 3, 0, 1]);
        assert_eq!(FailureWindow::new(None).count(at(99), 7), 7);
    }
}
