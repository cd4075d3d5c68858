//! How many failed executors count against the run.

use std::collections::VecDeque;
use std::time::Duration;

use offermill::Timestamp;

/// Counts failures: all, or those of the last while.
#[derive(Debug)]
pub(crate) struct Failures {
    window: Option<Duration>,
    /// How many there were at all.
    all: u64,
    /// When the ones that count happened; nothing without a window.
    moments: VecDeque<Timestamp>,
}

impl Failures {
    /// None yet. `None` counts them for ever.
    pub(crate) fn new(window: Option<Duration>) -> Failures {
        Failures { window, all: 0, moments: VecDeque::new() }
    }

    /// How many count at this moment, given how many there were at all. The run ends at so many that they can be kept.
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

    /// Goal: with a window old failures are forgotten, without one never. Method: a few failures far apart.
    #[test]
    fn failures_count_for_as_long_as_was_asked_for() {
        let at = |seconds| Timestamp::ORIGIN.plus(Duration::from_secs(seconds));
        let mut failures = Failures::new(Some(Duration::from_secs(10)));
        let counts = [(0, 1), (5, 2), (10, 4), (11, 4), (21, 4), (22, 5)]
            .map(|(seconds, all)| failures.count(at(seconds), all));
        assert_eq!(counts, [1, 2, 4, 3, 0, 1]);
        assert_eq!(Failures::new(None).count(at(99), 7), 7);
    }
}
