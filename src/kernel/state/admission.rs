//! Admission: everything that a launch must be checked against, in one word and a few counters of what was released.
//!
//! | bits of the word | field | |
//! |---|---|---|
//! | 56–63 | version | changes with each change of policy, and when an agent is excluded or suspected; see below |
//! | 55 | closed | set once, never cleared |
//! | 33–54 | executors | all that were ever admitted, modulo 2²² |
//! | 0–32 | cores | theirs, in thousandths, modulo 2³³ |
//!
//! The lower 55 bits are one number, the sum of what was admitted, modulo 2⁵⁵: an executor adds 2³³ and its cores. Each
//! counter has the same sum of what was released by the threads that use it. The difference is what the executors that
//! live hold; it fits into the fields ([`limits`]), whatever was carried from one to the other before. So of launches
//! and ends only launches change the word, and an end changes no line of admission that another thread with a counter
//! of its own changes.
//!
//! | thread | operation | ordering | pairs with |
//! |---|---|---|---|
//! | any | [`load`](Admission::load): the counters, the word, the counters again until they are the same | SeqCst | every write below: a plan is made from it |
//! | handler | [`commit`](Admission::commit) | AcqRel | `load`; a waiter in `drain` |
//! | any that ends an executor | [`release`](Admission::release): an addition to a counter, then a load of the word | SeqCst | `load`: the drain's waiter sees the writes of the thread that ended the last executor; `close` |
//! | policy's publisher | [`bump_version`](Admission::bump_version) | AcqRel | `load`: a thread that sees the version sees the policy, and which agents are excluded or suspect |
//! | a new updater | [`take_counter`](Admission::take_counter): a bit of the word of those that are taken | Acquire | `return_counter`: what the counter's last updater has written is seen, and nothing follows |
//! | an updater that is dropped | [`return_counter`](Admission::return_counter): clears it | Release | the above |
//! | drain | [`close`](Admission::close), then a `load` | SeqCst | `commit`: fails from now on; `release` |
//!
//! A commit compares the whole word. It fails if a launch, a change of policy or a close came between plan and commit.
//! A release doesn't make it fail: there is more room than the plan was made for. So the caps are not exceeded at any
//! instant.
//!
//! Counters only grow, so that two equal readings of them were true together with a word that was read in between. A
//! thread that ends an executor adds to its counter and then looks whether admission is closed; the one that closes it
//! looks at the counters afterwards. All four are SeqCst: one of the two threads sees the other, so either the list
//! of the close has the executor as ended or its end finds the close. The same holds for two threads that end the last
//! two executors of a closed kernel: one of them finds none left, and wakes the drain.
//!
//! That a commit finds the same word although others were admitted since would take as many executors as make up a
//! multiple of 2⁵⁵ during one batch: 4 194 304 of no cores at all, and at least 3.7 million whatever their cores.
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

use crate::sync::{
    AtomicU32, AtomicU64, Mutex, Ordering, fence, fence_after_exchange, lock, yield_now,
};

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
const CLOSED: u64 = 1 << CLOSED_SHIFT;
/// Executors and cores.
const SUM_MASK: u64 = CLOSED - 1;

/// Of the exchanges of a counter and of the closing, and of the loads of the counters and the word after them: all have
/// one order.
const ONE_ORDER: Ordering = Ordering::SeqCst;

/// The number of counters of what was released. Each load reads all.
pub(super) const COUNTERS: usize = if cfg!(all(loom, test)) { 2 } else { 3 };

const VERSIONS: u32 = 1 << VERSION_BITS;
/// The maximum number of pins that stay set after their batch: half of the versions, so that others stay free.
const LASTING: usize = VERSIONS as usize / 2;
/// No version.
const NONE: u32 = u32::MAX;

/// The state of admission at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AdmissionState {
    word: u64,
    /// The sum of the counters.
    released: u64,
}

impl AdmissionState {
    pub(crate) const fn closed(self) -> bool {
        self.word & CLOSED != 0
    }

    /// The executors that were admitted and not released.
    pub(crate) const fn executors(self) -> u32 {
        (self.live() >> EXECUTORS_SHIFT) as u32
    }

