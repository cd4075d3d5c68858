//! The admission word: everything that a launch must be checked against, in 64 bits.
//!
//! | bits | field | |
//! |---|---|---|
//! | 56–63 | version | changes with each change of policy, and when an agent is excluded or suspected; see below |
//! | 55 | closed | set once, never cleared |
//! | 33–54 | executors | counted executors |
//! | 0–32 | cores | their cores, in thousandths |
//!
//! | thread | operation | ordering | pairs with |
//! |---|---|---|---|
//! | any | [`load`](Admission::load) | Acquire | every write below: a plan is made from it |
//! | handler | [`commit`](Admission::commit) | AcqRel on success, Acquire on failure | `load`, `release`; a waiter in `drain` |
//! | any that ends an executor | [`release`](Admission::release) | AcqRel | the drain's waiter sees the writes of the thread that ended the last executor |
//! | policy's publisher | [`bump_version`](Admission::bump_version) | AcqRel | `load`: a thread that sees the version sees the policy, and which agents are excluded or suspect |
//! | drain | [`close`](Admission::close) | AcqRel | `commit`: fails from now on |
//!
//! A commit compares the whole word. It fails if a launch, a release, a change of policy or a close came between plan
//! and commit, so the caps are not exceeded at any instant.
//!
//! # Versions
//!
//! There may be more changes of policy during one batch than there are versions, so a version must not be reused while
//! a batch relies on it. Each handler has a [`Pin`], a word that says which version its batch follows, and a publisher
//! takes only versions that are in no pin:
//!
//! | thread | operation | ordering | pairs with |
//! |---|---|---|---|
//! | handler that finds another version than it has pinned | store the pin, fence, load the admission word again | Release, SeqCst | the publisher's fence |
//! | publisher | fence, load all pins, change the version | SeqCst, Acquire | the handler's fence; the store of a later pin, before which the batch was over |
//!
//! Assume that a handler sees version v after it has pinned it, and that publishers then change the version to another
//! one and back to v. The publisher that takes v comes after the one that left it (they take turns), so its fence comes
//! after v was left. If its fence came before the handler's, the handler would see that v was left, or a later change.
//! So the handler's fence comes first, and the publisher finds the pin, or the value that the handler stored after the
//! batch. A handler that is created after the publisher has read the pins sees that v was left, through the lock of the
//! list of pins.
//!
//! A pin stays set after the batch. So while the policy stays the same, a batch only compares its pin with the version;
//! after a change it executes one fence. Idle handlers thus keep versions from being reused. To leave enough versions,
//! only [`LASTING`] pins stay set; those of further handlers are cleared after each batch. If batches in progress pin
//! all other versions, a publisher waits until one of them ends. Handlers never wait.
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
/// Few under loom, so that its models reach the last one and start over.
const VERSION_BITS: u32 = if cfg!(all(loom, test)) { 2 } else { 8 };
const VERSION_SHIFT: u32 = 64 - VERSION_BITS;
const CORES_MASK: u64 = (1 << CORES_BITS) - 1;
const EXECUTORS_MASK: u64 = (1 << EXECUTORS_BITS) - 1;
const CLOSED: u64 = 1 << CLOSED_SHIFT;

const VERSIONS: u32 = 1 << VERSION_BITS;
/// The maximum number of pins that stay set after their batch: half of the versions, so that others stay free.
const LASTING: usize = VERSIONS as usize / 2;
/// No version.
const NONE: u32 = u32::MAX;

/// The value of the admission word at one instant.
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

    /// Whether both have the same version: the policy didn't change and plans were not invalidated in between. Valid
    /// only while the version of one of them is pinned.
    pub(crate) const fn same_version(self, other: AdmissionState) -> bool {
        self.version() == other.version()
    }
}

/// The word and all pins.
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

/// Which version a handler's batch follows. That version is not reused meanwhile.
#[derive(Debug)]
pub(crate) struct Pin {
    /// Written by this handler only, and rarely; `version` is a copy that it reads instead.
    word: Arc<CachePadded<PinWord>>,
    version: u32,
}

impl Pin {
    fn set(&mut self, version: u32) {
        self.version = version;
        // Release: a thread that doesn't find the former version any more knows that its batch is over.
        self.word.version.store(version, Ordering::Release);
    }

    /// The word that publishers read.
    #[cfg(all(counting, test))]
    pub(crate) fn word(&self) -> &impl Sized {
        &*self.word
    }

    /// Called after each batch.
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

    /// Registers a pin for a new handler.
    pub(crate) fn register(&self) -> Pin {
        let mut pins = lock(&self.pins);
        let lasting = pins.iter().filter(|pin| pin.lasting).count() < LASTING;
        let pin = PinWord { version: AtomicU32::new(NONE), lasting };
        let word = Arc::new(CachePadded::new(pin));
        pins.push(Arc::clone(&word));
        Pin { word, version: NONE }
    }

    /// Removes the pin of a handler.
    pub(crate) fn unregister(&self, pin: &Pin) {
        lock(&self.pins).retain(|word| !Arc::ptr_eq(word, &pin.word));
    }

    /// Loads the word and pins its version, which is not reused until the pin is set again.
    pub(crate) fn load_pinned(&self, pin: &mut Pin) -> AdmissionState {
        let mut state = self.load();
        while state.version() != pin.version {
            pin.set(state.version());
            // Pairs with the publisher's fence: either it sees the pin, or this thread sees what came before it read
            // the pins.
            fence(Ordering::SeqCst);
            state = self.load();
        }
        state
    }

    pub(crate) fn load(&self) -> AdmissionState {
        // Acquire: pairs with `bump_version` (the policy of this version is visible) and with `release`.
        AdmissionState(self.word.load(Ordering::Acquire))
    }

