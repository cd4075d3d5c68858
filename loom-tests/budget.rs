//! The word for GPUs: concurrent reservations and releases.

use loom::sync::Arc;
use loom::thread;

use super::{explore, race};
use crate::kernel::state::budget::Budget;

/// Two reservations of two at once, with a cap of three; a third thread reads.
fn two_reservations(reserve: fn(&Budget) -> u64) {
    let budget = Arc::new(Budget::new());
    let other = Arc::clone(&budget);
    let theirs = thread::spawn(move || reserve(&other));
    let observer = Arc::clone(&budget);
    let seen = thread::spawn(move || observer.taken());
    let ours = reserve(&budget);
    assert!(seen.join().unwrap() <= 3);
    assert_eq!(ours + theirs.join().unwrap(), 3);
    assert_eq!(budget.taken(), 3);
}

/// Goal: reservations get all there is and never exceed the cap, in any state that another thread can see. Method: two
/// reservations that don't both fit, and a third thread that reads.
#[test]
fn reservations_keep_to_the_cap() {
    explore("budget/reserve-reserve", None, || {
        two_reservations(|budget| budget.reserve(2, 1, 3));
    });
}

/// Mutant: reads what is left, then reserves it.
#[test]
#[ignore = "mutant"]
fn mutant_look_then_take() {
    explore("mutant budget/reserve-reserve", None, || {
        two_reservations(|budget| {
            let left = 3 - budget.taken().min(3);
            budget.reserve(left.min(2), 1, u64::MAX)
        });
    });
}

/// A release of one of two, and a reservation of two at once, with a cap of two.
fn release_and_reserve(release: fn(&Budget)) {
    let budget = Arc::new(Budget::new());
    assert_eq!(budget.reserve(2, 2, 2), 2);
    let (here, there) = (Arc::clone(&budget), Arc::clone(&budget));
    let (granted, ()) = race(move || here.reserve(2, 1, 2), move || release(&there));
    assert!(granted <= 1, "granted what somebody holds");
    assert_eq!(budget.taken(), 1 + granted);
}

/// Goal: of a concurrent release and reservation, neither is lost. Method: both at once on a full word.
#[test]
fn releases_and_reservations_add_up() {
    explore("budget/release-reserve", None, || release_and_reserve(|budget| budget.release(1)));
}

/// Mutant: everything is released, and what is kept is reserved again.
#[test]
#[ignore = "mutant"]
fn mutant_release_all_and_take_again() {
    explore("mutant budget/release-reserve", None, || {
        release_and_reserve(|budget| {
            budget.release(2);
            budget.reserve(1, 1, 2);
        });
    });
}
