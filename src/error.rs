//! The crate's error type: opaque, with a message for people, and a kind and data for programs.

use std::error::Error as StdError;
use std::fmt;

/// An error of this crate. Its message is one sentence that names the setting or operation, the value, and what is
/// allowed.
///
/// ```
/// use offermill::{Config, Constraint, ErrorKind};
///
/// let error = Constraint::parse("zone:east;").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Constraint);
/// assert_eq!(error.offset(), Some(10));
///
/// let error = Config::builder().fixed_port(Some(80)).build().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Setting);
/// let setting = error.invalid_setting().unwrap();
/// assert_eq!((setting.name, setting.value, setting.allowed), ("executor port", "80", "1024 to 65535"));
/// ```
#[derive(Debug)]
pub struct Error(Box<ErrorData>);

#[derive(Debug)]
enum ErrorData {
    Setting { name: String, value: String, allowed: String },
    Constraint { message: String, offset: usize },
    Cluster { doing: String, why: String, source: Option<Box<dyn StdError + Send + Sync>> },
    Repeated { message: String },
    Ended { message: String },
}

/// What an [`Error`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting's value isn't allowed; see [`Error::invalid_setting`].
    Setting,
    /// A constraint can't be parsed; see [`Error::offset`].
    Constraint,
    /// A cluster manager failed; see [`source`](StdError::source).
    Cluster,
    /// A call that may be made once was made again: [`Kernel::adopt`](crate::Kernel::adopt), or the start of a cluster
    /// manager.
    Repeated,
    /// A call came after the end of what it needs: a [`WorkQueue`](crate::engine::WorkQueue) was given a task after its
    /// engine had ended.
    Ended,
}

/// A setting whose value isn't allowed: the parts of the error's sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidSetting<'a> {
    /// The name of the setting.
    pub name: &'a str,
    /// Its value as text.
    pub value: &'a str,
    /// What is allowed.
    pub allowed: &'a str,
}

impl Error {
    /// Creates an error about a setting whose value isn't allowed.
    #[cold]
    pub(crate) fn setting(
        name: impl Into<String>,
        value: impl fmt::Display,
        allowed: impl Into<String>,
    ) -> Error {
        Error(Box::new(ErrorData::Setting {
            name: name.into(),
            value: value.to_string(),
            allowed: allowed.into(),
        }))
    }

    /// Creates an error about a constraint that can't be parsed; `offset` is in bytes from its start.
    #[cold]
    pub(crate) fn constraint(message: impl Into<String>, offset: usize) -> Error {
        Error(Box::new(ErrorData::Constraint { message: message.into(), offset }))
    }

    /// Creates an error of a cluster manager: what it was doing, and why that failed.
    #[cold]
    pub fn cluster(doing: impl Into<String>, why: impl fmt::Display) -> Error {
        Error(Box::new(ErrorData::Cluster {
            doing: doing.into(),
            why: why.to_string(),
            source: None,
        }))
    }

    /// Creates an error of a cluster manager: what it was doing, and the error because of which that failed. Both are
    /// in the message; the error is also the [`source`](StdError::source).
    #[cold]
    pub fn cluster_from(
        doing: impl Into<String>,
        source: impl StdError + Send + Sync + 'static,
    ) -> Error {
        Error(Box::new(ErrorData::Cluster {
            doing: doing.into(),
            why: source.to_string(),
            source: Some(Box::new(source)),
        }))
    }

    /// Creates an error about a call that may be made once and was made again. A cluster manager that is started again
    /// fails with it.
    #[cold]
    pub fn repeated(message: impl Into<String>) -> Error {
        Error(Box::new(ErrorData::Repeated { message: message.into() }))
    }

    /// Creates an error about a call that came after the end of what it needs.
    #[cold]
    pub(crate) fn ended(message: impl Into<String>) -> Error {
        Error(Box::new(ErrorData::Ended { message: message.into() }))
    }

