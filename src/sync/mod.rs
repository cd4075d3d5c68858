//! The atomics, locks and maps of the kernel, in one of four implementations: real, under loom, under shuttle,
//! counting. No other file of the kernel names std's atomics.
//!
//! | implementation | when | purpose |
//! |---|---|---|
//! | `real` | otherwise | the product: std's atomics and locks, `arc-swap`, `dashmap` |
//! | `under_loom` | `all(loom, test)` | small models, with each interleaving and each stale value that C11 allows |
//! | `under_shuttle` | `shuttle` | the whole kernel in many interleavings, with sequentially consistent memory |
//! | `counting` | `all(counting, test)` | the real one with wrappers that record each write, to count the lines that a batch or an update writes |
//!
//! Exactly one is compiled. Loom's gate is not `loom` alone, because `--cfg loom` reaches every crate of a build.
//!
//! All have the same names:
//!
//! | name | real | mock |
//! |---|---|---|
//! | `AtomicU16`, `AtomicU32`, `AtomicU64`, `fence`, `Mutex`, `Condvar` | std's | the checker's own |
//! | `Swap`, `SwapGuard`, `SwapView` | `ArcSwap`, its guard and its cache | loom: a list of all values, and an index to the last; shuttle: a lock |
//! | `Map` | `DashMap` | a few maps, each in the checker's lock |
//! | `OnceLock` | std's | std's, behind the checker's lock and a word that says that it is filled |
//! | `yield_now` | lets other threads run | the checker's own |
//! | `fence_after_exchange` | nothing: a SeqCst exchange and SeqCst loads after it are ordered | loom: a SeqCst fence, because it knows that order of fences only; shuttle: nothing |
//! | `prefetch` | the processor's instruction, from `prefetch-index` | nothing |
//! | `wait_for` | waits with a deadline | loom: the model sets the deadline; shuttle: the schedule does |
//!
//! ThreadSanitizer checks the real implementation, except for `OnceLock` and [`lock`], where std hides its
//! synchronisation from it (`--cfg thread_sanitizer`).
//!
//! No mock guarantees more than what it replaces. No guard leaves a `Map`; closures that run under its lock are the
//! caller's responsibility.
//!
//! A slab's segments and the range of adopted executors' numbers are in an `UntrackedOnceLock`, because a word that is
//! read with each access would make the searches too long. In the real implementation and under shuttle it is std's
//! `OnceLock`: it only publishes memory, and its initialiser has no point at which shuttle would switch threads. Loom
//! sees the initialisation, but not the reads.

#[cfg(all(counting, test))]
pub(crate) mod counting;
#[cfg(not(any(shuttle, all(loom, test))))]
mod deadline;
#[cfg(any(shuttle, all(loom, test)))]
mod mock;
#[cfg(any(shuttle, thread_sanitizer, all(loom, test)))]
mod once;
#[cfg(not(any(shuttle, all(loom, test))))]
#[cfg_attr(all(counting, test), expect(unused_imports, reason = "wrapped by `counting`"))]
mod real;
#[cfg(all(loom, test))]
mod under_loom;
#[cfg(all(shuttle, not(all(loom, test))))]
mod under_shuttle;

// Imported by name, which takes precedence over the names in `real`.
#[cfg(all(counting, test))]
pub(crate) use counting::{AtomicU16, AtomicU32, AtomicU64, Map, Mutex, Swap};
#[cfg(not(any(shuttle, all(loom, test))))]
pub(crate) use deadline::wait_for;
#[cfg(any(shuttle, all(loom, test)))]
pub(crate) use mock::*;
#[cfg(any(shuttle, thread_sanitizer, all(loom, test)))]
pub(crate) use once::OnceLock;
#[cfg(thread_sanitizer)]
pub(crate) use once::OnceLock as UntrackedOnceLock;
#[cfg(all(loom, test))]
pub(crate) use once::UntrackedOnceLock;
#[cfg(not(any(shuttle, all(loom, test))))]
pub(crate) use real::*;
#[cfg(not(any(thread_sanitizer, all(loom, test))))]
pub(crate) use std::sync::OnceLock as UntrackedOnceLock;
#[cfg(all(loom, test))]
pub(crate) use under_loom::*;
#[cfg(all(shuttle, not(all(loom, test))))]
pub(crate) use under_shuttle::*;

/// Locks the mutex, even if another thread panicked while it held the lock: the kernel writes values under locks in one
/// step, so they are consistent.
#[cfg(not(thread_sanitizer))]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The same for ThreadSanitizer. It sees an uncontended lock being taken, in code that is compiled with this crate, but
/// not the end of a wait, in std, which is not instrumented.
#[cfg(thread_sanitizer)]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(std::sync::TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
}

/// Locks the mutex unless another thread holds the lock: waits for nothing. Ignores panics as [`lock`] does.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(std::sync::TryLockError::WouldBlock) => None,
    }
}

/// Asks memory for the beginning of a text. If an `Arc` holds it, the count of its owners is 16 bytes before, mostly in
/// the same line.
#[inline]
pub(crate) fn prefetch_text(text: &str) {
    if let Some(first) = text.as_bytes().first() {
        prefetch(first);
    }
}