    /// Their cores.
    pub(crate) const fn cores(self) -> MilliCpus {
        MilliCpus::from_millis(self.live() & CORES_MASK)
    }

    const fn live(self) -> u64 {
        self.word.wrapping_sub(self.released) & SUM_MASK
    }

    const fn version(self) -> u32 {
        (self.word >> VERSION_SHIFT) as u32
    }

    /// Whether both have the same version: the policy didn't change and plans were not invalidated in between. Valid
    /// only while the version of one of them is pinned.
    pub(crate) const fn same_version(self, other: AdmissionState) -> bool {
        self.version() == other.version()
    }
}

/// The word, the counters, and all pins.
#[derive(Debug)]
pub(crate) struct Admission {
    word: CachePadded<AtomicU64>,
    released: [CachePadded<AtomicU64>; COUNTERS],
    /// A bit for each counter that an updater has to itself.
    taken_counters: CachePadded<AtomicU32>,
    pins: Mutex<Vec<Arc<CachePadded<PinWord>>>>,
}

/// One of the counters of what was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReleaseCounter(u32);

impl ReleaseCounter {
    /// The one of all threads without an [`Updater`](crate::kernel::Updater), and of updaters that find no other free.
    /// Each of the others has one updater at a time.
    pub(crate) const SHARED: ReleaseCounter = ReleaseCounter(COUNTERS as u32 - 1);

