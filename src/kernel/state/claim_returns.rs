//! Claims in queues that are open or were given back, and whether a batch refused offers because a queue seemed to have
//! no room.
//!
//! A claim that is given back was of no executor; but while it was booked, another batch may have refused offers for
//! it. Then a revive must ask for these again, and one of the two threads requests it. And an executor that returned
//! after it was given up may have found no room: it must not be killed for such a claim. A claim is *open* from before
//! it is made until it is known whether it is given back.
//!
//! | word | thread | operation | ordering | pairs with |
//! |---|---|---|---|---|
//! | count | any that has given a claim back | [`ClaimReturns::add`]: increment | Release | `count` of a handler: if that sees the increment, it sees what was released before |
//! | count | handler, before it looks at queues | [`ClaimReturns::count`]: load | Acquire | `add` |
//! | refused, then count | handler that has refused offers | [`ClaimReturns::refuse`]: load, store if it is 0; load | Relaxed, with a `SeqCst` fence between | the fence of `add`: a claim that was seen here and given back later is seen in the count, or `add` sees the refusal |
//! | count, then refused | any that has given a claim back | [`ClaimReturns::add`]: increment; swap | with a `SeqCst` fence between | the fence of `refuse` |
//! | open | any that claims, before | [`ClaimReturns::begin`]: increment | Relaxed, then a Release fence | the fence of `claim` |
//! | open | the same, when it has given back and counted what it does give back | [`ClaimReturns::end`]: decrement | Release | `claim` |
//! | open, then count | any that returns or adopts an executor, and found no room | [`ClaimReturns::claim`]: loads | Acquire fence, then Acquire | the fence of `begin`: a claim that was seen is seen to be open; and `end`: one that isn't open any more is seen in the count, if it was given back |

use crate::sync::{AtomicU64, Ordering, fence};

/// How often an executor's claim is made again because another one was given back in the meantime.
const CLAIMS_MAX: u32 = 8;

/// Why an executor has no room in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// Others have it.
    Taken,
    /// Others have booked it, or parts of it, and may give it back.
    Claimed,
}

#[derive(Debug, Default)]
pub(crate) struct ClaimReturns {
    count: AtomicU64,
    /// 1 if offers were refused since the last claim that was given back.
    refused: AtomicU64,
    /// The number of threads that have open claims.
    open: AtomicU64,
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

    /// Called before claims are made.
    pub(crate) fn begin(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
        // Release: pairs with the fence of `claim`.
        fence(Ordering::Release);
    }

    /// Called when it is known which claims are kept, and the others are given back and [counted](ClaimReturns::add).
    pub(crate) fn end(&self) {
        // Release: pairs with `claim`.
        self.open.fetch_sub(1, Ordering::Release);
    }

    /// Makes a claim between [`begin`](ClaimReturns::begin) and [`end`](ClaimReturns::end), again if another one was
    /// given back in the meantime. If there is no room, the caller must count a claim that was given back.
    pub(crate) fn claim(&self, mut claim: impl FnMut() -> bool) -> Result<(), NoRoom> {
        for _ in 0..CLAIMS_MAX {
            let seen = self.count();
            if claim() {
                return Ok(());
            }
            // Acquire: pairs with the fence of `begin`.
            fence(Ordering::Acquire);
            // Acquire: pairs with `end`. One is the caller's.
            if self.open.load(Ordering::Acquire) > 1 {
                return Err(NoRoom::Claimed);
            }
            // Relaxed: see the module's head.
            if self.count.load(Ordering::Relaxed) == seen {
                return Err(NoRoom::Taken);
            }
        }
        Err(NoRoom::Claimed)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: a claim that finds no room is made again if another one was given back in the meantime, a bounded number
    /// of times, and its refusal is final only if none was and none is open. Method: claims that fail while others are
    /// given back or open.
    #[test]
    fn claims_are_made_again_after_a_return() {
        let returns = ClaimReturns::default();
        returns.begin();
        let mut claims = 0;
        let made = returns.claim(|| {
            claims += 1;
            let is_first = claims == 1;
            assert!(!is_first || !returns.add(), "nothing was refused");
            !is_first
        });
        assert_eq!((made, claims), (Ok(()), 2));
        assert_eq!(returns.claim(|| false), Err(NoRoom::Taken));
        let mut claims = 0;
        let refused = returns.claim(|| {
            claims += 1;
            assert!(!returns.add(), "nothing was refused");
            false
        });
        assert_eq!((refused, claims), (Err(NoRoom::Claimed), CLAIMS_MAX));
        returns.begin();
        assert_eq!(returns.claim(|| false), Err(NoRoom::Claimed));
        returns.end();
        assert_eq!(returns.claim(|| false), Err(NoRoom::Taken));
    }
}
