//! The admission word: everything that a launch must be checked against, in 64 bits.
//!
//! | bits | field | |
//! |---|---|---|
//! | 56–63 | version | changes with each change of policy, and when an agent is barred; see below |
//! | 55 | closed | set once, never cleared |
//! | 33–54 | executors | live ones |
//! | 0–32 | cores | acquired, in thousandths |
//!
//! | thread | does | ordering | pairs with |
//! |---|---|---|---|
//! | any | [`load`](Admission::load) | Acquire | every write below: what a plan is made from |
//! | handler | [`commit`](Admission::commit) | AcqRel on success, Acquire on failure | `load`, `release`; a waiter in `drain` |
//! | whichever ends an executor | [`release`](Admission::release) | AcqRel | the last one's writes are seen by the drain's waiter |
//! | policy's publisher | [`bump_version`](Admission::bump_version) | AcqRel | `load`: who sees the version sees the policy, and which agents are barred |
//! | drain | [`close`](Admission::close) | AcqRel | `commit`: fails from now on |
//!
//! A commit compares the whole word. So it fails when any launch, release, change of policy or close came between
//! plan and commit, and the caps can't be exceeded, not for an instant.
//!
//! # Versions
//!
//! There may be more changes of policy during one batch than there are versions, and so a version must not come back
//! while a batch relies on it. Each handler has a [`Pin`], a word that says which version its batch follows, and a
//! publisher takes only versions that are in no pin:
//!
//! | thread | does | ordering | pairs with |
//! |---|---|---|---|
//! | handler that finds another version than it has pinned | store the pin, fence, load the admission word again | Release, SeqCst | the publisher's fence |
//! | publisher | fence, load all pins, change the version | SeqCst, Acquire | the handler's fence; the store of a later pin, before which the batch was over |
//!
//! Let a handler see version v after it has pinned it, and let publishers change the version to another one and then
//! back to v. The publisher that takes v comes after the one that left it (they take turns), so its fence comes after
//! v was left. If its fence came before the handler's, the handler would see that v was left, or a later change. So the
//! handler's fence comes first, and the publisher finds the pin, or what the handler pinned when the batch was over.
//! And a handler that joins after the pins were looked at sees that v was left, by the lock of the list of pins.
//!
//! A pin stays when the batch is over. So while the policy stays the same, a batch compares its pin with the version,
//! and that is all; after a change it pays one fence. Idle handlers keep versions from being used, and there must be
//! versions left: only [`LASTING`] pins stay, and those of further handlers are cleared after each batch. If these
//! many batches in progress have each another version pinned, a publisher waits until one of them ends. Handlers never
//! wait.
//!
//! Threads without a pin must keep the policy from changing between `load` and `commit`
//! ([`PolicyCell::freeze`](super::policy::PolicyCell::freeze)).

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering, fence, lock, yield_now};

use crate::limits;
use crate::resources::MilliCpus;

const CORES_BITS: u32 = 33;
const EXECUTORS_BITS: u32 = 22;
const EXECUTORS_SHIFT: u32 = CORES_BITS;
const CLOSED_SHIFT: u32 = EXECUTORS_SHIFT + EXECUTORS_BITS;
/// Few under loom, so that its models come to the last one and begin anew.
const VERSION_BITS: u32 = if cfg!(all(loom, test)) { 2 } else { 8 };
const VERSION_SHIFT: u32 = 64 - VERSION_BITS;
const CORES_MASK: u64 = (1 << CORES_BITS) - 1;
const EXECUTORS_MASK: u64 = (1 << EXECUTORS_BITS) - 1;
const CLOSED: u64 = 1 << CLOSED_SHIFT;

const VERSIONS: u32 = 1 << VERSION_BITS;
/// The most pins that outlast their batch: half of the versions stay free for the policy in force and for others.
const LASTING: usize = VERSIONS as usize / 2;
/// No version.
const NONE: u32 = u32::MAX;

/// What the admission word said at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AdmissionState(u64);

impl AdmissionState {
    pub(crate) const fn closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    pub(crate) const fn executors(self) -> u32 {
        ((self.0 >> EXECUTORS_SHIFT) & EXECUTORS_MASK) as u32
    }

    pub(crate) const fn cores(self) -> MilliCpus {
        MilliCpus::from_millis(self.0 & CORES_MASK)
    }

    const fn version(self) -> u32 {
        (self.0 >> VERSION_SHIFT) as u32
    }

