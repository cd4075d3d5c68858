//! [`ShuffleOptions`]: the application, port, intervals and timeouts of a registrar.

use std::fmt;
use std::time::Duration;

use crate::error::Error;

/// The maximum length of an application id, in bytes.
const ID_MAX: usize = 4096;

/// The options of a [`Registrar`](super::Registrar).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShuffleOptions {
    /// The application's id, as its executors receive it: 1 to 4096 bytes.
    pub app_id: String,
    /// The port on which the services listen, on every host: `spark.shuffle.service.port`. At least 1. Default: 7337.
    pub port: u16,
    /// The time between two heartbeats: `spark.executor.heartbeatInterval`. Must be above zero and below the heartbeat
    /// timeout. Default: 10 s.
    pub heartbeat_interval: Duration,
    /// The time without a heartbeat after which a service deletes the application's files:
    /// `spark.storage.blockManagerHeartbeatTimeoutMs`, or `spark.network.timeout`. Default: 120 s.
    pub heartbeat_timeout: Duration,
    /// The time limit of one attempt to register, above zero: `spark.shuffle.registration.timeout`. Default: 5 s.
    pub registration_timeout: Duration,
}

impl ShuffleOptions {
    /// Creates options with Spark's defaults.
    #[must_use]
    pub fn new(app_id: impl Into<String>) -> ShuffleOptions {
        ShuffleOptions {
            app_id: app_id.into(),
            port: 7337,
            heartbeat_interval: Duration::from_secs(10),
            heartbeat_timeout: Duration::from_secs(120),
            registration_timeout: Duration::from_secs(5),
        }
    }

    /// Sets the port on which the services listen.
    #[must_use]
    pub fn with_port(self, port: u16) -> ShuffleOptions {
        ShuffleOptions { port, ..self }
    }

    /// Sets the time between two heartbeats.
    #[must_use]
    pub fn with_heartbeat_interval(self, heartbeat_interval: Duration) -> ShuffleOptions {
        ShuffleOptions { heartbeat_interval, ..self }
    }

    /// Sets the time without a heartbeat after which a service deletes the files.
    #[must_use]
    pub fn with_heartbeat_timeout(self, heartbeat_timeout: Duration) -> ShuffleOptions {
        ShuffleOptions { heartbeat_timeout, ..self }
    }

    /// Sets the time limit of one attempt to register.
    #[must_use]
    pub fn with_registration_timeout(self, registration_timeout: Duration) -> ShuffleOptions {
        ShuffleOptions { registration_timeout, ..self }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let refuse = |name: &str, value: &dyn fmt::Display, allowed: &str| {
            Err(Error::setting(name, value, allowed))
        };
        let millis = |duration: Duration| format!("{} ms", duration.as_millis());
        if self.app_id.is_empty() || self.app_id.len() > ID_MAX {
            return refuse("the application id", &self.app_id, "a text of 1 to 4096 bytes");
        }
        if self.port == 0 {
            return refuse("the shuffle service's port", &self.port, "at least 1");
        }
        let (interval, timeout) = (self.heartbeat_interval, self.heartbeat_timeout);
        if interval.is_zero() || interval >= timeout {
            let allowed = format!("above 0 and below the timeout of {}", millis(timeout));
            return refuse("the heartbeat interval", &millis(interval), &allowed);
        }
        if self.registration_timeout.is_zero() {
            return refuse("the registration timeout", &"0 ms", "above 0");
        }
        Ok(())
    }
}
