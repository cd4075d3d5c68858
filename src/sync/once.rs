//! `OnceLock`s whose synchronisation model checkers and ThreadSanitizer see.

use std::fmt;

use super::{AtomicU32, Mutex, Ordering, lock};

/// Replaces std's `OnceLock`. Loom and shuttle run all threads as one, which std's own would block if the initialiser
/// switched threads; and ThreadSanitizer doesn't see the store with which std's own publishes the value.
pub(crate) struct OnceLock<T> {
    filled: AtomicU32,
    filling: Mutex<()>,
    value: std::sync::OnceLock<T>,
}

impl<T> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceLock").finish_non_exhaustive()
    }
}

impl<T> OnceLock<T> {
    pub(crate) fn new() -> OnceLock<T> {
        OnceLock {
            filled: AtomicU32::new(0),
            filling: Mutex::new(()),
            value: std::sync::OnceLock::new(),
        }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        // Acquire: as in std's; pairs with the Release below.
        if self.filled.load(Ordering::Acquire) == 0 { None } else { self.value.get() }
    }

    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        if self.get().is_none() {
            let _filling = lock(&self.filling);
            if self.value.get().is_none() {
                let made = make();
                self.value.get_or_init(|| made);
                self.filled.store(1, Ordering::Release);
            }
        }
        self.value.get_or_init(|| unreachable!("filled above"))
    }
}

/// A `OnceLock` of which loom sees the initialisation, but not the reads. If a thread reads a value that another thread
/// initialised, without a call of `get_or_init`, other words must order the read after the initialisation.
#[cfg(all(loom, test))]
#[derive(Debug)]
pub(crate) struct UntrackedOnceLock<T>(OnceLock<T>);

#[cfg(all(loom, test))]
impl<T> UntrackedOnceLock<T> {
    pub(crate) fn new() -> UntrackedOnceLock<T> {
        UntrackedOnceLock(OnceLock::new())
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.0.value.get()
    }

    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(make)
    }
}