    /// Whether no policy came between, and plans were not invalidated. To be asked only while the version of one of
    /// them is pinned.
    pub(crate) const fn same_version(self, other: AdmissionState) -> bool {
        self.version() == other.version()
    }
}

/// The word itself, and all pins; see the module's head.
#[derive(Debug)]
pub(crate) struct Admission {
    word: AtomicU64,
    pins: Mutex<Vec<Arc<CachePadded<PinWord>>>>,
}

#[derive(Debug)]
struct PinWord {
    version: AtomicU32,
    lasting: bool,
}

/// Which version a handler's batch follows: that version is not used anew meanwhile.
#[derive(Debug)]
pub(crate) struct Pin {
    /// Only this handler writes it, and seldom; so it needn't be read to know what it says.
    word: Arc<CachePadded<PinWord>>,
    version: u32,
}

impl Pin {
    fn set(&mut self, version: u32) {
        self.version = version;
        // Release: who doesn't find the former version any more knows that its batch is over.
        self.word.version.store(version, Ordering::Release);
    }

    /// The word that publishers read.
    #[cfg(all(counting, test))]
    pub(crate) fn word(&self) -> &impl Sized {
        &*self.word
    }

    /// The batch is over.
    pub(crate) fn end_batch(&mut self) {
        if !self.word.lasting {
            self.set(NONE);
        }
    }
}

impl Admission {
    pub(crate) fn new() -> Admission {
        Admission { word: AtomicU64::new(0), pins: Mutex::new(Vec::new()) }
    }

    /// A pin for a new handler.
    pub(crate) fn join(&self) -> Pin {
        let mut pins = lock(&self.pins);
        let lasting = pins.iter().filter(|pin| pin.lasting).count() < LASTING;
        let word = PinWord { version: AtomicU32::new(NONE), lasting };
        let word = Arc::new(CachePadded::new(word));
        pins.push(Arc::clone(&word));
        Pin { word, version: NONE }
    }

    /// A handler's last call.
    pub(crate) fn leave(&self, pin: &Pin) {
        lock(&self.pins).retain(|word| !Arc::ptr_eq(word, &pin.word));
    }

    /// The word, whose version isn't used anew until the pin is set again.
    pub(crate) fn load_pinned(&self, pin: &mut Pin) -> AdmissionState {
        let mut state = self.load();
        while state.version() != pin.version {
            pin.set(state.version());
            // Pairs with the fence of a publisher: it sees the pin, or we see what came before its look at the pins.
            fence(Ordering::SeqCst);
            state = self.load();
        }
        state
    }

    pub(crate) fn load(&self) -> AdmissionState {
        // Acquire: pairs with `bump_version` (the policy of this version is visible) and with `release`.
        AdmissionState(self.word.load(Ordering::Acquire))
    }

    /// Admits `executors` with `cores` together, if the word is still what was `seen`, and says what it became;
    /// otherwise says what it is now.
    ///
    /// The caller has checked the sums against the caps of the policy that it found after it loaded the word, and has
    /// pinned the version since, or keeps the policy. Sums that the word has no room for are refused like a word
    /// that changed.
    pub(crate) fn commit(
        &self,
        seen: AdmissionState,
        executors: u32,
        cores: MilliCpus,
    ) -> Result<AdmissionState, AdmissionState> {
        let fits = seen.executors() + executors <= limits::EXECUTORS_MAX
            && seen.cores().millis() + cores.millis() <= limits::TOTAL_CORES_MAX.millis();
        if seen.closed() || !fits {
            debug_assert!(fits, "a plan exceeds the admission word");
            return Err(self.load());
        }
        let next = seen.0 + (u64::from(executors) << EXECUTORS_SHIFT) + cores.millis();
        // AcqRel: the slots written before are visible to a drain that sees this count; Acquire on failure: the
        // trimmed plan is made from what the winner wrote.
        self.word
            .compare_exchange(seen.0, next, Ordering::AcqRel, Ordering::Acquire)
            .map(|_| AdmissionState(next))
            .map_err(AdmissionState)
    }

    /// Gives back what a commit took, and says what the word became.
    pub(crate) fn release(&self, executors: u32, cores: MilliCpus) -> AdmissionState {
        let taken = (u64::from(executors) << EXECUTORS_SHIFT) + cores.millis();
        // AcqRel: everything that was done with the executor happens before whoever sees the word without it.
        let before = AdmissionState(self.word.fetch_sub(taken, Ordering::AcqRel));
        debug_assert!(
            before.executors() >= executors && before.cores() >= cores,
            "released more than was admitted"
        );
        AdmissionState(before.0.wrapping_sub(taken))
    }

