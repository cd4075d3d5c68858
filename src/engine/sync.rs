//! Locks, threads, deadlines and caught panics for the engine: std's, or shuttle's under `--cfg shuttle`.
//!
//! | name | real | under shuttle |
//! |---|---|---|
//! | `Mutex`, `Condvar`, `JoinHandle`, `this_thread` | std's | shuttle's |
//! | [`Deadline`] | an instant, or never | zero has passed; an eighth of [`Duration::MAX`] never passes; otherwise the schedule decides |
//! | [`pause`] | waits for a time | waits without a limit: a missing notification, which a timeout would hide, is a deadlock |
//! | [`catch`] | catches a panic | catches none: a panic ends the scene |
//! | [`Instant`] | std's | never advances |
//!
//! The engine has no atomics; those are the kernel's.

use std::io;
use std::sync::PoisonError;
use std::time::Duration;

use world::thread;
pub(super) use world::thread::{JoinHandle, ThreadId};
pub(super) use world::{Condvar, Deadline, Instant, Mutex, MutexGuard, catch, wait_while};

/// Locks a mutex, even if another thread panicked while it held it: the engine's locked data is written in one step, so
/// it is consistent.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a notification; may return spuriously.
pub(super) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a notification for at most `time`; may return spuriously. Shuttle's `wait_timeout` never times out.
pub(super) fn pause<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    time: Duration,
) -> MutexGuard<'a, T> {
    condvar.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0
}

pub(super) fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(work)
}

/// Lets other threads run that have work, before this one waits. Under shuttle nothing: the schedule decides anyway.
pub(super) fn let_others_run() {
    #[cfg(not(shuttle))]
    thread::yield_now();
}

pub(super) fn this_thread() -> ThreadId {
    thread::current().id()
}

#[cfg(not(shuttle))]
mod world {
    use std::any::Any;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use std::thread;
    pub(crate) use std::time::Instant;

    use super::{Duration, lock, pause, wait};

    /// The moment up to which a thread waits.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Deadline(Option<Instant>);

    impl Deadline {
        /// The moment `time` from now; never, if the clock can't represent it.
        pub(crate) fn after(time: Duration) -> Deadline {
            Deadline(Instant::now().checked_add(time))
        }

        /// The time that is left until the deadline.
        pub(crate) fn left(self) -> Duration {
            let left = |at: Instant| at.saturating_duration_since(Instant::now());
            self.0.map_or(Duration::MAX, left)
        }
    }

    /// Locks the mutex and waits while `waits` holds, up to the deadline. The caller must check `waits` again.
    pub(crate) fn wait_while<'a, T>(
        mutex: &'a Mutex<T>,
        condvar: &Condvar,
        deadline: Deadline,
        mut waits: impl FnMut(&T) -> bool,
    ) -> MutexGuard<'a, T> {
        let mut guard = lock(mutex);
        while waits(&guard) {
            let left = deadline.left();
            if left.is_zero() {
                break;
            } else if left == Duration::MAX {
                guard = wait(condvar, guard);
            } else {
                guard = pause(condvar, guard, left);
            }
        }
        guard
    }

    /// Runs `work`. If it panics, returns the panic's message; then data that `work` borrowed may be inconsistent.
    pub(crate) fn catch<R>(work: impl FnOnce() -> R) -> Result<R, String> {
        catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
            let text = message(&*panic);
            // The payload is dropped here; if its destructor panics, that second payload is leaked.
            if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
                std::mem::forget(again);
            }
            text
        })
    }

    fn message(panic: &(dyn Any + Send)) -> String {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        text.unwrap_or_else(|| "a panic without a message".to_owned())
    }
}

#[cfg(shuttle)]
mod world {
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use shuttle::thread;

    use super::{Duration, lock, wait};
    use shuttle::rand::Rng;

    /// The most switches of threads after which a deadline passes.
    const PATIENCE_MAX: u32 = 40;
    /// A deadline that is this far away never passes.
    const NEVER: Duration = Duration::from_secs(u64::MAX / 8);

    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Instant;

    impl Instant {
        pub(crate) fn now() -> Instant {
            Instant
        }

        pub(crate) fn elapsed(&self) -> Duration {
            Duration::ZERO
        }
    }

    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Deadline(Duration);

    impl Deadline {
        pub(crate) fn after(time: Duration) -> Deadline {
            Deadline(time)
        }

        pub(crate) fn left(self) -> Duration {
            self.0
        }
    }

    pub(crate) fn wait_while<'a, T>(
        mutex: &'a Mutex<T>,
        condvar: &Condvar,
        deadline: Deadline,
        mut waits: impl FnMut(&T) -> bool,
    ) -> MutexGuard<'a, T> {
        let mut guard = lock(mutex);
        if deadline.0 >= NEVER {
            while waits(&guard) {
                guard = wait(condvar, guard);
            }
            return guard;
        }
        let steps = if deadline.0.is_zero() {
            0
        } else {
            shuttle::rand::thread_rng().gen_range(0..=PATIENCE_MAX)
        };
        for _ in 0..steps {
            if !waits(&guard) {
                break;
            }
            drop(guard);
            shuttle::thread::yield_now();
            guard = lock(mutex);
        }
        guard
    }

    pub(crate) fn catch<R>(work: impl FnOnce() -> R) -> Result<R, String> {
        Ok(work())
    }
}
