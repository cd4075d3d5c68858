//! Time as the kernel sees it: a number that callers pass in.

use std::fmt;
use std::time::Duration;

/// A moment, in milliseconds since an origin of the caller's choosing (a monotonic clock's start serves).
///
/// The kernel reads no clock: each method that needs the time takes it. A moment before an earlier one does no harm:
/// what depends on it happens later, never twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The origin.
    pub const ORIGIN: Timestamp = Timestamp(0);
    /// The end of time: what lasts until then lasts for ever.
    pub const MAX: Timestamp = Timestamp(u64::MAX);

    /// `millis` milliseconds after the origin.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Timestamp {
        Timestamp(millis)
    }

    /// In milliseconds since the origin.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The moment `duration` later; [`Timestamp::MAX`] when there is none.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Timestamp {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Timestamp(self.0.saturating_add(millis))
    }

    /// How long after `earlier` this is; zero when it isn't.
    #[must_use]
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} s", self.0 / 1000, self.0 % 1000)
    }
}
