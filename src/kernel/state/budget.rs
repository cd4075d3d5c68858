//! A capped counter in a word of its own, for what the admission word has no room for: GPUs, and the footprints of
//! [queues](super::queues).
//!
//! | thread | operation | ordering | pairs with |
//! |---|---|---|---|
//! | handler, before its commit | [`reserve`](Budget::reserve), [`reserve_of`](Budget::reserve_of) | Relaxed | nothing: the count guards no other memory |
//! | setter of a queue's guarantee | [`add`](Budget::add) | Relaxed | nothing |
//! | handler whose commit failed, any that ends an executor | [`release`](Budget::release) | Relaxed | nothing |
//!
//! The count is reserved before the commit and given back if the commit fails, so that it never exceeds the cap. During
//! a commit it may exceed what executors hold.

use crate::sync::{AtomicU64, Ordering};

#[derive(Debug)]
pub(crate) struct Budget(AtomicU64);

impl Budget {
    pub(crate) fn new() -> Budget {
        Budget(AtomicU64::new(0))
    }

    pub(crate) fn taken(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Reserves up to `wanted`, in multiples of `step` (at least 1), within `cap`. Returns how much was reserved.
    pub(crate) fn reserve(&self, wanted: u64, step: u64, cap: u64) -> u64 {
        self.reserve_of(cap, |left| wanted.min(left) / step * step)
    }

    /// Reserves as much as `wanted` returns for what the cap leaves, at most that. It is called again if another thread
    /// was faster. Returns how much was reserved.
    pub(crate) fn reserve_of(&self, cap: u64, mut wanted: impl FnMut(u64) -> u64) -> u64 {
        let mut taken = self.taken();
        loop {
            let granted = wanted(cap.saturating_sub(taken));
            if granted == 0 {
                return 0;
            }
            // Relaxed: see the module's head.
            let swapped = self.0.compare_exchange_weak(
                taken,
                taken + granted,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match swapped {
                Ok(_) => return granted,
                Err(current) => taken = current,
            }
        }
    }

    /// Adds an amount, whatever the cap is.
    pub(crate) fn add(&self, amount: u64) {
        if amount > 0 {
            self.0.fetch_add(amount, Ordering::Relaxed);
        }
    }

    pub(crate) fn release(&self, amount: u64) {
        if amount > 0 {
            let before = self.0.fetch_sub(amount, Ordering::Relaxed);
            debug_assert!(before >= amount, "released more than was reserved");
        }
    }
}
