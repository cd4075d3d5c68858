//! Claims in queues that were given back, and whether a batch refused offers because a queue seemed to have no room.
//!
//! A claim that is given back was of no executor; but while it was booked, another batch may have refused offers for
//! it. Then a revive must ask for these again, and one of the two threads requests it.
//!
//! | word | thread | operation | ordering | pairs with |
//! |---|---|---|---|---|
//! | count | any that has given a claim back | [`ClaimReturns::add`]: increment | Release | `count` of a handler: if that sees the increment, it sees what was released before |
//! | count | handler, before it looks at queues | [`ClaimReturns::count`]: load | Acquire | `add` |
//! | refused, then count | handler that has refused offers | [`ClaimReturns::refuse`]: load, store if it is 0; load | Relaxed, with a `SeqCst` fence between | the fence of `add`: a claim that was seen here and given back later is seen in the count, or `add` sees the refusal |
//! | count, then refused | any that has given a claim back | [`ClaimReturns::add`]: increment; swap | with a `SeqCst` fence between | the fence of `refuse` |

use crate::sync::{AtomicU64, Ordering, fence};

#[derive(Debug, Default)]
pub(crate) struct ClaimReturns {
    count: AtomicU64,
    /// 1 if offers were refused since the last claim that was given back.
    refused: AtomicU64,
}

impl ClaimReturns {
    /// The number so far, to be loaded before the words of queues are.
    pub(crate) fn count(&self) -> u64 {
        // Acquire: pairs with `add`.
        self.count.load(Ordering::Acquire)
    }

    /// Counts a claim that was given back. Returns whether the caller must request a revive.
    #[must_use]
    pub(crate) fn add(&self) -> bool {
        // Release: pairs with `count`.
        self.count.fetch_add(1, Ordering::Release);
        // Pairs with the fence of `refuse`.
        fence(Ordering::SeqCst);
        // Relaxed: see the module's head.
        self.refused.load(Ordering::Relaxed) != 0 && self.refused.swap(0, Ordering::Relaxed) != 0
    }

    /// Records that offers were refused because a queue had no room, when the count was `seen`. Returns whether the
    /// caller must request a revive.
    #[must_use]
    pub(crate) fn refuse(&self, seen: u64) -> bool {
        if self.refused.load(Ordering::Relaxed) == 0 {
            self.refused.store(1, Ordering::Relaxed);
        }
        // Pairs with the fence of `add`.
        fence(Ordering::SeqCst);
        // Relaxed: see the module's head.
        self.count.load(Ordering::Relaxed) != seen
    }
}
