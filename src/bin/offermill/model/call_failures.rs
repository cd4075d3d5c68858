//! Rate limit for messages about failed calls: the first few are reported one by one, the rest in sums. If a master is
//! gone, there can be thousands.

use std::time::Duration;

use offermill::Timestamp;

use crate::model::event::RunEvent;

/// The most failures that are reported one by one in a row.
const BURST_MAX: u32 = 5;
/// The pause after which one more report is allowed.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// Decides which failed calls are reported.
#[derive(Debug)]
pub(crate) struct CallFailures {
    /// How many reports are allowed now.
    allowed: u32,
    /// When one more is allowed.
    next_at: Timestamp,
    /// How many failures were not reported yet.
    unreported: u64,
    /// The reason of the last of them.
    last: String,
}

impl CallFailures {
    /// No call has failed yet.
    pub(crate) fn new() -> CallFailures {
        CallFailures {
            allowed: BURST_MAX,
            next_at: Timestamp::ORIGIN,
            unreported: 0,
            last: String::new(),
        }
    }

    /// Records a failed call. Returns an event if a report is allowed now.
    pub(crate) fn record(&mut self, now: Timestamp, why: String) -> Option<RunEvent> {
        self.unreported += 1;
        self.last = why;
        self.poll(now)
    }

    /// Returns an event about unreported failures, if there are any and a report is allowed now.
    pub(crate) fn poll(&mut self, now: Timestamp) -> Option<RunEvent> {
        if self.allowed < BURST_MAX && now >= self.next_at {
            self.allowed += 1;
            self.next_at = now.plus(REPORT_INTERVAL);
        }
        if self.allowed == 0 || self.unreported == 0 {
            return None;
        }
        if self.allowed == BURST_MAX {
            self.next_at = now.plus(REPORT_INTERVAL);
        }
        self.allowed -= 1;
        self.flush()
    }

    /// Returns an event about all unreported failures, if there are any.
    pub(crate) fn flush(&mut self) -> Option<RunEvent> {
        let calls = std::mem::take(&mut self.unreported);
        let why = std::mem::take(&mut self.last);
        (calls > 0).then_some(RunEvent::CallFailed { why, calls })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: many failures make few lines, and none is lost. Method: a thousand within a minute.
    #[test]
    fn many_failures_are_summed_up() {
        let mut failures = CallFailures::new();
        let mut lines = 0;
        let mut calls = 0;
        let mut count = |event: Option<RunEvent>| {
            if let Some(RunEvent::CallFailed { calls: more, .. }) = event {
                lines += 1;
                calls += more;
            }
        };
        for number in 0..1_000_u64 {
            let now = Timestamp::from_millis(number * 60);
            count(failures.record(now, format!("call {number}")));
            count(failures.poll(now));
        }
        count(failures.flush());
        assert_eq!(calls, 1_000);
        assert!((6..=12).contains(&lines), "{lines}");
    }
}
