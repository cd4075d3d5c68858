//! The subscription word: concurrent beginnings and an end.

use loom::sync::Arc;

use super::scenes::{NOW, config, finish, kernel, offer, offer_to};
use super::{explore, race};
use crate::kernel::state::subscription::Subscription;
use crate::{DemandCall, Kernel};

fn two_beginnings(begin: fn(&Subscription) -> u64) {
    let subscription = Arc::new(Subscription::new());
    let (here, there) = (Arc::clone(&subscription), Arc::clone(&subscription));
    let mut epochs: [u64; 2] = race(move || begin(&here), move || begin(&there)).into();
    epochs.sort_unstable();
    assert_eq!(epochs, [1, 2]);
    assert!(subscription.connected() && subscription.epoch() == 2);
}

/// Goal: each subscription has its own number. Method: two begin at once.
#[test]
fn each_subscription_has_its_number() {
    explore("subscription/begin-begin", None, || two_beginnings(Subscription::begin));
}

/// Mutant: begins, then loads the number.
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

/// Goal: an end doesn't undo a beginning. Method: both at once; whichever is last, the number is the new one.
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

/// A subscription begins, by `register`, while a host polls at the limit. The host sends a call only under the
/// subscription that it polled for.
fn poll_and_register(register: fn(&Kernel), poll: fn(&Kernel, u64) -> Option<DemandCall>) {
    let kernel = kernel(config().executor_limit(Some(1)));
    offer(&kernel, 1);
    let (here, there) = (kernel.clone(), kernel.clone());
    let ((subscription, call), ()) = race(
        move || {
            let subscription = here.epoch();
            (subscription, poll(&here, subscription))
        },
        move || register(&there),
    );
    let sent = call == Some(DemandCall::Suppress) && subscription == kernel.epoch();
    assert_eq!(kernel.0.demand.suppressed(), sent, "{call:?} for {subscription}");
}

fn interrupt(kernel: &Kernel) {
    kernel.disconnected();
    kernel.registered();
}

fn poll_for(kernel: &Kernel, subscription: u64) -> Option<DemandCall> {
    kernel.poll_demand_in(subscription, NOW)
}

/// Goal: no call is recorded as sent under a subscription under which it wasn't sent. Method: a poll at the limit while
/// the subscription is interrupted and begins anew; the host drops calls of the former one.
#[test]
fn a_call_belongs_to_one_subscription() {
    explore("subscription/poll-register", Some(3), || poll_and_register(interrupt, poll_for));
}

/// Mutant: the poll is for any subscription.
#[test]
#[ignore = "mutant"]
fn mutant_poll_for_any_subscription() {
    explore("mutant subscription/poll-register", Some(3), || {
        poll_and_register(interrupt, |kernel, _| kernel.poll_demand(NOW));
    });
}

/// Goal: the same if the end of the former subscription was not seen. Method: the same without the interruption.
#[test]
fn a_call_belongs_to_one_of_two_subscriptions() {
    explore("subscription/poll-reregister", Some(3), || {
        poll_and_register(
            |kernel| {
                kernel.registered();
            },
            poll_for,
        );
    });
}

/// Mutant: the calls are forgotten in one step, and the subscription begins in another.
#[test]
#[ignore = "mutant"]
fn mutant_beginning_in_two_steps() {
    explore("mutant subscription/poll-reregister", Some(3), || {
        let register = |kernel: &Kernel| {
            kernel.0.demand.lock().reset();
            kernel.0.subscription.begin();
        };
        poll_and_register(register, poll_for);
    });
}

/// An offer is refused at the limit while a subscription begins, by `register`, and the host polls; then the executor
/// ends.
fn refusal_and_register(register: fn(&Kernel)) {
    let kernel = kernel(config().executor_limit(Some(1)));
    let executor = offer(&kernel, 1).remove(0);
    assert_eq!(kernel.poll_demand(NOW), Some(DemandCall::Suppress));
    let there = kernel.clone();
    let mut handler = kernel.handler();
    let (placed, call) = race(
        move || offer_to(&mut handler, "S0", 1).len(),
        move || {
            register(&there);
            there.poll_demand(NOW)
        },
    );
    // The new subscription was told once, whatever the handler recorded meanwhile.
    assert_eq!((call, kernel.0.demand.suppressed()), (Some(DemandCall::Suppress), true));
    assert_eq!(placed, 0);
    finish(&kernel, &executor);
    assert_eq!(kernel.poll_demand(NOW), Some(DemandCall::Revive));
    assert_eq!(offer(&kernel, 1).len(), 1, "connected");
}

/// Goal: a subscription that begins at the limit is suppressed, whatever handlers record meanwhile, and is revived when
/// there is room. Method: a refusal at the limit, and an interruption and a poll at once.
#[test]
fn a_new_subscription_is_told() {
    explore("subscription/register-refuse", Some(3), || refusal_and_register(interrupt));
}

/// Mutant: the new subscription is mistaken for the old one.
#[test]
#[ignore = "mutant"]
fn mutant_suppression_outlives_its_subscription() {
    explore("mutant subscription/register-refuse", Some(3), || {
        refusal_and_register(|kernel| {
            kernel.disconnected();
            kernel.0.subscription.begin();
        });
    });
}
