//! A value that the first thread which needs it makes, and for which no thread waits.
//!
//! | word | thread | operation | ordering | pairs with |
//! |---|---|---|---|---|
//! | `stage` | any that needs the value and finds none | compare-exchange for [`BEGUN`] | Relaxed | nothing: one thread is the first |
//! | the same | that one | store of [`MADE`] | Release | the loads |
//! | the same | any | load | Acquire | the store: the value is there |

use crate::sync::{AtomicU32, Ordering, UntrackedOnceLock};

const BEGUN: u32 = 1;
const MADE: u32 = 2;

#[derive(Debug)]
pub(crate) struct Lazy<T> {
    stage: AtomicU32,
    value: UntrackedOnceLock<T>,
}

impl<T> Default for Lazy<T> {
    fn default() -> Lazy<T> {
        Lazy { stage: AtomicU32::new(0), value: UntrackedOnceLock::new() }
    }
}

impl<T> Lazy<T> {
    /// The value, if it was made.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        // Acquire: pairs with the Release below.
        if self.stage.load(Ordering::Acquire) == MADE { self.value.get() } else { None }
    }

    /// The value; makes it if no thread has begun to. None if another thread is making it.
    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> T) -> Option<&T> {
        if let Some(value) = self.get() {
            return Some(value);
        }
        self.make(make)
    }

    #[cold]
    fn make(&self, make: impl FnOnce() -> T) -> Option<&T> {
        // Relaxed: only the thread that finds 0 goes on.
        if self.stage.compare_exchange(0, BEGUN, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return self.get();
        }
        let value = self.value.get_or_init(make);
        // Release: a thread that finds this finds the value.
        self.stage.store(MADE, Ordering::Release);
        Some(value)
    }
}
