//! A `OnceLock` that checkers see.

use std::fmt;

use super::{AtomicU32, Mutex, Ordering, lock};

/// Stands for std's `OnceLock`. Loom and shuttle run all threads as one, which std's own would block, were there a
/// switch in the initialiser; and ThreadSanitizer doesn't see the store by which std's own publishes the value.
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
        // Acquire: as std's; pairs with the Release below.
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
