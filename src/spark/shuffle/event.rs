//! What a registrar reports of a service: registered, or failing.

/// What there is to tell of a service, each once until the other happens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShuffleEvent {
    /// It took the registration.
    Registered {
        /// The service's host.
        host: String,
        /// Whether it had been told of before: it works again, or was started again.
        again: bool,
    },
    /// It can't be had. It is tried again, without a further word, until it can.
    Failing {
        /// The service's host.
        host: String,
        /// In a few words; others' ones, perhaps.
        why: String,
        /// Whether the service itself said no.
        is_refusal: bool,
    },
}

/// How a service stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistrationState {
    /// Nothing was heard of it yet.
    New,
    /// The application is registered.
    Registered,
    /// It can't be had, and is tried again.
    Failing,
}
