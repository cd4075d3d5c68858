//! A secret that can't be shown by accident.

use std::fmt;

/// A password. It has no `Display`, its `Debug` hides it, and nothing in this crate writes it anywhere but into the
/// header that it is for.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Keeps `text` as a secret.
    #[must_use]
    pub fn new(text: impl Into<Box<str>>) -> Secret {
        Secret(text.into())
    }

    /// The secret itself, for the one place that sends it.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