    /// Admits `executors` with `cores` in total if the word still equals `seen`. Returns the new word, or the current
    /// one if it has changed.
    ///
    /// The caller has checked the sums against the caps of a policy that it loaded after the word, and has pinned the
    /// version since or keeps the policy from changing. Sums that exceed the word are refused like a word that changed.
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
        // AcqRel: the cells written before are visible to a drain that sees this count. Acquire on failure: the
        // truncated plan is made from what the other thread wrote.
        self.word
            .compare_exchange(seen.0, next, Ordering::AcqRel, Ordering::Acquire)
            .map(|_| AdmissionState(next))
            .map_err(AdmissionState)
    }

    /// Subtracts what a commit added. Returns the new word.
    pub(crate) fn release(&self, executors: u32, cores: MilliCpus) -> AdmissionState {
        let taken = (u64::from(executors) << EXECUTORS_SHIFT) + cores.millis();
        // AcqRel: everything that was done with the executor happens before a thread sees the word without it.
        let before = AdmissionState(self.word.fetch_sub(taken, Ordering::AcqRel));
        debug_assert!(
            before.executors() >= executors && before.cores() >= cores,
            "released more than was admitted"
        );
        AdmissionState(before.0.wrapping_sub(taken))
    }

    /// Reads the word with a read-modify-write, and thus its latest value in modification order. The caller's earlier
    /// writes are visible to every thread that changes the word later.
    pub(crate) fn load_latest(&self) -> AdmissionState {
        AdmissionState(self.word.fetch_or(0, Ordering::AcqRel))
    }

    /// Closes admission permanently. Returns the word before.
    pub(crate) fn close(&self) -> AdmissionState {
        AdmissionState(self.word.fetch_or(CLOSED, Ordering::AcqRel))
    }

    /// Makes commits of earlier plans fail. Called by one thread at a time, after a new policy was published or an
    /// agent was excluded or suspected. Waits for batches only if more than [`LASTING`] are in progress, on as many
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
        // AcqRel: the earlier publication is visible to every `load` that sees the new version. The addition wraps at
        // the top of the word and doesn't change the other fields.
        self.word.fetch_add(change, Ordering::AcqRel);
    }

    /// Returns a version other than `current` that is not pinned.
    fn free_version(&self, current: u32) -> Option<u32> {
        // Pairs with the fence of a handler that sets its pin.
        fence(Ordering::SeqCst);
        let pins = lock(&self.pins);
        // Acquire: batches that pinned other versions before are over.
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

    /// Goal: the fields share the word without overlap. Method: fill each to its maximum and read the others.
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
    /// Goal: a version that a batch follows is not reused, whatever the number of changes and of idle handlers. Method:
    /// more handlers than versions; all but one are idle, each with another version pinned if its pin stays set.
    #[test]
    fn pinned_versions_are_not_used_anew() {
        let admission = Admission::new();
        let mut idle: Vec<Pin> = (0..2 * VERSIONS).map(|_| admission.register()).collect();
        for pin in &mut idle {
            admission.load_pinned(pin);
            pin.end_batch();
            admission.bump_version();
        }
        let mut pin = admission.register();
        let state = admission.load_pinned(&mut pin);
        for change in 1..=3 * VERSIONS {
            admission.bump_version();
            assert!(!admission.load().same_version(state), "{change}");
            assert!(admission.commit(state, 1, MilliCpus::ZERO).is_err(), "{change}");
        }
        assert_eq!(admission.load_pinned(&mut pin), admission.load());
        assert!(admission.commit(admission.load_pinned(&mut pin), 1, MilliCpus::ZERO).is_ok());
        idle.iter().for_each(|pin| admission.unregister(pin));
        assert_eq!(lock(&admission.pins).len(), 1);
    }

    /// Goal: half of the versions can be pinned by idle handlers, whichever handlers come and go. Method: register more
    /// than that, remove one whose pin stays set, and register again.
    #[test]
    fn half_of_the_versions_can_stay_pinned() {
        let admission = Admission::new();
        let pins: Vec<Pin> = (0..VERSIONS).map(|_| admission.register()).collect();
        let lasting: Vec<bool> = pins.iter().map(|pin| pin.word.lasting).collect();
        let half = VERSIONS as usize / 2;
        assert_eq!(lasting, [vec![true; half], vec![false; half]].concat());
        admission.unregister(&pins[0]);
        assert_eq!([(); 2].map(|()| admission.register().word.lasting), [true, false]);
    }

    /// Goal: a sum that exceeds the word is refused, and reported where that is checked. Method: too many executors,
    /// and too many cores, each alone and after others.
    #[test]
    fn sums_that_exceed_the_word_are_refused() {
        const ONE: MilliCpus = MilliCpus::from_millis(1);
        let (executors, cores) = (limits::EXECUTORS_MAX, limits::TOTAL_CORES_MAX);
        let more = MilliCpus::from_millis(cores.millis() + 1);
        for (first, then) in [
            ((0, MilliCpus::ZERO), (executors + 1, ONE)),
            ((executors, ONE), (1, ONE)),
            ((0, MilliCpus::ZERO), (1, more)),
            ((1, cores), (1, ONE)),
        ] {
            let admission = Admission::new();
            let seen = admission.commit(admission.load(), first.0, first.1).unwrap();
            let commit = || admission.commit(seen, then.0, then.1);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(commit));
            assert_eq!(result.is_err(), cfg!(debug_assertions), "{then:?}");
            assert!(result.is_err() || result.is_ok_and(|word| word == Err(seen)));
            assert_eq!(admission.load(), seen, "{then:?}");
        }
    }
}
