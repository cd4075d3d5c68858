//! A cap in a word of its own, for what the admission word has no room for (GPUs).
//!
//! | who | does | ordering | pairs with |
//! |---|---|---|---|
//! | handler, before its commit | [`reserve`](Budget::reserve) | Relaxed | nothing: the count guards no other memory |
//! | handler whose commit failed, whoever ends an executor | [`release`](Budget::release) | Relaxed | nothing |
//!
//! The count is reserved first and given back if the commit fails, so that it never exceeds the cap; at worst it is
//! above what executors hold, for as long as a commit takes.

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

    /// Takes up to `wanted`, in multiples of `step` (at least 1), within `cap`; returns how much.
    pub(crate) fn reserve(&self, wanted: u64, step: u64, cap: u64) -> u64 {
        let mut taken = self.taken();
        loop {
            let granted = wanted.min(cap.saturating_sub(taken)) / step * step;
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

    pub(crate) fn release(&self, amount: u64) {
        if amount > 0 {
            let before = self.0.fetch_sub(amount, Ordering::Relaxed);
            debug_assert!(before >= amount, "released more than was reserved");
        }
    }
}
