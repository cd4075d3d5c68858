//! Shuttle's world: the orderings of all words count as SeqCst, so that it finds no mistake in them; but it runs the
//! whole kernel with many threads.

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

pub(crate) use shuttle::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, RwLock};
pub(crate) use shuttle::thread::yield_now;

use shuttle::rand::Rng;

use super::lock;

/// Small, so that tables grow in the middle of a scene.
pub(crate) const SLAB_FIRST_BITS: u32 = 1;
pub(crate) const SLAB_LONGEST_BITS: u32 = 3;
pub(crate) const SLAB_CELLS_BITS: u32 = 12;

/// A deadline passes after so many switches of threads at most.
const DEADLINE_STEPS_MAX: u32 = 40;

/// Waits until `done`, or until a deadline that the schedule chooses.
///
/// Shuttle knows no time. [`Duration::MAX`] has no deadline: it parks, so that a lost wake-up is a deadlock. Zero has
/// passed. Of all between, the schedule says after how many of the others' steps they pass; who waits so doesn't park,
/// for nobody would wake it at its deadline.
pub(crate) fn wait_for(
    mutex: &Mutex<()>,
    condvar: &Condvar,
    timeout: Duration,
    mut done: impl FnMut() -> bool,
) -> bool {
    let mut guard = lock(mutex);
    if timeout == Duration::MAX {
        while !done() {
            guard = condvar.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        return true;
    }
    let steps = if timeout.is_zero() {
        0
    } else {
        shuttle::rand::thread_rng().gen_range(0..=DEADLINE_STEPS_MAX)
    };
    for _ in 0..steps {
        if done() {
            return true;
        }
        drop(guard);
        shuttle::thread::yield_now();
        guard = lock(mutex);
    }
    done()
}

/// Stands for an `ArcSwap`. Each load is fresh, as everything is in this world.
pub(crate) struct Swap<T>(Arc<RwLock<Arc<T>>>);

impl<T> fmt::Debug for Swap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Swap").finish_non_exhaustive()
    }
}

pub(crate) type SwapGuard<T> = Arc<T>;

impl<T> Swap<T> {
    pub(crate) fn new(value: T) -> Swap<T> {
        Swap(Arc::new(RwLock::new(Arc::new(value))))
    }

    pub(crate) fn load(&self) -> SwapGuard<T> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn store(&self, value: Arc<T>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = value;
    }

    pub(crate) fn view(&self) -> SwapView<T> {
        SwapView { value: self.load(), swap: Swap(Arc::clone(&self.0)) }
    }
}

/// Stands for `ArcSwap`'s cache.
pub(crate) struct SwapView<T> {
    swap: Swap<T>,
    value: Arc<T>,
}

impl<T> SwapView<T> {
    pub(crate) fn load(&mut self) -> &T {
        self.value = self.swap.load();
        &self.value
    }
}
