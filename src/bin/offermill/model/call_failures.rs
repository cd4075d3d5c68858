//! Failures of calls, of which there can be thousands when a master is gone: the first are told one by one, the rest
//! in sums.

use std::time::Duration;

use offermill::Timestamp;

use crate::model::event::RunEvent;

/// So many are told one by one.
const AT_ONCE_MAX: u32 = 5;
/// One more can be told after so long.
const ONE_EVERY: Duration = Duration::from_secs(10);

/// Decides which failures are told.
#[derive(Debug)]
pub(crate) struct CallFailures {
    /// So many can be told now.
    room: u32,
    /// When there is room for one more.
    more_at: Timestamp,
    /// How many were not told, and the last of them.
    untold: u64,
    last: String,
}

impl CallFailures {
    /// Calm.
    pub(crate) fn new() -> CallFailures {
        CallFailures {
            room: AT_ONCE_MAX,
            more_at: Timestamp::ORIGIN,
            untold: 0,
            last: String::new(),
        }
    }

    /// A call failed. Returns what there is to tell, if it is told now.
    pub(crate) fn failed(&mut self, now: Timestamp, why: String) -> Option<RunEvent> {
        (self.untold, self.last) = (self.untold + 1, why);
        self.look(now)
    }

    /// RunEvent was not told yet, when there is room for it.
    pub(crate) fn look(&mut self, now: Timestamp) -> Option<RunEvent> {
        if self.room < AT_ONCE_MAX && now >= self.more_at {
            self.room += 1;
            self.more_at = now.plus(ONE_EVERY);
        }
        if self.room == 0 || self.untold == 0 {
            return None;
        }
        if self.room == AT_ONCE_MAX {
            self.more_at = now.plus(ONE_EVERY);
        }
        self.room -= 1;
        self.rest()
    }

    /// RunEvent was not told yet.
    pub(crate) fn rest(&mut self) -> Option<RunEvent> {
        let (calls, why) = (std::mem::take(&mut self.untold), std::mem::take(&mut self.last));
        (calls > 0).then_some(RunEvent::CallFailed { why, calls })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a storm of failures makes few lines and loses no failure. Method: a thousand within a minute.
    #[test]
    fn a_storm_is_summed_up() {
        let mut storm = CallFailures::new();
        let (mut lines, mut calls) = (0, 0);
        let mut tell = |what: Option<RunEvent>| {
            if let Some(RunEvent::CallFailed { calls: more, .. }) = what {
                (lines, calls) = (lines + 1, calls + more);
            }
        };
        for number in 0..1_000_u64 {
            let now = Timestamp::from_millis(number * 60);
            tell(storm.failed(now, format!("call {number}")));
            tell(storm.look(now));
        }
        tell(storm.rest());
        assert_eq!(calls, 1_000);
        assert!((6..=12).contains(&lines), "{lines}");
    }
}
