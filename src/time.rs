//! Timestamps: milliseconds that callers pass in. The kernel reads no clock.

use std::fmt;
use std::time::Duration;

/// A point in time, in milliseconds since an origin that the caller chooses, such as the start of a monotonic clock.
///
/// The kernel reads no clock: each method that needs the time takes a `Timestamp`. A timestamp that is earlier than a
/// previous one is harmless: actions that depend on time happen later, never twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The origin.
    pub const ORIGIN: Timestamp = Timestamp(0);
    /// The latest timestamp; as a deadline it means forever.
    pub const MAX: Timestamp = Timestamp(u64::MAX);

    /// Creates a timestamp `millis` milliseconds after the origin.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Timestamp {
        Timestamp(millis)
    }

    /// Returns the milliseconds since the origin.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Adds a duration; saturates at [`Timestamp::MAX`].
    #[must_use]
    pub fn plus(self, duration: Duration) -> Timestamp {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Timestamp(self.0.saturating_add(millis))
    }

    /// Returns the time since `earlier`; zero if `earlier` is later.
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
