//! Waiting with a deadline, in the real implementation and under counting.

use std::time::Duration;

use super::{Condvar, Mutex, lock};

/// Waits under `mutex` until `done` returns `true` or `timeout` has passed. Returns whether it was done.
pub(crate) fn wait_for<T>(
    mutex: &Mutex<T>,
    condvar: &Condvar,
    timeout: Duration,
    mut done: impl FnMut() -> bool,
) -> bool {
    let waited = condvar.wait_timeout_while(lock(mutex), timeout, |_| !done());
    !waited.unwrap_or_else(std::sync::PoisonError::into_inner).1.timed_out()
}
