//! The settings of dynamic allocation and of the shuffle service.

use std::time::Duration;

/// The largest number of executors, which stands for no maximum: Spark counts in `int`.
pub(crate) const UNLIMITED: u32 = i32::MAX as u32;

/// The settings of dynamic allocation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AllocationSettings {
    /// Whether the number of executors follows the load.
    pub(crate) enabled: bool,
    pub(crate) min: u32,
    /// [`UNLIMITED`] if there is no maximum.
    pub(crate) max: u32,
    /// The initial number that was given.
    pub(crate) given_initial: Option<u32>,
    /// The initial number in force: the largest of the minimum, the given one and `spark.executor.instances`.
    pub(crate) initial: u32,
    /// The number of executors per number of tasks that fit into one executor.
    pub(crate) ratio: f64,
    pub(crate) backlog_timeout: Duration,
    pub(crate) sustained_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    /// The idle timeout of executors with cached blocks; `None` is never.
    pub(crate) cached_idle_timeout: Option<Duration>,
    /// Whether executors with shuffle data are kept.
    pub(crate) shuffle_tracking: bool,
    /// How long they are kept; `None` is for ever.
    pub(crate) shuffle_tracking_timeout: Option<Duration>,
}

impl Default for AllocationSettings {
    fn default() -> AllocationSettings {
        AllocationSettings {
            enabled: false,
            min: 0,
            max: UNLIMITED,
            given_initial: None,
            initial: 0,
            ratio: 1.0,
            backlog_timeout: Duration::from_secs(1),
            sustained_timeout: Duration::from_secs(1),
            idle_timeout: Duration::from_secs(60),
            cached_idle_timeout: None,
            shuffle_tracking: true,
            shuffle_tracking_timeout: None,
        }
    }
}

impl AllocationSettings {
    /// Sets the initial number in force, given `spark.executor.instances`.
    pub(crate) fn set_initial(&mut self, instances: Option<u32>) {
        let given = self.given_initial.unwrap_or(0);
        self.initial = self.min.max(given).max(instances.unwrap_or(0));
    }
}

/// The settings of the shuffle service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShuffleSettings {
    /// Whether agents have the service.
    pub(crate) enabled: bool,
    pub(crate) port: u16,
    pub(crate) registration_timeout: Duration,
    pub(crate) heartbeat_interval: Duration,
    /// The time without a heartbeat after which the service removes the files.
    pub(crate) heartbeat_timeout: Duration,
}

impl Default for ShuffleSettings {
    fn default() -> ShuffleSettings {
        ShuffleSettings {
            enabled: false,
            port: 7337,
            registration_timeout: Duration::from_secs(5),
            heartbeat_interval: Duration::from_secs(10),
            heartbeat_timeout: Duration::from_secs(120),
        }
    }
}