    /// Less than [`COUNTERS`]; that of the updater that was made first is 0.
    #[inline]
    pub(super) fn index(self) -> usize {
        (self.0 as usize).min(COUNTERS - 1)
    }
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
    /// What was loaded last.
    last: AdmissionState,
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
        Admission {
            word: CachePadded::new(AtomicU64::new(0)),
            released: std::array::from_fn(|_| CachePadded::new(AtomicU64::new(0))),
            taken_counters: CachePadded::new(AtomicU32::new(0)),
            pins: Mutex::new(Vec::new()),
        }
    }

    /// Returns the counter of a new updater: one that no other has, or the shared one.
    pub(crate) fn take_counter(&self) -> ReleaseCounter {
        let own = (0..ReleaseCounter::SHARED.0).map(ReleaseCounter);
        // Acquire: pairs with `return_counter`. The counter's last updater has counted all that it will.
        let mut free = own.filter(|own| {
            let bit = 1 << own.0;
            self.taken_counters.fetch_or(bit, Ordering::Acquire) & bit == 0
        });
        free.next().unwrap_or(ReleaseCounter::SHARED)
    }

    /// Another updater may take this counter, unless it is the shared one.
    pub(crate) fn return_counter(&self, counter: ReleaseCounter) {
        if counter != ReleaseCounter::SHARED {
            // Release: pairs with `take_counter`.
            self.taken_counters.fetch_and(!(1 << counter.0), Ordering::Release);
        }
    }

    /// Registers a pin for a new handler.
    pub(crate) fn register(&self) -> Pin {
        let mut pins = lock(&self.pins);
        let lasting = pins.iter().filter(|pin| pin.lasting).count() < LASTING;
        let pin = PinWord { version: AtomicU32::new(NONE), lasting };
        let word = Arc::new(CachePadded::new(pin));
        pins.push(Arc::clone(&word));
        Pin { word, version: NONE, last: AdmissionState::default() }
    }

    /// Removes the pin of a handler.
    pub(crate) fn unregister(&self, pin: &Pin) {
        lock(&self.pins).retain(|word| !Arc::ptr_eq(word, &pin.word));
    }

    /// Loads the state and pins its version, which is not reused until the pin is set again.
    #[inline(always)]
    pub(crate) fn load_pinned(&self, pin: &mut Pin) -> AdmissionState {
        if pin.last.version() != pin.version || !self.is_still(pin.last) {
            self.load_changed(pin);
        }
        pin.last
    }

    #[inline(never)]
    fn load_changed(&self, pin: &mut Pin) {
        let mut state = self.load();
        while state.version() != pin.version {
            pin.set(state.version());
            // Pairs with the publisher's fence: either it sees the pin, or this thread sees what came before it read
            // the pins.
            fence(Ordering::SeqCst);
            state = self.load();
        }
        pin.last = state;
    }

    /// Whether nothing has changed since `state` was loaded. Counters only grow: it is enough to read each once.
    #[inline]
    fn is_still(&self, state: AdmissionState) -> bool {
        self.word.load(ONE_ORDER) == state.word && self.released() == state.released
    }

    /// What executors hold, with the word, at one instant. Reads again while others release.
    #[inline]
    pub(crate) fn load(&self) -> AdmissionState {
        let mut released = self.released();
        loop {
            // SeqCst, as are the counters: pairs with `release`. As an Acquire it pairs with `bump_version` (the policy
            // of this version is visible).
            let word = self.word.load(ONE_ORDER);
            let again = self.released();
            if again == released {
                return AdmissionState { word, released };
            }
            released = again;
        }
    }

    /// Whether the version is still that of `state`; see [`AdmissionState::same_version`].
    pub(crate) fn has_version_of(&self, state: AdmissionState) -> bool {
        // Acquire: pairs with `bump_version`.
        self.word.load(Ordering::Acquire) >> VERSION_SHIFT == u64::from(state.version())
    }

    /// The sum of the counters.
    #[inline]
    fn released(&self) -> u64 {
        let counters = self.released.iter().map(|counter| counter.load(ONE_ORDER));
        counters.fold(0, u64::wrapping_add)
    }

    /// Admits `executors` with `cores` in total if the word is still that of `seen`. Returns the new state, in which
    /// nothing is released since, or the current one if the word has changed.
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
        let sum = seen.word.wrapping_add(sum(executors, cores));
        let word = seen.word & !SUM_MASK | sum & SUM_MASK;
        // AcqRel: the cells written before are visible to a drain that sees this count. Relaxed on failure: the
        // truncated plan is made from what is loaded then.
        match self.word.compare_exchange(seen.word, word, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => Ok(AdmissionState { word, ..seen }),
            Err(_) => Err(self.load()),
        }
    }

    /// Subtracts what a commit added. Returns whether admission is closed; then the caller has to see whether this were
    /// the last executors.
    #[inline]
    pub(crate) fn release(
        &self,
        counter: ReleaseCounter,
        executors: u32,
        cores: MilliCpus,
    ) -> bool {
        let counter = &self.released[counter.index()];
        // SeqCst: before the loads of the word and of other counters that follow, in the order of all of them. As a
        // Release: everything that was done with the executor happens before a thread sees the sum without it.
        counter.fetch_add(sum(executors, cores), ONE_ORDER);
        fence_after_exchange(ONE_ORDER);
        self.word.load(ONE_ORDER) & CLOSED != 0
    }

    /// Whether admission is closed, by the word that is the latest in its modification order: it is read with a
    /// read-modify-write. The caller's earlier writes are visible to every thread that changes the word later.
    pub(crate) fn is_closed_latest(&self) -> bool {
        self.word.fetch_or(0, Ordering::AcqRel) & CLOSED != 0
    }

    /// Closes admission permanently. Returns the state after it.
    ///
    /// A thread that ends an executor finds it closed, or has ended it before: then the caller sees that end.
    pub(crate) fn close(&self) -> AdmissionState {
        // SeqCst: before the loads that follow, as in `release`.
        self.word.fetch_or(CLOSED, ONE_ORDER);
        fence_after_exchange(ONE_ORDER);
        // Not only for the result: the ends that the counters tell of happen before what follows.
        self.load()
    }

    /// Makes commits of earlier plans fail. Called by one thread at a time, after a new policy was published or an
    /// agent was excluded or suspected. Waits for batches only if more than [`LASTING`] are in progress, on as many
    /// versions.
    pub(crate) fn bump_version(&self) {
        // Acquire: as in `load`. Nobody else changes the version meanwhile.
        let version = (self.word.load(Ordering::Acquire) >> VERSION_SHIFT) as u32;
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

    /// The word and the counters.
    #[cfg(all(counting, test))]
    pub(crate) fn words(&self) -> (&impl Sized, impl Iterator<Item = &AtomicU64>) {
        (&self.word, self.released.iter().map(|counter| &**counter))
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

/// Executors and cores as one number.
const fn sum(executors: u32, cores: MilliCpus) -> u64 {
    ((executors as u64) << EXECUTORS_SHIFT).wrapping_add(cores.millis())
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: the fields share the word without overlap. Method: fill each to its maximum and read the others.
    #[test]
    fn fields_partition_the_word() {
        let versions = u64::from(VERSIONS - 1) << VERSION_SHIFT;
        let executors = u64::from(limits::EXECUTORS_MAX) << EXECUTORS_SHIFT;
        let fields = [CORES_MASK, executors, CLOSED, versions];
        assert_eq!(fields.iter().fold(0, |all, field| all ^ field), u64::MAX);
        let admission = Admission::new();
        for _ in 0..256 {
            admission.bump_version();
        }
        assert_eq!(admission.load(), AdmissionState::default(), "the version wraps off the top");
        let most = (limits::EXECUTORS_MAX, limits::TOTAL_CORES_MAX);
        let held = |state: AdmissionState| (state.executors(), state.cores());
        let all = admission.commit(admission.load(), most.0, most.1).unwrap();
        assert_eq!((held(all), all.closed()), (most, false));
        let state = admission.close();
        assert_eq!((held(state), state.closed()), (most, true));
        assert!(admission.release(ReleaseCounter::SHARED, most.0, most.1), "it is closed");
        let left = admission.load();
        assert_eq!((held(left), left.closed()), ((0, MilliCpus::ZERO), true));
        assert!(admission.commit(left, 1, MilliCpus::ZERO).is_err(), "closed is closed");
    }

    /// Goal: what executors hold is the same however often the sums have wrapped, and changes neither the version nor
    /// the closed bit. Method: a random history by several counters, which at times admits all that is left, against
    /// sums that don't wrap.
    #[test]
    fn sums_may_wrap() {
        let admission = Admission::new();
        let counters: Vec<ReleaseCounter> =
            (0..2 * COUNTERS).map(|_| admission.take_counter()).collect();
        let taken: Vec<u32> = counters.iter().map(|counter| counter.0).collect();
        assert_eq!(taken, [0, 1, 2, 2, 2, 2]);
        counters[1..3].iter().for_each(|returned| admission.return_counter(*returned));
        assert_eq!([(); 2].map(|()| admission.take_counter().0), [1, 2]);
        admission.bump_version();
        let version = admission.load().version();
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        let mut held: Vec<(u32, MilliCpus)> = Vec::new();
        let sums = |held: &[(u32, MilliCpus)]| {
            let executors: u32 = held.iter().map(|(executors, _)| executors).sum();
            let cores: u64 = held.iter().map(|(_, cores)| cores.millis()).sum();
            (executors, MilliCpus::from_millis(cores))
        };
        for step in 0..20_000 {
            let (executors, cores) = sums(&held);
            let state = admission.load();
            assert_eq!((state.executors(), state.cores()), (executors, cores), "step {step}");
            assert_eq!((state.version(), state.closed()), (version, false), "step {step}");
            let room = u64::from(limits::EXECUTORS_MAX - executors);
            if held.is_empty() || next(2) == 0 && room > 0 {
                let room_of_cores = limits::TOTAL_CORES_MAX.millis() - cores.millis();
                // At times all that is left.
                let all = next(4) == 0;
                let executors = if all { room } else { 1 + next(room) } as u32;
                let cores = if all { room_of_cores } else { next(room_of_cores + 1) };
                let cores = MilliCpus::from_millis(cores);
                admission.commit(state, executors, cores).unwrap();
                held.push((executors, cores));
            } else {
                let (executors, cores) = held.swap_remove(next(held.len() as u64) as usize);
                let counter = counters[next(counters.len() as u64) as usize];
                assert!(!admission.release(counter, executors, cores));
            }
        }
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
            assert!(result.is_err() || result.is_ok_and(|state| state == Err(seen)));
            assert_eq!(admission.load(), seen, "{then:?}");
        }
    }
}
