//! The admission word: everything that a launch must be checked against, in 64 bits.
//!
//! | bits | field | |
//! |---|---|---|
//! | 56–63 | version | grows with each change of policy; wraps off the top |
//! | 55 | closed | set once, never cleared |
//! | 33–54 | executors | live ones |
//! | 0–32 | cores | acquired, in thousandths |
//!
//! | who | does | ordering | pairs with |
//! |---|---|---|---|
//! | handler | [`load`](Admission::load) | Acquire | every write below: what a plan is made from |
//! | handler | [`commit`](Admission::commit) | AcqRel on success, Acquire on failure | `load`, `release`; a waiter in `drain` |
//! | whoever ends an executor | [`release`](Admission::release) | AcqRel | the last one's writes are seen by the drain's waiter |
//! | policy's publisher | [`bump_version`](Admission::bump_version) | AcqRel | `load`: who sees the version sees the policy |
//! | drain | [`close`](Admission::close) | AcqRel | `commit`: fails from now on |
//!
//! A commit compares the whole word. So it fails when any launch, release, change of policy or close came between
//! plan and commit, and the caps can't be exceeded, not for an instant. The version could deceive a commit only if
//! exactly a multiple of 256 changes of policy came between, with equal books; the launch would then follow a policy
//! that was in force when the batch began.

use crate::sync::{AtomicU64, Ordering};

use super::limits;
use crate::resources::MilliCpus;

const CORES_BITS: u32 = 33;
const EXECUTORS_BITS: u32 = 22;
const EXECUTORS_SHIFT: u32 = CORES_BITS;
const CLOSED_SHIFT: u32 = EXECUTORS_SHIFT + EXECUTORS_BITS;
const VERSION_SHIFT: u32 = CLOSED_SHIFT + 1;
const CORES_MASK: u64 = (1 << CORES_BITS) - 1;
const EXECUTORS_MASK: u64 = (1 << EXECUTORS_BITS) - 1;
const CLOSED: u64 = 1 << CLOSED_SHIFT;
const VERSION_ONE: u64 = 1 << VERSION_SHIFT;

/// What the admission word said at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Books(u64);

impl Books {
    pub(crate) const fn closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    pub(crate) const fn executors(self) -> u32 {
        ((self.0 >> EXECUTORS_SHIFT) & EXECUTORS_MASK) as u32
    }

    pub(crate) const fn cores(self) -> MilliCpus {
        MilliCpus::from_millis(self.0 & CORES_MASK)
    }

    pub(crate) const fn same_version(self, other: Books) -> bool {
        self.0 >> VERSION_SHIFT == other.0 >> VERSION_SHIFT
    }
}

/// The word itself; see the module's head.
#[derive(Debug)]
pub(crate) struct Admission(AtomicU64);

impl Admission {
    pub(crate) fn new() -> Admission {
        Admission(AtomicU64::new(0))
    }

    pub(crate) fn load(&self) -> Books {
        // Acquire: pairs with `bump_version` (the policy of this version is visible) and with `release`.
        Books(self.0.load(Ordering::Acquire))
    }

    /// Admits `executors` with `cores` together, if the word is still what was `seen`, and says what it became;
    /// otherwise says what it is now.
    ///
    /// The caller has checked the sums against the caps; sums that the word has no room for are refused like a word
    /// that changed.
    pub(crate) fn commit(
        &self,
        seen: Books,
        executors: u32,
        cores: MilliCpus,
    ) -> Result<Books, Books> {
        let fits = seen.executors() + executors <= limits::EXECUTORS_MAX
            && seen.cores().millis() + cores.millis() <= limits::TOTAL_CORES_MAX.millis();
        if seen.closed() || !fits {
            debug_assert!(fits, "a plan exceeds the admission word");
            return Err(self.load());
        }
        let next = seen.0 + (u64::from(executors) << EXECUTORS_SHIFT) + cores.millis();
        // AcqRel: the slots written before are visible to a drain that sees this count; Acquire on failure: the
        // trimmed plan is made from what the winner wrote.
        self.0
            .compare_exchange(seen.0, next, Ordering::AcqRel, Ordering::Acquire)
            .map(|_| Books(next))
            .map_err(Books)
    }

    /// Gives back what a commit took, and says what the word became.
    pub(crate) fn release(&self, executors: u32, cores: MilliCpus) -> Books {
        let taken = (u64::from(executors) << EXECUTORS_SHIFT) + cores.millis();
        // AcqRel: everything that was done with the executor happens before whoever sees the word without it.
        let before = Books(self.0.fetch_sub(taken, Ordering::AcqRel));
        debug_assert!(
            before.executors() >= executors && before.cores() >= cores,
            "released more than was admitted"
        );
        Books(before.0.wrapping_sub(taken))
    }

    /// The word as it is in the order of its changes, not merely as it was seen last: what the caller wrote before is
    /// visible to whoever changes the word later.
    pub(crate) fn settle(&self) -> Books {
        Books(self.0.fetch_or(0, Ordering::AcqRel))
    }

    /// Ends admission for good, and says what the word was before.
    pub(crate) fn close(&self) -> Books {
        Books(self.0.fetch_or(CLOSED, Ordering::AcqRel))
    }

    /// Makes commits fail whose plans were made from an older policy. Called after the new one is published.
    pub(crate) fn bump_version(&self) {
        // AcqRel: the publication before is visible to every `load` that sees the new version.
        self.0.fetch_add(VERSION_ONE, Ordering::AcqRel);
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: the fields share the word without touching. Method: fill each to its brim and read the others.
    #[test]
    fn fields_partition_the_word() {
        let fields = [CORES_MASK, EXECUTORS_MASK << EXECUTORS_SHIFT, CLOSED, 0xff << VERSION_SHIFT];
        assert_eq!(fields.iter().fold(0, |all, field| all ^ field), u64::MAX);
        let admission = Admission::new();
        for _ in 0..256 {
            admission.bump_version();
        }
        assert_eq!(admission.load(), Books(0), "the version wraps off the top");
        admission.commit(admission.load(), limits::EXECUTORS_MAX, limits::TOTAL_CORES_MAX).unwrap();
        assert!(!admission.close().closed());
        let books = admission.load();
        assert_eq!(
            (books.executors(), books.cores()),
            (limits::EXECUTORS_MAX, limits::TOTAL_CORES_MAX)
        );
        let left = admission.release(limits::EXECUTORS_MAX, limits::TOTAL_CORES_MAX);
        assert!(left.closed() && left.executors() == 0 && left.cores() == MilliCpus::ZERO);
        assert!(admission.commit(left, 1, MilliCpus::ZERO).is_err(), "closed is closed");
    }
}
