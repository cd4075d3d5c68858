//! The crate's one error: opaque, a sentence for people, predicates for programs.

use std::fmt;

/// What went wrong, as one sentence that names the setting or thing, its value and what is allowed.
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
    /// A setting with a value that isn't allowed.
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

    /// A constraint that can't be read; `offset` is in bytes from its start.
    #[cold]
    pub(crate) fn constraint(message: impl Into<String>, offset: usize) -> Error {
        Error(Box::new(Kind::Constraint { message: message.into(), offset }))
    }

    /// A cluster manager that failed at something.
    #[cold]
    pub fn cluster(doing: impl Into<String>, why: impl fmt::Display) -> Error {
        Error(Box::new(Kind::Cluster { doing: doing.into(), why: why.to_string() }))
    }

    /// Whether a setting's value isn't allowed.
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

    /// Whether a constraint can't be read.
    #[must_use]
    pub fn is_constraint(&self) -> bool {
        matches!(*self.0, Kind::Constraint { .. })
    }

    /// Whether a cluster manager failed.
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        matches!(*self.0, Kind::Cluster { .. })
    }

    /// Where in a constraint the error lies, in bytes from its start.
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
