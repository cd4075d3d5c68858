//! [`CallPace`]: how many calls a second are done. Those beyond wait, which slows their sender down and loses nothing.

use std::time::Duration;

/// The calls of a sender that are done in a second, on average.
const CALLS_PER_SECOND: u32 = 2000;
/// The calls that are done at once, after a pause.
const CALLS_AT_ONCE: u32 = 4000;
/// The longest that a call waits. Calls that would wait for longer are refused.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The calls of a sender.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallPace {
    /// When the last call would be done if none were done at once.
    next: Duration,
}

impl CallPace {
    /// Takes a call, and returns how long it has to wait; `None` if too many wait already. The call isn't taken then.
    pub(super) fn take(&mut self, now: Duration) -> Option<Duration> {
        let interval = Duration::from_secs(1) / CALLS_PER_SECOND;
        let earliest = now.saturating_sub(interval * CALLS_AT_ONCE);
        let next = self.next.max(earliest) + interval;
        let wait = next.saturating_sub(now);
        if wait > WAIT_MAX {
            return None;
        }
        self.next = next;
        Some(wait)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Goal: a crowd of calls waits, is refused at last, and is done again after a pause. Method: calls at one moment.
    #[test]
    fn a_crowd_waits() {
        let mut pace = CallPace::default();
        let now = Duration::from_secs(100);
        let at_once = (0..CALLS_AT_ONCE).all(|_| pace.take(now) == Some(Duration::ZERO));
        assert!(at_once);
        let waiting = CALLS_PER_SECOND * 5;
        let waits: Vec<_> = (0..waiting).map(|_| pace.take(now).unwrap()).collect();
        assert!(waits.is_sorted() && waits[0] > Duration::ZERO);
        assert_eq!((waits.last(), pace.take(now)), (Some(&WAIT_MAX), None));
        assert_eq!(pace.take(now + Duration::from_secs(100)), Some(Duration::ZERO));
    }

    proptest! {
        /// Goal: never more calls are done than allowed. Method: calls at random times, among them crowds; in the time
        /// between any two of them that are done.
        #[test]
        fn calls_keep_the_pace(
            crowds in prop::collection::vec((0..3000_u64, 1..3000_u32), 1..12),
        ) {
            let (mut pace, mut now, mut done) = (CallPace::default(), Duration::ZERO, Vec::new());
            for (pause, calls) in crowds {
                now += Duration::from_millis(pause);
                done.extend((0..calls).filter_map(|_| pace.take(now)).map(|wait| now + wait));
            }
            prop_assert!(done.is_sorted());
            for (first, from) in done.iter().enumerate().step_by(97) {
                for (last, to) in done.iter().enumerate().skip(first).step_by(101) {
                    let most = (*to - *from).as_secs_f64() * f64::from(CALLS_PER_SECOND)
                        + f64::from(CALLS_AT_ONCE) + 1.0;
                    prop_assert!((last - first + 1) as f64 <= most + 1e-3, "{first} to {last}");
                }
            }
        }
    }
}
