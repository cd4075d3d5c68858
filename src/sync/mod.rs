//! The only place that knows which world the kernel's shared memory lives in.
//!
//! | world | when | what it is for |
//! |---|---|---|
//! | `real` | else | the product: std's words and locks, `arc-swap`, `dashmap` |
//! | `under_loom` | `all(loom, test)` | small scenes, each interleaving and each stale value that C11 allows |
//! | `under_shuttle` | `shuttle` | the whole kernel, many interleavings, each memory access at once seen by all |
//! | `counting` | `all(counting, test)` | the real one in coats that note each write: how many lines a batch or an update writes |
//!
//! One at a time. Loom's gate is not `loom` alone, because `--cfg loom` reaches every crate of a build.
//!
//! Each world has the same names:
//!
//! | name | real | twin |
//! |---|---|---|
//! | `AtomicU32`, `AtomicU64`, `fence`, `Mutex`, `Condvar` | std's | the checker's own |
//! | `Swap`, `SwapGuard`, `SwapView` | `ArcSwap`, its guard and its cache | loom: a list that only grows, and an index to its last; shuttle: a lock |
//! | `Map` | `DashMap` | a few maps, each in the checker's lock |
//! | `OnceLock` | std's | std's, behind the checker's lock and a word that says that it is filled |
//! | `yield_now` | lets others run | the checker's own |
//! | `wait_for` | waits with a deadline | loom: without one; shuttle: see there |
//!
//! ThreadSanitizer's world is the real one, but for `OnceLock` and [`lock`], where std hides its order from it
//! (`--cfg thread_sanitizer`).
//!
//! No twin promises more than what it stands for. No guard leaves a `Map`; what runs under its lock is in the hands of
//! who calls it.
//!
//! A slab's segments are in a `UntrackedOnceLock`, for a word read with each access would drown the searches. In the real
//! world and under shuttle it is std's own: it makes memory appear once and decides nothing, and its initialiser has no
//! point at which shuttle would switch threads. Loom sees who fills it, and not who looks.

#[cfg(all(counting, test))]
pub(crate) mod counting;
#[cfg(any(shuttle, all(loom, test)))]
mod mock;
#[cfg(any(shuttle, thread_sanitizer, all(loom, test)))]
mod once;
#[cfg(not(any(shuttle, all(loom, test))))]
#[cfg_attr(all(counting, test), expect(unused_imports, reason = "the words have coats"))]
mod real;
#[cfg(all(loom, test))]
mod under_loom;
#[cfg(all(shuttle, not(all(loom, test))))]
mod under_shuttle;

// Named, and so before what the real world has of the same names.
#[cfg(all(counting, test))]
pub(crate) use counting::{AtomicU32, AtomicU64, Map, Mutex, Swap};
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

/// Locks, and goes on if another thread panicked while it held the lock: what the kernel keeps under a lock is
/// written in one step, and so is whole.
#[cfg(not(thread_sanitizer))]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The same for ThreadSanitizer, which sees a lock that is free being taken, in code that is compiled with this crate,
/// but not one that is waited for, deep in std, which is not instrumented.
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
