//! The only place that knows which world the kernel's shared memory lives in: the real one, or loom's.
//!
//! The gate is `all(loom, test)` and not `loom` alone, because `--cfg loom` reaches every crate of a build.
//! `OnceLock` has no loom twin; the kernel uses it only to make memory appear once (segments of a table), never to
//! decide anything, so that loom loses nothing by not seeing it. Timed waiting has none either: under loom
//! [`wait_for`] waits without a deadline, and models play the deadline as a thread that gives up.

#[cfg(not(all(loom, test)))]
mod world {
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
    use std::time::Duration;

    /// The length of a slab's first segment, as a power of two.
    pub(crate) const SLAB_FIRST_BITS: u32 = 5;

    /// Waits until `done` or until `timeout` has passed, and says whether it was done.
    pub(crate) fn wait_for<'a, T>(
        condvar: &Condvar,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
        mut done: impl FnMut() -> bool,
    ) -> (MutexGuard<'a, T>, bool) {
        let waited = condvar.wait_timeout_while(guard, timeout, |_| !done());
        let (guard, result) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        (guard, !result.timed_out())
    }
}

#[cfg(all(loom, test))]
mod world {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    use std::time::Duration;

    /// Small, for loom tracks every cell.
    pub(crate) const SLAB_FIRST_BITS: u32 = 1;

    /// Waits until `done`: loom knows no time.
    pub(crate) fn wait_for<'a, T>(
        condvar: &Condvar,
        mut guard: MutexGuard<'a, T>,
        _timeout: Duration,
        mut done: impl FnMut() -> bool,
    ) -> (MutexGuard<'a, T>, bool) {
        while !done() {
            guard = condvar.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        (guard, true)
    }
}

pub(crate) use world::*;

/// Locks, and goes on if another thread panicked while it held the lock: what the kernel keeps under a lock is
/// written in one step, and so is whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