    /// The word as it is in the order of its changes, not merely as it was seen last: what the caller wrote before is
    /// visible to whoever changes the word later.
    pub(crate) fn load_latest(&self) -> AdmissionState {
        AdmissionState(self.word.fetch_or(0, Ordering::AcqRel))
    }

    /// Ends admission for good, and says what the word was before.
    pub(crate) fn close(&self) -> AdmissionState {
        AdmissionState(self.word.fetch_or(CLOSED, Ordering::AcqRel))
    }

    /// Makes commits fail whose plans were made before. Called after a new policy is published or an agent is barred,
    /// by one thread at a time. Waits for batches only if there are more in progress than [`LASTING`], on as many
    /// versions.
    pub(crate) fn bump_version(&self) {
        let version = self.load().version();
        let next = loop {
            match self.free_version(version) {
                Some(next) => break next,
                None => yield_now(),
            }
        };
        let change = u64::from(next.wrapping_sub(version)) << VERSION_SHIFT;
        // AcqRel: the publication before is visible to every `load` that sees the new version. Adding what is missing
        // wraps off the top, and leaves the rest of the word as it is.
        self.word.fetch_add(change, Ordering::AcqRel);
    }

    /// A version other than `current` that nobody has pinned.
    fn free_version(&self, current: u32) -> Option<u32> {
        // Pairs with the fence of a handler that pins.
        fence(Ordering::SeqCst);
        let pins = lock(&self.pins);
        // Acquire: the batches that had other versions pinned before are over.
        let pinned =
            |version| pins.iter().any(|pin| pin.version.load(Ordering::Acquire) == version);
        let others = (1..VERSIONS).map(|step| (current + step) % VERSIONS);
        others.into_iter().find(|version| !pinned(*version))
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: the fields share the word without touching. Method: fill each to its brim and read the others.
    #[test]
    fn fields_partition_the_word() {
        let versions = u64::from(VERSIONS - 1) << VERSION_SHIFT;
        let fields = [CORES_MASK, EXECUTORS_MASK << EXECUTORS_SHIFT, CLOSED, versions];
        assert_eq!(fields.iter().fold(0, |all, field| all ^ field), u64::MAX);
        let admission = Admission::new();
        for _ in 0..256 {
            admission.bump_version();
        }
        assert_eq!(admission.load(), AdmissionState(0), "the version wraps off the top");
        admission.commit(admission.load(), limits::EXECUTORS_MAX, limits::TOTAL_CORES_MAX).unwrap();
        assert!(!admission.close().closed());
        let state = admission.load();
        assert_eq!(
            (state.executors(), state.cores()),
            (limits::EXECUTORS_MAX, limits::TOTAL_CORES_MAX)
        );
        let left = admission.release(limits::EXECUTORS_MAX, limits::TOTAL_CORES_MAX);
        assert!(left.closed() && left.executors() == 0 && left.cores() == MilliCpus::ZERO);
        assert!(admission.commit(left, 1, MilliCpus::ZERO).is_err(), "closed is closed");
    }
    /// Goal: a version that a batch follows doesn't come back, whatever the number of changes and of idle handlers.
    /// Method: more handlers than versions; all but one are idle, each with another version pinned if its pin lasts.
    #[test]
    fn pinned_versions_are_not_used_anew() {
        let admission = Admission::new();
        let mut idle: Vec<Pin> = (0..2 * VERSIONS).map(|_| admission.join()).collect();
        for pin in &mut idle {
            admission.load_pinned(pin);
            pin.end_batch();
            admission.bump_version();
        }
        let mut pin = admission.join();
        let state = admission.load_pinned(&mut pin);
        for change in 1..=3 * VERSIONS {
            admission.bump_version();
            assert!(!admission.load().same_version(state), "{change}");
            assert!(admission.commit(state, 1, MilliCpus::ZERO).is_err(), "{change}");
        }
        assert_eq!(admission.load_pinned(&mut pin), admission.load());
        assert!(admission.commit(admission.load_pinned(&mut pin), 1, MilliCpus::ZERO).is_ok());
        idle.iter().for_each(|pin| admission.leave(pin));
        assert_eq!(lock(&admission.pins).len(), 1);
    }
}
