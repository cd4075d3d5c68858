//! The counting implementation: wraps the real one and records each write, so that tests can count them.
//!
//! It records the address and the kind of each write of a thread while [`record_writes`] runs. Loads are not recorded:
//! a line that is not written is soon in every core's cache and stays there.
//!
//! | operation | recorded as |
//! |---|---|
//! | a store | one store |
//! | a read-modify-write, even if it changes nothing | one exchange |
//! | a compare-exchange that fails | one failure: it takes the line away from its owner as well |
//! | a lock | one exchange when it is taken; its release finds the line in the cache |
//! | a call of a `Map`, even if it reads | one exchange: the shard's lock; the map's own memory isn't recorded |
//! | `Swap::load` | nothing: `arc-swap` marks the reader in a line of its own thread. A `SwapView` writes nothing while nothing changes |
//! | `Swap::store` | one exchange |
//!
//! Not recorded: the counts in `Arc`s that aren't in a `Swap`, the allocator, and the inside of `OnceLock`. A weak
//! compare-exchange is a strong one, which doesn't fail spuriously, so that the numbers are exact.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::hash::Hash;
use std::sync::atomic::{self, Ordering};
use std::sync::{Arc, LockResult, MutexGuard, TryLockResult};

use super::real;

/// The kind of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Store,
    Exchange,
    Failure,
}

/// A write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    /// The address of the written word.
    pub(crate) address: usize,
    pub(crate) how: How,
}

thread_local! {
    static WRITES: RefCell<Option<Vec<Write>>> = const { RefCell::new(None) };
}

/// Runs `run` and returns what this thread wrote meanwhile, in order.
pub(crate) fn record_writes(run: impl FnOnce()) -> Vec<Write> {
    WRITES.replace(Some(Vec::new()));
    run();
    WRITES.take().unwrap_or_default()
}

fn record<T: ?Sized>(word: &T, how: How) {
    let address = std::ptr::from_ref(word).cast::<u8>().addr();
    WRITES.with_borrow_mut(|writes| {
        if let Some(writes) = writes {
            writes.push(Write { address, how });
        }
    });
}

macro_rules! word {
    ($name:ident, $number:ty: $($exchange:ident)*) => {
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub(crate) struct $name(atomic::$name);

        #[allow(dead_code, reason = "both words have all that either needs")]
        impl $name {
            pub(crate) const fn new(value: $number) -> $name {
                $name(atomic::$name::new(value))
            }

            pub(crate) fn load(&self, order: Ordering) -> $number {
                self.0.load(order)
            }

            pub(crate) fn store(&self, value: $number, order: Ordering) {
                record(self, How::Store);
                self.0.store(value, order);
            }

            $(pub(crate) fn $exchange(&self, value: $number, order: Ordering) -> $number {
                record(self, How::Exchange);
                self.0.$exchange(value, order)
            })*

            pub(crate) fn compare_exchange(
                &self,
                current: $number,
                new: $number,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$number, $number> {
                let swapped = self.0.compare_exchange(current, new, success, failure);
                record(self, if swapped.is_ok() { How::Exchange } else { How::Failure });
                swapped
            }

            pub(crate) fn compare_exchange_weak(
                &self,
                current: $number,
                new: $number,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$number, $number> {
                self.compare_exchange(current, new, success, failure)
            }
        }
    };
}

word!(AtomicU16, u16: fetch_add fetch_sub fetch_and fetch_or fetch_max swap);
word!(AtomicU32, u32: fetch_add fetch_sub fetch_and fetch_or fetch_max swap);
word!(AtomicU64, u64: fetch_add fetch_sub fetch_and fetch_or fetch_max swap);

/// Std's mutex; records that it is taken.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        record(self, How::Exchange);
        self.0.lock()
    }

    pub(crate) fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        record(self, How::Exchange);
        self.0.try_lock()
    }
}

/// The real one; records stores.
#[derive(Debug)]
pub(crate) struct Swap<T>(real::Swap<T>);

impl<T> Swap<T> {
    pub(crate) fn new(value: T) -> Swap<T> {
        Swap(real::Swap::new(value))
    }

    pub(crate) fn load(&self) -> real::SwapGuard<T> {
        self.0.load()
    }

    pub(crate) fn load_full(&self) -> Arc<T> {
        self.0.load_full()
    }

    pub(crate) fn store(&self, value: Arc<T>) {
        record(self, How::Exchange);
        self.0.store(value);
    }

    pub(crate) fn view(&self) -> real::SwapView<T> {
        self.0.view()
    }
}

/// The real one; records that a shard's lock is taken.
#[derive(Debug)]
pub(crate) struct Map<K: Eq + Hash, V>(real::Map<K, V>);

impl<K: Eq + Hash, V: Copy> Map<K, V> {
    pub(crate) fn new() -> Map<K, V> {
        Map(real::Map::new())
    }

    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        record(self, How::Exchange);
        self.0.get(key)
    }

    pub(crate) fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V {
        record(self, How::Exchange);
        self.0.get_or_insert_with(key, make)
    }

    pub(crate) fn remove_value<Q: Eq + Hash + ?Sized>(&self, key: &Q, value: &V)
    where
        K: Borrow<Q>,
        V: PartialEq,
    {
        record(self, How::Exchange);
        self.0.remove_value(key, value);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
