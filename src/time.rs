//! Timestamps: milliseconds that callers pass in. The kernel reads no clock.

use std::fmt;
use std::time::Duration;

/// A point in time, in milliseconds since an origin that the caller chooses, such as the start of a monotonic clock.
///
/// The kernel reads no clock: each method that needs the time takes a `Timestamp`. A timestamp that is earlier than a
/// previous one is harmless: actions that depend on time happen later. Calls and searches that are made at
/// intervals may be made once more.
///
/// # A timestamp far ahead
/// If one call gets a timestamp far ahead and later calls the right time again, what that call began lasts until the
/// far time. There is no bound, because the kernel can't know which of the two is right:
///
/// * After [`Kernel::agent_lost`] or an exclusion, nothing is placed on the agent until then. A failure of an agent's
///   executor counts towards an exclusion until then. Remedy: [`Kernel::readmit_agent`].
/// * [`Kernel::tick`] gives up or forgets unreachable executors as if time had passed. They are readmitted or killed
///   when they return.
/// * An executor that becomes unreachable is given up no earlier than then. It ends when the cluster reports its end.
/// * An executor that was placed then and whose launch is lost is not reconciled before. Remedy:
///   [`Kernel::executor_lost`].
/// * The [locality wait](crate::ConfigBuilder::locality_wait) is over no earlier. Remedy: [`Kernel::set_locality`].
/// * The agent of an offer, a loss or a failure is not forgotten before. It takes memory only.
///
/// Calls and searches that [`Kernel::poll_demand`] and [`Kernel::tick`] make at intervals need no remedy: the intervals
/// start anew.
///
/// [`Kernel::agent_lost`]: crate::Kernel::agent_lost
/// [`Kernel::readmit_agent`]: crate::Kernel::readmit_agent
/// [`Kernel::tick`]: crate::Kernel::tick
/// [`Kernel::executor_lost`]: crate::Kernel::executor_lost
/// [`Kernel::set_locality`]: crate::Kernel::set_locality
/// [`Kernel::poll_demand`]: crate::Kernel::poll_demand
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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

    /// Whether this is less than `interval` ago. A time further ahead than that is of a clock that had jumped ahead and
    /// is right again: it isn't recent.
    pub(crate) fn is_recent(self, interval: Duration, now: Timestamp) -> bool {
        now.since(self) < interval && self.since(now) <= interval
    }
}

/// Serializes a time of a cluster's clock. One before 1970, which serde can't express, becomes none.
#[cfg(feature = "serde")]
pub(crate) fn serialize_clock_time<S: serde::Serializer>(
    time: &Option<std::time::SystemTime>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let time = time.filter(|time| *time >= std::time::UNIX_EPOCH);
    serde::Serialize::serialize(&time, serializer)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} s", self.0 / 1000, self.0 % 1000)
    }
}
