//! Loom's implementation. Loom has no time: models play the deadline as a thread that sets [`DEADLINE`] and wakes the
//! waiters.

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

pub(crate) use loom::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard, RwLock};
pub(crate) use loom::thread::yield_now;

use super::lock;

/// Small, because loom tracks every cell.
pub(crate) const SLAB_FIRST_BITS: u32 = 1;
pub(crate) const SLAB_LONGEST_BITS: u32 = 2;
pub(crate) const SLAB_CELLS_BITS: u32 = 8;
pub(crate) const NUMBER_PAGE_BITS: u32 = 1;
pub(crate) const NUMBER_ROOTS: usize = 4;

loom::lazy_static! {
    /// Whether the deadlines of all waits that have one have passed. A model sets it and then wakes the waiters.
    pub(crate) static ref DEADLINE: AtomicU32 = AtomicU32::new(0);
}

/// Loom knows one order of all threads for fences only: a SeqCst load sees the newest SeqCst store of its own word, but
/// SeqCst operations on different words are AcqRel. So there is a fence if the operations around it are SeqCst, and
/// only then.
pub(crate) fn fence_after_exchange(ordering: Ordering) {
    if ordering == Ordering::SeqCst {
        fence(ordering);
    }
}

/// Waits until `done` returns `true` or [`DEADLINE`] is set; without a deadline if `timeout` is the maximum.
pub(crate) fn wait_for<T>(
    mutex: &Mutex<T>,
    condvar: &Condvar,
    timeout: Duration,
    mut done: impl FnMut() -> bool,
) -> bool {
    let mut guard = lock(mutex);
    while !done() {
        if timeout < Duration::MAX && DEADLINE.load(Ordering::Acquire) != 0 {
            return false;
        }
        guard = condvar.wait(guard).unwrap_or_else(PoisonError::into_inner);
    }
    true
}

/// Replaces `ArcSwap`. Only the index orders a load after a store, and it may be read stale. There is no lock that loom
/// sees, because that would order more than `ArcSwap` does.
pub(crate) struct Swap<T>(Arc<Versions<T>>);

struct Versions<T> {
    /// All values that were ever stored. A lock that loom doesn't see, held only while a pointer is copied.
    values: std::sync::Mutex<Vec<Arc<T>>>,
    /// The index of the current value.
    last: AtomicU32,
}

impl<T> fmt::Debug for Swap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Swap").finish_non_exhaustive()
    }
}

impl<T> Versions<T> {
    fn at(&self, index: u32) -> Arc<T> {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&values[index as usize])
    }

    fn load(&self) -> (u32, Arc<T>) {
        let index = self.last.load(Ordering::Acquire);
        (index, self.at(index))
    }
}

pub(crate) type SwapGuard<T> = Arc<T>;

impl<T> Swap<T> {
    pub(crate) fn new(value: T) -> Swap<T> {
        let values = std::sync::Mutex::new(vec![Arc::new(value)]);
        Swap(Arc::new(Versions { values, last: AtomicU32::new(0) }))
    }

    pub(crate) fn load(&self) -> SwapGuard<T> {
        self.0.load().1
    }

    pub(crate) fn load_full(&self) -> Arc<T> {
        self.load()
    }

    pub(crate) fn store(&self, value: Arc<T>) {
        let index = {
            let mut values = self.0.values.lock().unwrap_or_else(PoisonError::into_inner);
            values.push(value);
            values.len() as u32 - 1
        };
        self.0.last.store(index, Ordering::Release);
    }

    pub(crate) fn view(&self) -> SwapView<T> {
        let (index, value) = self.0.load();
        SwapView { versions: Arc::clone(&self.0), index, value }
    }
}

/// Replaces `ArcSwap`'s cache.
pub(crate) struct SwapView<T> {
    versions: Arc<Versions<T>>,
    index: u32,
    value: Arc<T>,
}

impl<T> SwapView<T> {
    pub(crate) fn load(&mut self) -> &T {
        // Relaxed, as the cache's comparison of the pointer: a reader that finds nothing new has synchronised with no
        // thread.
        if self.versions.last.load(Ordering::Relaxed) != self.index {
            (self.index, self.value) = self.versions.load();
        }
        &self.value
    }
}
