//! The admission word: concurrent launches, releases, a close, and a limit that is lowered.

use std::time::Duration;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

use super::scenes::{NOW, config, finish, kernel, offer};
use super::{explore, race};
use crate::kernel::state::admission::{Admission, ReleaseCounter};
use crate::resources::MilliCpus;
use crate::{Fate, StatusUpdate, TaskState};

const CORE: MilliCpus = MilliCpus::from_cores(1);

/// Launches one executor if the word counts fewer than `limit`, as a handler does.
fn launch(admission: &Admission, limit: impl Fn() -> u32) -> bool {
    let mut state = admission.load();
    loop {
        if state.executors() >= limit() {
            return false;
        }
        match admission.commit(state, 1, CORE) {
            Ok(_) => return true,
            Err(current) if current.closed() => return false,
            Err(current) => state = current,
        }
    }
}

/// Goal: two launches never exceed a limit of one, in any state that another thread can see. Method: both at once, and
/// a third thread that reads.
#[test]
fn launches_keep_to_the_limit() {
    explore("admission/launch-launch", None, || {
        let admission = Arc::new(Admission::new());
        let (here, there) = (Arc::clone(&admission), Arc::clone(&admission));
        let observer = Arc::clone(&admission);
        let seen = thread::spawn(move || observer.load().executors());
        let (one, other) = race(move || launch(&here, || 1), move || launch(&there, || 1));
        assert!(seen.join().unwrap() <= 1);
        assert!(one ^ other);
        assert_eq!(admission.load().executors(), 1);
    });
}

/// Mutant: the limit is checked once, and not again after the word has changed.
#[test]
#[ignore = "mutant"]
fn mutant_limit_checked_once() {
    explore("mutant admission/launch-launch", None, || {
        let admission = Arc::new(Admission::new());
        let launch = |admission: &Admission| {
            let mut state = admission.load();
            if state.executors() == 0 {
                while let Err(current) = admission.commit(state, 1, CORE) {
                    state = current;
                }
            }
        };
        let (here, there) = (Arc::clone(&admission), Arc::clone(&admission));
        race(move || launch(&here), move || launch(&there));
        assert!(admission.load().executors() <= 1);
    });
}

/// Goal: once `close` has returned, the number of executors only falls. Method: a launch and a close at once; the count
/// after the close bounds the count at the end.
#[test]
fn nothing_is_launched_after_the_close() {
    explore("admission/launch-close", None, || {
        let admission = Arc::new(Admission::new());
        let (here, there) = (Arc::clone(&admission), Arc::clone(&admission));
        let (_, after_close) = race(
            move || launch(&here, || 9),
            move || {
                there.close();
                there.load().executors()
            },
        );
        assert_eq!(admission.load().executors(), after_close);
    });
}

/// A scene with a limit in a policy that loom sees, published as `PolicyCell` does: store, then bump the version.
fn lower_the_limit(launch: fn(&Admission, &AtomicU32) -> bool, bump: bool) {
    let shared = Arc::new((Admission::new(), AtomicU32::new(9)));
    let (here, there) = (Arc::clone(&shared), Arc::clone(&shared));
    let (_, after_setting) = race(
        move || launch(&here.0, &here.1),
        move || {
            there.1.store(0, Ordering::Release);
            if bump {
                there.0.bump_version();
            }
            there.0.load().executors()
        },
    );
    assert_eq!(shared.0.load().executors(), after_setting, "launched beyond the limit in force");
}

/// Goal: once a lower limit is set, nothing is launched beyond it. Method: a concurrent launch under the old limit; as
/// in the kernel, the word is loaded before the policy, and if the version has changed both are loaded again.
#[test]
fn a_lowered_limit_holds_once_it_is_set() {
    explore("admission/launch-limit", None, || {
        let launch = |admission: &Admission, limit: &AtomicU32| {
            let mut state = admission.load();
            loop {
                if state.executors() >= limit.load(Ordering::Acquire) {
                    return false;
                }
                match admission.commit(state, 1, CORE) {
                    Ok(_) => return true,
                    Err(current) => state = current,
                }
            }
        };
        lower_the_limit(launch, true);
    });
}

/// Mutant: the limit is loaded once, before the word.
#[test]
#[ignore = "mutant"]
fn mutant_limit_read_once() {
    explore("mutant admission/launch-limit (read once)", None, || {
        let stale = |admission: &Admission, limit: &AtomicU32| {
            let limit = limit.load(Ordering::Acquire);
            launch(admission, || limit)
        };
        lower_the_limit(stale, true);
    });
}

/// Mutant: the publisher doesn't bump the version.
#[test]
#[ignore = "mutant"]
fn mutant_version_not_bumped() {
    explore("mutant admission/launch-limit (no version)", None, || {
        let fresh = |admission: &Admission, limit: &AtomicU32| {
            launch(admission, || limit.load(Ordering::Acquire))
        };
        lower_the_limit(fresh, false);
    });
}

/// Goal: of concurrent releases and launches, none is lost. Method: two threads release by the same counter, one of
/// them launches as well.
#[test]
fn releases_and_launches_add_up() {
    explore("admission/release-launch", None, || {
        let admission = Arc::new(Admission::new());
        assert!(launch(&admission, || 2) && launch(&admission, || 2));
        let (here, there) = (Arc::clone(&admission), Arc::clone(&admission));
        let release = |admission: &Admission| admission.release(ReleaseCounter::SHARED, 1, CORE);
        let (_, launched) = race(
            move || release(&here),
            move || {
                release(&there);
                launch(&there, || 2)
            },
        );
        let state = admission.load();
        assert!(launched);
        assert_eq!((state.executors(), state.cores()), (1, CORE));
    });
}

/// Goal: what is loaded was true at one instant, though the word and the counters are apart. Method: an executor makes
/// way for another one at a limit of one, and its successor for a third one by another counter, while a thread loads.
#[test]
fn a_load_is_of_one_instant() {
    explore("admission/turnover-load", None, || {
        let admission = Arc::new(Admission::new());
        let own = admission.take_counter();
        assert!(launch(&admission, || 1));
        let (here, there) = (Arc::clone(&admission), Arc::clone(&admission));
        let ((), seen) = race(
            move || {
                for counter in [own, ReleaseCounter::SHARED] {
                    here.release(counter, 1, CORE);
                    assert!(launch(&here, || 1));
                }
            },
            move || there.load(),
        );
        assert!(seen.executors() <= 1, "{seen:?}");
        assert_eq!(seen.cores().whole_cores(), u64::from(seen.executors()));
    });
}

/// Goal: of two threads that end the last two executors, one wakes the waiter, though each counts what it released
/// apart. Method: both at once in a closed kernel, one by an updater; a third thread waits.
#[test]
fn one_of_the_last_two_ends_wakes_the_waiter() {
    explore("admission/end-end", Some(3), || {
        let kernel = kernel(config());
        let [one, other] = [(); 2].map(|()| offer(&kernel, 1).remove(0));
        kernel.close();
        let (here, waiting) = (kernel.clone(), kernel.clone());
        let mut updater = kernel.updater();
        let waiter = thread::spawn(move || waiting.drain(Duration::MAX));
        race(
            move || finish(&here, &one),
            move || {
                updater.status_update(&StatusUpdate::new(&other, TaskState::Finished), NOW);
            },
        );
        let report = waiter.join().unwrap();
        assert!(report.drained);
        assert_eq!(report.executors.len(), 2);
        assert!(report.executors.iter().all(|it| it.fate == Fate::Finished));
        kernel.check().unwrap();
    });
}
