//! Secrets that can't be printed by accident.

use std::fmt;

/// The environment variables from which the command line reads a principal and its secret, or the names of their files.
/// Executors on local agents never inherit them.
pub const SECRET_VARIABLES: [&str; 4] = [
    "SPARK_MESOS_PRINCIPAL",
    "SPARK_MESOS_PRINCIPAL_FILE",
    "SPARK_MESOS_SECRET",
    "SPARK_MESOS_SECRET_FILE",
];

/// A secret such as a password. It has no `Display`, and its `Debug` hides the text. This crate writes the text only
/// into the header or the task that needs it. With the feature `mesos` the text is overwritten when the secret is
/// dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Creates a secret from `text`.
    #[must_use]
    pub fn new(text: impl Into<Box<str>>) -> Secret {
        Secret(text.into())
    }

    /// Returns the text of the secret, for sending. Don't print it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns whether this is the secret that was given, in a time that depends on the lengths alone.
    #[must_use]
    pub fn is_same(&self, given: &str) -> bool {
        let (given, own) = (given.as_bytes(), self.0.as_bytes());
        let mut difference = usize::from(given.len() != own.len());
        for (at, byte) in own.iter().enumerate() {
            difference |= usize::from(given.get(at).unwrap_or(&0) ^ byte);
        }
        std::hint::black_box(difference) == 0
    }

    /// Splits a comma-separated list of secrets. White space around them is removed; empty ones are dropped.
    #[must_use]
    pub fn list(&self) -> Vec<Secret> {
        let items = self.0.split(',').map(str::trim).filter(|item| !item.is_empty());
        items.map(Secret::new).collect()
    }

    /// Returns whether the text is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(feature = "mesos")]
impl Drop for Secret {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.0);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
