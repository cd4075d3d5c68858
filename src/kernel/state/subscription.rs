//! The subscription word: the number of the subscription, and whether it is active.
//!
//! | bits | field |
//! |---|---|
//! | 1–63 | epoch: how many subscriptions there have been |
//! | 0 | connected |
//!
//! | thread | operation | ordering | pairs with |
//! |---|---|---|---|
//! | any that reports a subscription or disconnection | read-modify-write | AcqRel | each other |
//! | handler, once per batch | load | Acquire | the above |
//!
//! A batch concurrent with a disconnection is answered as if it had come before it: its accepts fail at the cluster,
//! which reports that by updates.

use crate::sync::{AtomicU64, Ordering};

const CONNECTED: u64 = 1;

#[derive(Debug)]
pub(crate) struct Subscription(AtomicU64);

impl Subscription {
    /// Connected from the start, for frameworks without subscriptions.
    pub(crate) fn new() -> Subscription {
        Subscription(AtomicU64::new(CONNECTED))
    }

    pub(crate) fn connected(&self) -> bool {
        self.0.load(Ordering::Acquire) & CONNECTED != 0
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.0.load(Ordering::Acquire) >> 1
    }

    pub(crate) fn begin(&self) -> u64 {
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            let next = ((word >> 1) + 1) << 1 | CONNECTED;
            match self.0.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return next >> 1,
                Err(current) => word = current,
            }
        }
    }

    pub(crate) fn end(&self) {
        self.0.fetch_and(!CONNECTED, Ordering::AcqRel);
    }
}
