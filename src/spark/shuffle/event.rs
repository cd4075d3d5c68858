//! Events that a registrar reports about shuffle services, and the state of a registration.

/// An event about a shuffle service. Each is reported once until the other one occurs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShuffleEvent {
    /// The service accepted the registration.
    Registered {
        /// The host of the service.
        host: String,
        /// Whether the service was reported before: it works again, or was restarted.
        again: bool,
    },
    /// The service can't be reached, or refuses. The registrar retries without further events until it succeeds.
    Failing {
        /// The host of the service.
        host: String,
        /// A short reason, perhaps in the service's own words.
        why: String,
        /// Whether the service itself refused the registration.
        is_refusal: bool,
    },
}

/// The state of an application's registration with a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistrationState {
    /// No call has ended yet.
    New,
    /// The application is registered.
    Registered,
    /// The last registration failed, and is retried.
    Failing,
}
