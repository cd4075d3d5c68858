//! A secret that can't be shown by accident.

use std::fmt;

/// A password, say. It has no `Display`, its `Debug` hides it, and nothing in this crate writes it anywhere but into
/// the header or the task that it is for.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Keeps `text` as a secret.
    #[must_use]
    pub fn new(text: impl Into<Box<str>>) -> Secret {
        Secret(text.into())
    }

    /// The secret itself, for whoever sends it.
    #[cfg(feature = "mesos")]
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// The secrets in a list with commas between. White space around them is dropped, and so are empty ones.
    #[must_use]
    pub fn list(&self) -> Vec<Secret> {
        let items = self.0.split(',').map(str::trim).filter(|item| !item.is_empty());
        items.map(Secret::new).collect()
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
