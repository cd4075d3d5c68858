//! Shuttle's implementation. It treats all orderings as SeqCst and finds no mistakes in them, but it runs the whole
//! kernel with many threads.

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

pub(crate) use shuttle::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, RwLock};
pub(crate) use shuttle::thread::yield_now;

use shuttle::rand::Rng;

use super::lock;

/// Small, so that tables grow within a scene.
pub(crate) const SLAB_FIRST_BITS: u32 = 1;
pub(crate) const SLAB_LONGEST_BITS: u32 = 3;
pub(crate) const SLAB_CELLS_BITS: u32 = 12;
/// Small, so that pages are given back within a scene.
pub(crate) const NUMBER_PAGE_BITS: u32 = 1;
pub(crate) const NUMBER_ROOTS: usize = 10;

/// The maximum number of thread switches after which a deadline passes.
const DEADLINE_STEPS_MAX: u32 = 40;

/// Shuttle's exchanges and loads have one order.
pub(crate) fn fence_after_exchange(_: Ordering) {}

/// Waits until `done` returns `true` or until a deadline that the schedule chooses.
///
/// Shuttle has no time. With [`Duration::MAX`] there is no deadline: the thread parks, so that a lost wake-up is a
/// deadlock. Zero has passed at once. For all timeouts in between, the schedule chooses after how many steps of other
/// threads they pass; the thread then doesn't park, because nothing would wake it at its deadline.
pub(crate) fn wait_for<T>(
    mutex: &Mutex<T>,
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

/// Replaces `ArcSwap`. Each load returns the latest value.
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

    pub(crate) fn load_full(&self) -> Arc<T> {
        self.load()
    }

    pub(crate) fn store(&self, value: Arc<T>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = value;
    }

    pub(crate) fn view(&self) -> SwapView<T> {
        SwapView { value: self.load(), swap: Swap(Arc::clone(&self.0)) }
    }
}

/// Replaces `ArcSwap`'s cache.
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