    /// Returns what the error is about.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match *self.0 {
            ErrorData::Setting { .. } => ErrorKind::Setting,
            ErrorData::Constraint { .. } => ErrorKind::Constraint,
            ErrorData::Cluster { .. } => ErrorKind::Cluster,
            ErrorData::Repeated { .. } => ErrorKind::Repeated,
            ErrorData::Ended { .. } => ErrorKind::Ended,
        }
    }

    /// Returns whether a setting's value isn't allowed.
    #[must_use]
    pub fn is_setting(&self) -> bool {
        self.kind() == ErrorKind::Setting
    }

    /// The setting whose value isn't allowed, if that is the error.
    #[must_use]
    pub fn invalid_setting(&self) -> Option<InvalidSetting<'_>> {
        match &*self.0 {
            ErrorData::Setting { name, value, allowed } => {
                Some(InvalidSetting { name, value, allowed })
            }
            _ => None,
        }
    }

    /// Returns whether a constraint can't be parsed.
    #[must_use]
    pub fn is_constraint(&self) -> bool {
        self.kind() == ErrorKind::Constraint
    }

    /// Returns whether a cluster manager failed.
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        self.kind() == ErrorKind::Cluster
    }

    /// Returns whether a call that may be made once was made again.
    #[must_use]
    pub fn is_repeated(&self) -> bool {
        self.kind() == ErrorKind::Repeated
    }

    /// Returns whether a call came after the end of what it needs.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.kind() == ErrorKind::Ended
    }

    /// Returns the position of the error in a constraint, in bytes from its start.
    #[must_use]
    pub fn offset(&self) -> Option<usize> {
        match *self.0 {
            ErrorData::Constraint { offset, .. } => Some(offset),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            ErrorData::Setting { name, value, allowed } => {
                write!(f, "{name} is {value:?}, but must be {allowed}")
            }
            ErrorData::Constraint { message, .. }
            | ErrorData::Repeated { message }
            | ErrorData::Ended { message } => f.write_str(message),
            ErrorData::Cluster { doing, why, .. } => write!(f, "{doing}: {why}"),
        }
    }
}

impl StdError for Error {
    /// Returns the cause of a cluster manager's error, if it is an error itself. The message contains the cause's.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &*self.0 {
            ErrorData::Cluster { source: Some(source), .. } => Some(&**source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// Goal: programs learn from data what the message says. Method: one error of each kind, and one with a cause.
    #[test]
    fn kinds_and_causes_are_data() {
        let setting = Error::setting("cores", 0, "at least 1");
        let parts = setting.invalid_setting().unwrap();
        assert_eq!((parts.name, parts.value, parts.allowed), ("cores", "0", "at least 1"));
        let constraint = Error::constraint("expected a value", 3);
        assert_eq!((constraint.offset(), setting.offset()), (Some(3), None));
        let plain = Error::cluster("KILL", "there is no subscription");
        let caused = Error::cluster_from("no thread", io::Error::from_raw_os_error(11));
        let again = Error::repeated("it was started before");
        let late = Error::ended("it has ended");
        let kinds = [&setting, &constraint, &plain, &caused, &again, &late].map(Error::kind);
        use ErrorKind::{Cluster, Constraint, Ended, Repeated, Setting};
        assert_eq!(kinds, [Setting, Constraint, Cluster, Cluster, Repeated, Ended]);
        assert_eq!(again.to_string(), "it was started before");
        assert!(late.is_ended() && late.to_string() == "it has ended");
        assert_eq!(plain.to_string(), "KILL: there is no subscription");
        assert!(plain.source().is_none() && setting.source().is_none());
        let cause = caused.source().and_then(|cause| cause.downcast_ref::<io::Error>()).unwrap();
        assert_eq!(cause.raw_os_error(), Some(11));
        assert_eq!(caused.to_string(), format!("no thread: {cause}"));
    }
}
