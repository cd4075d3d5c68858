//! [`Unavailability`]: the planned maintenance of an agent.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time of an agent's planned maintenance, during which its resources may be unavailable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unavailability {
    /// The start, in nanoseconds since 1970.
    pub start_ns: i64,
    /// The duration, in nanoseconds. `None` means without an end.
    pub duration_ns: Option<i64>,
}

impl Unavailability {
    /// Returns the time from `now` until it begins: zero if it has begun, `None` if it is over.
    #[must_use]
    pub fn begins_in(&self, now: SystemTime) -> Option<Duration> {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let start = u128::try_from(self.start_ns).unwrap_or_default();
        let length = self.duration_ns.map(|length| u128::try_from(length).unwrap_or_default());
        let is_over = length.is_some_and(|length| start + length <= now);
        let wait = u64::try_from(start.saturating_sub(now)).unwrap_or(u64::MAX);
        (!is_over).then_some(Duration::from_nanos(wait))
    }
}
