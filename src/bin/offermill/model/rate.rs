//! How fast a counter grows.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The rate is over this long.
const WINDOW: Duration = Duration::from_secs(5);

/// A growing counter's recent past.
#[derive(Debug, Default)]
pub(crate) struct Rate(VecDeque<(Instant, u64)>);

impl Rate {
    /// Notes the counter's value, at most some times a second.
    pub(crate) fn note(&mut self, now: Instant, value: u64) {
        if self.0.back().is_some_and(|(last, _)| now - *last < Duration::from_millis(100)) {
            return;
        }
        self.0.push_back((now, value));
        while self.0.get(1).is_some_and(|(next, _)| now - *next >= WINDOW) {
            self.0.pop_front();
        }
    }

    /// So much in a second.
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
            rate.note(start + Duration::from_secs(second), second.min(30) * 10);
            if second == 20 {
                assert!((rate.per_second() - 10.0).abs() < 0.01);
            }
        }
        assert_eq!(rate.per_second(), 0.0);
    }
}
