//! One kind of resource of a queue: what its executors hold of it, and what is guaranteed to it, in one word.
//!
//! | bits | field | |
//! |---|---|---|
//! | 31–63 | held | thousandths of cores, or MiB |
//! | 0–30 | guaranteed | the same; 0 while the queue has no demand |
//!
//! A queue's *footprint* is the larger of the two. What all footprints are together is in a [`Budget`] beside, which is
//! never below their sum: a thread that makes a footprint grow reserves the difference before, and one that makes it
//! shrink releases it afterwards. Both fields are in one word, so the difference is always that of one instant, also
//! while guarantees change; therefore what is added and what is taken away cancel out.
//!
//! | thread | operation | ordering | pairs with |
//! |---|---|---|---|
//! | handler before its commit, readmission, adoption | [`claim`](QuotaWord::claim) | Relaxed | nothing: the amounts guard no other memory |
//! | handler whose commit failed, any that ends an executor | [`release`](QuotaWord::release) | Relaxed | nothing |
//! | setter of guarantees, under [a lock](super::queues) | [`guarantee`](QuotaWord::guarantee) | Relaxed | nothing |
//! | handler that plans, reports | [`load`](QuotaWord::load) | Relaxed | nothing: a claim checks again |
//!
//! A claim is made before the admission word is changed and given back if that fails; an end releases it before it
//! is released in admission. So during a commit a queue may hold more than its executors.

use super::budget::Budget;
use crate::limits;
use crate::sync::{AtomicU64, Ordering};

const GUARANTEED_BITS: u32 = 31;
const GUARANTEED_MASK: u64 = (1 << GUARANTEED_BITS) - 1;
const HELD_MAX: u64 = u64::MAX >> GUARANTEED_BITS;
const _: () = assert!(
    limits::TOTAL_CORES_MAX.millis() <= HELD_MAX
        && limits::QUEUE_MEMORY_MAX.get() <= HELD_MAX
        && limits::QUEUE_GUARANTEED_CORES_MAX.millis() <= GUARANTEED_MASK
        && limits::QUEUE_GUARANTEED_MEMORY_MAX.get() <= GUARANTEED_MASK
);

/// Why a claim was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// The queue's maximum.
    Maximum,
    /// What is left is guaranteed to other queues.
    Guaranteed,
}

/// The value of a word at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quota(u64);

impl Quota {
    const fn new(held: u64, guaranteed: u64) -> Quota {
        Quota(held << GUARANTEED_BITS | guaranteed)
    }

    pub(crate) const fn held(self) -> u64 {
        self.0 >> GUARANTEED_BITS
    }

    pub(crate) const fn guaranteed(self) -> u64 {
        self.0 & GUARANTEED_MASK
    }

    pub(crate) fn footprint(self) -> u64 {
        self.held().max(self.guaranteed())
    }

    /// The word if this much more is held, and by how much the footprint grows then.
    fn with(self, amount: u64) -> (Quota, u64) {
        let next = Quota::new(self.held() + amount, self.guaranteed());
        (next, next.footprint() - self.footprint())
    }

    /// The word if this much less is held, and by how much the footprint shrinks then.
    fn without(self, amount: u64) -> (Quota, u64) {
        let next = Quota::new(self.held().saturating_sub(amount), self.guaranteed());
        (next, self.footprint() - next.footprint())
    }

    /// Takes an amount of this copy, and of what the footprints `left` leave, as [`QuotaWord::claim`] does.
    pub(crate) fn take(&mut self, amount: u64, most: u64, left: &mut u64) -> Result<(), Shortage> {
        if amount > most.min(HELD_MAX).saturating_sub(self.held()) {
            return Err(Shortage::Maximum);
        }
        let (next, grown) = self.with(amount);
        *left = left.checked_sub(grown).ok_or(Shortage::Guaranteed)?;
        *self = next;
        Ok(())
    }

    /// Undoes [`Quota::take`].
    pub(crate) fn give_back(&mut self, amount: u64, left: &mut u64) {
        let (next, shrunk) = self.without(amount);
        *left += shrunk;
        *self = next;
    }

    /// How much [`Quota::take`] would take at most.
    pub(crate) fn room(self, most: u64, left: u64) -> u64 {
        let unused = self.footprint() - self.held();
        most.min(HELD_MAX).saturating_sub(self.held()).min(unused.saturating_add(left))
    }
}

/// The word.
#[derive(Debug, Default)]
pub(crate) struct QuotaWord(AtomicU64);

impl QuotaWord {
    pub(crate) fn load(&self) -> Quota {
        Quota(self.0.load(Ordering::Relaxed))
    }

