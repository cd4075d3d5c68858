//! The rate of growth of a counter over the last seconds.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The time over which the rate is taken.
const WINDOW: Duration = Duration::from_secs(5);

/// Recent values of a growing counter.
#[derive(Debug, Default)]
pub(crate) struct Rate(VecDeque<(Instant, u64)>);

impl Rate {
    /// Records the counter's value, at most ten times a second.
    pub(crate) fn record(&mut self, now: Instant, value: u64) {
        if self.0.back().is_some_and(|(last, _)| now - *last < Duration::from_millis(100)) {
            return;
        }
        self.0.push_back((now, value));
        while self.0.get(1).is_some_and(|(next, _)| now - *next >= WINDOW) {
            self.0.pop_front();
        }
    }

    /// The growth per second.
    pub(crate) fn per_second(&self) -> f64 {
        match (self.0.front(), self.0.back()) {
            (Some((first, from)), Some((last, to))) if last > first => {
                to.saturating_sub(*from) as f64 / (*last - *first).as_secs_f64()
            }
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the rate is that of the last seconds. Method: a steady growth that then stops.
    #[test]
    fn the_rate_is_recent() {
        let (mut rate, start) = (Rate::default(), Instant::now());
        assert_eq!(rate.per_second(), 0.0);
        for second in 0..60 {
            rate.record(start + Duration::from_secs(second), second.min(30) * 10);
            if second == 20 {
                assert!((rate.per_second() - 10.0).abs() < 0.01);
            }
        }
        assert_eq!(rate.per_second(), 0.0);
    }
}
