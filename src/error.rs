//! The crate's error type: opaque, with a message for people and predicates for programs.

use std::fmt;

/// An error of this crate. Its message is one sentence that names the setting or operation, the value, and what is
/// allowed.
///
/// ```
/// use offermill::Constraint;
///
/// let error = Constraint::parse("zone:east;").unwrap_err();
/// assert!(error.is_constraint());
/// assert_eq!(error.offset(), Some(10));
/// ```
#[derive(Debug)]
pub struct Error(Box<Kind>);

#[derive(Debug)]
enum Kind {
    Setting { name: String, value: String, allowed: String },
    Constraint { message: String, offset: usize },
    Cluster { doing: String, why: String },
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
        Error(Box::new(Kind::Setting {
            name: name.into(),
            value: value.to_string(),
            allowed: allowed.into(),
        }))
    }

    /// Creates an error about a constraint that can't be parsed; `offset` is in bytes from its start.
    #[cold]
    pub(crate) fn constraint(message: impl Into<String>, offset: usize) -> Error {
        Error(Box::new(Kind::Constraint { message: message.into(), offset }))
    }

    /// Creates an error of a cluster manager: what it was doing, and why that failed.
    #[cold]
    pub fn cluster(doing: impl Into<String>, why: impl fmt::Display) -> Error {
        Error(Box::new(Kind::Cluster { doing: doing.into(), why: why.to_string() }))
    }

    /// Returns whether a setting's value isn't allowed.
    #[must_use]
    pub fn is_setting(&self) -> bool {
        matches!(*self.0, Kind::Setting { .. })
    }

    /// The setting whose value isn't allowed, if that is the error.
    #[must_use]
    pub fn invalid_setting(&self) -> Option<InvalidSetting<'_>> {
        match &*self.0 {
            Kind::Setting { name, value, allowed } => Some(InvalidSetting { name, value, allowed }),
            _ => None,
        }
    }

    /// Returns whether a constraint can't be parsed.
    #[must_use]
    pub fn is_constraint(&self) -> bool {
        matches!(*self.0, Kind::Constraint { .. })
    }

    /// Returns whether a cluster manager failed.
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        matches!(*self.0, Kind::Cluster { .. })
    }

    /// Returns the position of the error in a constraint, in bytes from its start.
    #[must_use]
    pub fn offset(&self) -> Option<usize> {
        match *self.0 {
            Kind::Constraint { offset, .. } => Some(offset),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Kind::Setting { name, value, allowed } => {
                write!(f, "{name} is {value:?}, but must be {allowed}")
            }
            Kind::Constraint { message, .. } => f.write_str(message),
            Kind::Cluster { doing, why } => write!(f, "{doing}: {why}"),
        }
    }
}

impl std::error::Error for Error {}
