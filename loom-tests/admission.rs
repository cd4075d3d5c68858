//! The admission word: launches against launches, releases, the close, and a limit that is lowered.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use loom::thread;

use super::explore;
use crate::kernel::admission::Admission;
use crate::resources::MilliCpus;

const CORE: MilliCpus = MilliCpus::from_cores(1);

/// Launches one executor if the word has fewer than `limit`, as a handler does.
fn launch(admission: &Admission, limit: impl Fn() -> u32) -> bool {
    let mut books = admission.load();
    loop {
        if books.closed() || books.executors() >= limit() {
            return false;
        }
        match admission.commit(books, 1, CORE) {
            Ok(_) => return true,
            Err(current) => books = current,
        }
    }
}

/// Goal: two launches never exceed a limit of one, in any state that an observer can see. Method: both at once, and a
/// third thread that looks.
#[test]
fn launches_keep_to_the_limit() {
    explore("admission/launch-launch", None, || {
        let admission = Arc::new(Admission::new());
        let other = Arc::clone(&admission);
        let launched = thread::spawn(move || launch(&other, || 1));
        let observer = Arc::clone(&admission);
        let seen = thread::spawn(move || observer.load().executors());
        let here = launch(&admission, || 1);
        assert!(seen.join().unwrap() <= 1);
        assert!(launched.join().unwrap() ^ here);
        assert_eq!(admission.load().executors(), 1);
    });
}

/// Mutant: check the limit, then add, in two steps.
#[test]
#[ignore = "mutant"]
fn mutant_launches_check_then_add() {
    explore("mutant admission/launch-launch", None, || {
        let word = Arc::new(AtomicU64::new(0));
        let launch = |word: &AtomicU64| {
            if word.load(Ordering::SeqCst) < 1 {
                word.fetch_add(1, Ordering::SeqCst);
            }
        };
        let other = Arc::clone(&word);
        let launched = thread::spawn(move || launch(&other));
        launch(&word);
        launched.join().unwrap();
        assert!(word.load(Ordering::SeqCst) <= 1);
    });
}

/// Goal: once `close` has returned the executors only become fewer. Method: a launch and a close at once; the count
/// after the close bounds the count at the end.
#[test]
fn nothing_is_launched_after_the_close() {
    explore("admission/launch-close", None, || {
        let admission = Arc::new(Admission::new());
        let other = Arc::clone(&admission);
        let launched = thread::spawn(move || launch(&other, || 9));
        admission.close();
        let after_close = admission.load().executors();
        launched.join().unwrap();
        assert_eq!(admission.load().executors(), after_close);
    });
}

/// Mutant: the closed flag is looked at before the commit, in a word of its own.
#[test]
#[ignore = "mutant"]
fn mutant_closed_flag_apart() {
    explore("mutant admission/launch-close", None, || {
        let words = Arc::new((AtomicU64::new(0), AtomicU32::new(0)));
        let other = Arc::clone(&words);
        let launched = thread::spawn(move || {
            if other.1.load(Ordering::SeqCst) == 0 {
                other.0.fetch_add(1, Ordering::SeqCst);
            }
        });
        words.1.fetch_add(1, Ordering::SeqCst);
        let after_close = words.0.fetch_add(0, Ordering::SeqCst);
        launched.join().unwrap();
        assert_eq!(words.0.load(Ordering::SeqCst), after_close);
    });
}

/// A scene with a limit in a policy that loom can see, as `PolicyCell` publishes it: store, then bump the version.
fn lower_the_limit(launch: fn(&Admission, &AtomicU32) -> bool, bump: bool) {
    let shared = Arc::new((Admission::new(), AtomicU32::new(9)));
    let other = Arc::clone(&shared);
    let launched = thread::spawn(move || launch(&other.0, &other.1));
    shared.1.store(0, Ordering::Release);
    if bump {
        shared.0.bump_version();
    }
    let after_setting = shared.0.load().executors();
    launched.join().unwrap();
    assert_eq!(shared.0.load().executors(), after_setting, "launched beyond the limit in force");
}

/// Goal: once a lower limit is set nothing is launched beyond it. Method: a launch under the old limit at the same
/// time; as in the kernel, the word is loaded before the policy, and a changed version means a new look at both.
#[test]
fn a_lowered_limit_holds_once_it_is_set() {
    explore("admission/launch-limit", None, || {
        let launch = |admission: &Admission, limit: &AtomicU32| {
            let mut books = admission.load();
            loop {
                if books.executors() >= limit.load(Ordering::Acquire) {
                    return false;
                }
                match admission.commit(books, 1, CORE) {
                    Ok(_) => return true,
                    Err(current) => books = current,
                }
            }
        };
        lower_the_limit(launch, true);
    });
}

/// Mutant: the limit is read once, before the word.
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

/// Mutant: the publisher forgets to bump the version.
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

/// Goal: a release and a launch at once lose neither. Method: both on a word with one executor in it.
#[test]
fn releases_and_launches_add_up() {
    explore("admission/release-launch", None, || {
        let admission = Arc::new(Admission::new());
        assert!(launch(&admission, || 2));
        let other = Arc::clone(&admission);
        let released = thread::spawn(move || other.release(1, CORE).executors());
        let launched = launch(&admission, || 2);
        released.join().unwrap();
        let books = admission.load();
        assert!(launched);
        assert_eq!((books.executors(), books.cores()), (1, CORE));
    });
}

/// Mutant: release by load and store.
#[test]
#[ignore = "mutant"]
fn mutant_release_in_two_steps() {
    explore("mutant admission/release-launch", None, || {
        let word = Arc::new(AtomicU64::new(1));
        let other = Arc::clone(&word);
        let released = thread::spawn(move || {
            other.store(other.load(Ordering::Acquire) - 1, Ordering::Release);
        });
        word.fetch_add(1, Ordering::AcqRel);
        released.join().unwrap();
        assert_eq!(word.load(Ordering::Acquire), 1);
    });
}
