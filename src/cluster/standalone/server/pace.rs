//! [`CallPace`]: how many calls a second are done. Those beyond wait, which slows their sender down and loses nothing.

use std::time::Duration;

/// The calls of a sender that are done in a second, on average.
const CALLS_PER_SECOND: u32 = 2000;
/// The calls that are done at once, after a pause.
const CALLS_AT_ONCE: u32 = 4000;
/// The longest that a call waits. Calls that would wait for longer are refused.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The items of a call that count as a further call.
const ITEMS_OF_A_CALL: usize = 64;

/// What this number of items of a call, such as its tasks, counts as, besides the call itself.
pub(super) fn calls_of(items: usize) -> u32 {
    u32::try_from(items / ITEMS_OF_A_CALL).unwrap_or(u32::MAX)
}

/// The calls of a sender.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallPace {
    /// When the last call would be done if none were done at once.
    next: Duration,
}

impl CallPace {
    /// Takes what counts as a number of calls, and returns how long it has to wait; `None` if too many wait already.
    /// Nothing is taken then.
    pub(super) fn take(&mut self, calls: u32, now: Duration) -> Option<Duration> {
        let interval = Duration::from_secs(1) / CALLS_PER_SECOND;
        let earliest = now.saturating_sub(interval * CALLS_AT_ONCE);
        let next = self.next.max(earliest) + interval * calls;
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
        let at_once = (0..CALLS_AT_ONCE).all(|_| pace.take(1, now) == Some(Duration::ZERO));
        assert!(at_once);
        let waiting = CALLS_PER_SECOND * 5;
        let waits: Vec<_> = (0..waiting).map(|_| pace.take(1, now).unwrap()).collect();
        assert!(waits.is_sorted() && waits[0] > Duration::ZERO);
        assert_eq!((waits.last(), pace.take(1, now)), (Some(&WAIT_MAX), None));
        assert_eq!(pace.take(1, now + Duration::from_secs(100)), Some(Duration::ZERO));
    }

    /// Goal: a call of many items counts as many. Method: the most calls at once, as some of them.
    #[test]
    fn items_count() {
        assert_eq!([0, 63, 64, 15_000].map(calls_of), [0, 0, 1, 234]);
        let mut pace = CallPace::default();
        let now = Duration::from_secs(100);
        let calls = calls_of(15_000);
        let at_once = CALLS_AT_ONCE / calls;
        assert!((0..at_once).all(|_| pace.take(calls, now) == Some(Duration::ZERO)));
        assert!(pace.take(calls, now).unwrap() > Duration::ZERO);
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
                done.extend((0..calls).filter_map(|_| pace.take(1, now)).map(|wait| now + wait));
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