    /// Books an amount, all or none: if no more than `most` are held then, and the footprints are no more than `total`
    /// together or this one doesn't grow. Returns whether more was reserved of the footprints for a moment, because the
    /// word was changed in the meantime: then, and if it fails, the caller must [count](super::claim_returns) that.
    pub(crate) fn claim(
        &self,
        amount: u64,
        most: u64,
        footprints: &Budget,
        total: u64,
    ) -> Result<bool, Shortage> {
        let mut seen = self.load();
        let mut reserved = 0;
        loop {
            if amount > most.min(HELD_MAX).saturating_sub(seen.held()) {
                footprints.release(reserved);
                return Err(Shortage::Maximum);
            }
            let (next, grown) = seen.with(amount);
            let missing = grown.saturating_sub(reserved);
            if missing > 0 && footprints.reserve(missing, missing, total) < missing {
                footprints.release(reserved);
                return Err(Shortage::Guaranteed);
            }
            reserved = reserved.max(grown);
            match self.replace(seen, next) {
                Ok(()) => {
                    footprints.release(reserved - grown);
                    return Ok(reserved > grown);
                }
                Err(current) => seen = current,
            }
        }
    }

    /// Subtracts what a claim has booked.
    pub(crate) fn release(&self, amount: u64, footprints: &Budget) {
        let mut seen = self.load();
        loop {
            debug_assert!(seen.held() >= amount, "released more than was claimed");
            let (next, shrunk) = seen.without(amount);
            match self.replace(seen, next) {
                Ok(()) => return footprints.release(shrunk),
                Err(current) => seen = current,
            }
        }
    }

    /// Sets what is guaranteed. Called by one thread at a time. The footprints may exceed their total afterwards; then
    /// no footprint grows until they don't.
    pub(crate) fn guarantee(&self, amount: u64, footprints: &Budget) {
        let mut seen = self.load();
        loop {
            let next = Quota::new(seen.held(), amount.min(GUARANTEED_MASK));
            let (before, after) = (seen.footprint(), next.footprint());
            footprints.add(after.saturating_sub(before));
            match self.replace(seen, next) {
                Ok(()) => return footprints.release(before.saturating_sub(after)),
                Err(current) => {
                    footprints.release(after.saturating_sub(before));
                    seen = current;
                }
            }
        }
    }

    fn replace(&self, seen: Quota, next: Quota) -> Result<(), Quota> {
        // Relaxed: see the module's head.
        let swapped =
            self.0.compare_exchange_weak(seen.0, next.0, Ordering::Relaxed, Ordering::Relaxed);
        swapped.map(drop).map_err(Quota)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: each field has its range, and a claim that exceeds it is refused. Method: the largest values, and one
    /// more.
    #[test]
    fn fields_keep_to_their_bits() {
        let (word, footprints) = (QuotaWord::default(), Budget::new());
        word.guarantee(GUARANTEED_MASK, &footprints);
        word.claim(HELD_MAX, u64::MAX, &footprints, u64::MAX).unwrap();
        assert_eq!((word.load().held(), word.load().guaranteed()), (HELD_MAX, GUARANTEED_MASK));
        let refused = word.claim(1, u64::MAX, &footprints, u64::MAX);
        assert_eq!(refused, Err(Shortage::Maximum));
        word.release(HELD_MAX, &footprints);
        assert_eq!(footprints.taken(), GUARANTEED_MASK);
        word.guarantee(0, &footprints);
        assert_eq!((word.load(), footprints.taken()), (Quota::default(), 0));
    }

    /// Goal: a plan's copy allows what the word does, and `room` is the most of it. Method: all small values of what is
    /// held, guaranteed and left; a take of the room and of one more, on the copy and on the word.
    #[test]
    fn copies_decide_as_words_do() {
        let all = (0..4u64).flat_map(|held| (0..4u64).map(move |guaranteed| (held, guaranteed)));
        for (held, guaranteed) in all {
            for (most, left) in (0..6u64).flat_map(|most| (0..4u64).map(move |left| (most, left))) {
                let quota = Quota::new(held, guaranteed);
                let room = quota.room(most, left);
                for amount in [room, room + 1] {
                    let (mut copy, mut rest) = (quota, left);
                    let taken = copy.take(amount, most, &mut rest);
                    assert_eq!(taken.is_ok(), amount == room || amount == 0, "{quota:?}");
                    let (word, footprints) = (QuotaWord(AtomicU64::new(quota.0)), Budget::new());
                    footprints.add(quota.footprint());
                    let total = quota.footprint() + left;
                    let claimed = word.claim(amount, most, &footprints, total);
                    assert_eq!(claimed, taken.map(|()| false), "nothing changed in the meantime");
                    assert_eq!(footprints.taken(), word.load().footprint());
                    if taken.is_ok() {
                        assert_eq!(word.load(), copy);
                        copy.give_back(amount, &mut rest);
                        assert_eq!((copy, rest), (quota, left));
                    }
                }
            }
        }
    }
}
