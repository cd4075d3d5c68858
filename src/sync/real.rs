//! The real implementation: thin wrappers, each method of which is one call of std, `arc-swap` or `dashmap`.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;
#[cfg(not(thread_sanitizer))]
pub(crate) use std::sync::OnceLock;
pub(crate) use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::thread::yield_now;

use arc_swap::{ArcSwap, Cache, Guard};
use dashmap::DashMap;
use prefetch_index::prefetch_index;

/// The length of a slab's first segment, as a power of two.
pub(crate) const SLAB_FIRST_BITS: u32 = 5;
/// The length of its longest segments, as a power of two.
pub(crate) const SLAB_LONGEST_BITS: u32 = 16;
/// The number of cells that its longest segments have room for, as a power of two.
pub(crate) const SLAB_CELLS_BITS: u32 = 26;
/// The number of entries in a page of the table of numbers, as a power of two.
pub(crate) const NUMBER_PAGE_BITS: u32 = 8;
/// The number of its roots, one for each length of numbers in entries.
pub(crate) const NUMBER_ROOTS: usize = 6;

/// Asks memory for the line in which a value begins, ahead of its use. Unlike a load, it waits for nothing, and a
/// read-modify-write that follows doesn't wait for it.
#[inline(always)]
pub(crate) fn prefetch<T>(place: &T) {
    prefetch_index(std::slice::from_ref(place), 0);
}

/// Called between an exchange and loads of this ordering that must come after it for all threads. If it is SeqCst,
/// nothing has to be done.
#[inline(always)]
pub(crate) fn fence_after_exchange(_: Ordering) {}

/// A value that many threads read and that is replaced as a whole. A load that happens after a store returns the stored
/// value or a later one.
#[derive(Debug)]
pub(crate) struct Swap<T>(Arc<ArcSwap<T>>);

impl<T> Swap<T> {
    #[inline]
    pub(crate) fn new(value: T) -> Swap<T> {
        Swap(Arc::new(ArcSwap::from_pointee(value)))
    }

    #[inline]
    pub(crate) fn load(&self) -> SwapGuard<T> {
        self.0.load()
    }

    /// Returns the value to keep: counts an owner.
    #[inline]
    pub(crate) fn load_full(&self) -> Arc<T> {
        self.0.load_full()
    }

    #[inline]
    pub(crate) fn store(&self, value: Arc<T>) {
        self.0.store(value);
    }

    #[inline]
    pub(crate) fn view(&self) -> SwapView<T> {
        SwapView(Cache::new(Arc::clone(&self.0)))
    }
}

/// A value of a [`Swap`], for use within one function. It marks the reader in a cache line of the reader's thread and
/// leaves alone the reference count, which lies beside what others read.
pub(crate) type SwapGuard<T> = Guard<Arc<T>>;

/// A reader's cached value of a [`Swap`]: one comparison of a pointer while nothing changes.
#[derive(Debug)]
pub(crate) struct SwapView<T>(Cache<Arc<ArcSwap<T>>, Arc<T>>);

impl<T> SwapView<T> {
    #[inline]
    pub(crate) fn load(&mut self) -> &T {
        self.0.load()
    }
}

/// A concurrent map in shards, each with a lock. No guard leaves a call.
#[derive(Debug)]
pub(crate) struct Map<K: Eq + Hash, V>(DashMap<K, V>);

impl<K: Eq + Hash, V: Copy> Map<K, V> {
    #[inline]
    pub(crate) fn new() -> Map<K, V> {
        Map(DashMap::new())
    }

    #[inline]
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key).map(|value| *value)
    }

    /// Returns the key's value. If there is none, inserts the one that `make` returns under the lock of the key's
    /// shard.
    #[inline]
    pub(crate) fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V {
        *self.0.entry(key).or_insert_with(make)
    }

    /// Removes the key if its value is `value`.
    #[inline]
    pub(crate) fn remove_value<Q: Eq + Hash + ?Sized>(&self, key: &Q, value: &V)
    where
        K: Borrow<Q>,
        V: PartialEq,
    {
        self.0.remove_if(key, |_, present| present == value);
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
