//! Where the thread that sends waits for those that answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Thread;

/// Counts what was answered, and wakes the sender once, when that is as much as it waits for.
pub(crate) struct Gate {
    count: AtomicU64,
    awaited: AtomicU64,
    sender: Thread,
}

impl Gate {
    /// For this thread to wait at.
    pub(crate) fn new() -> Gate {
        let sender = std::thread::current();
        Gate { count: AtomicU64::new(0), awaited: AtomicU64::new(u64::MAX), sender }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// The number of further answers.
    pub(crate) fn add(&self, more: u64) {
        let before = self.count.fetch_add(more, Ordering::SeqCst);
        let awaited = self.awaited.load(Ordering::SeqCst);
        if before < awaited && awaited <= before + more {
            self.sender.unpark();
        }
    }

    /// Waits until this number of offers has been answered since the start.
    pub(crate) fn wait(&self, awaited: u64) {
        if self.count() < awaited {
            self.awaited.store(awaited, Ordering::SeqCst);
            while self.count() < awaited {
                std::thread::park();
            }
        }
    }
}
