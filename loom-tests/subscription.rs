//! The subscription word: beginnings against each other and against an end.

use loom::sync::Arc;

use super::{explore, race};
use crate::kernel::subscription::Subscription;

fn two_beginnings(begin: fn(&Subscription) -> u64) {
    let subscription = Arc::new(Subscription::new());
    let (here, there) = (Arc::clone(&subscription), Arc::clone(&subscription));
    let mut epochs: [u64; 2] = race(move || begin(&here), move || begin(&there)).into();
    epochs.sort_unstable();
    assert_eq!(epochs, [1, 2]);
    assert!(subscription.connected() && subscription.epoch() == 2);
}

/// Goal: each subscription has a number of its own. Method: two begin at once.
#[test]
fn each_subscription_has_its_number() {
    explore("subscription/begin-begin", None, || two_beginnings(Subscription::begin));
}

/// Mutant: begin, then look which it is.
#[test]
#[ignore = "mutant"]
fn mutant_begin_then_look() {
    explore("mutant subscription/begin-begin", None, || {
        two_beginnings(|subscription| {
            subscription.begin();
            subscription.epoch()
        });
    });
}

/// Goal: an end takes back no beginning. Method: both at once; whichever is last, the number is the new one.
#[test]
fn an_end_keeps_the_number() {
    explore("subscription/begin-end", None, || {
        let subscription = Arc::new(Subscription::new());
        let (here, there) = (Arc::clone(&subscription), Arc::clone(&subscription));
        let ((), begun) = race(move || here.end(), move || there.begin());
        assert_eq!(begun, 1);
        assert_eq!(subscription.epoch(), 1);
    });
}
