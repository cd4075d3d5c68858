//! Queues: claims beside claims, ends, guarantees and settings.

use loom::sync::Arc;
use loom::thread;

use super::scenes::{config, kernel, offer_to};
use super::{explore, race};
use crate::config::{Queue, QueueId};
use crate::kernel::state::budget::Budget;
use crate::kernel::state::quota::{QuotaWord, Shortage};
use crate::resources::MilliCpus;
use crate::{ConfigBuilder, Kernel};

/// A word and the sum of the footprints.
type Words = (QuotaWord, Budget);
/// Claims two, of at most three.
type Claim = fn(&Words) -> Result<(), Shortage>;

fn claim((word, footprints): &Words) -> Result<(), Shortage> {
    word.claim(2, 3, footprints, u64::MAX)
}

/// Two claims at once, one by `claim_there`; a third thread reads.
fn two_claims(claim_there: Claim) {
    let words = Arc::new((QuotaWord::default(), Budget::new()));
    let (other, observer) = (Arc::clone(&words), Arc::clone(&words));
    let theirs = thread::spawn(move || claim_there(&other).is_ok());
    let seen = thread::spawn(move || observer.0.load().held());
    let ours = claim(&words).is_ok();
    let theirs = theirs.join().unwrap();
    assert!(seen.join().unwrap() <= 3, "more than the maximum for a moment");
    assert!(ours != theirs, "both or none");
    assert_eq!((words.0.load().held(), words.1.taken()), (2, 2));
}

/// Goal: claims keep to the maximum, in any state that another thread can see, and of two that don't both fit one
/// succeeds. Method: both at once, and a third thread that reads.
#[test]
fn claims_keep_to_the_maximum() {
    explore("queues/claim-claim", None, || two_claims(claim));
}

/// Mutant: adds first, and subtracts what was too much.
#[test]
#[ignore = "mutant"]
fn mutant_added_and_undone() {
    explore("mutant queues/claim-claim", None, || {
        two_claims(|(word, footprints)| {
            word.claim(2, u64::MAX, footprints, u64::MAX)?;
            if word.load().held() > 3 {
                word.release(2, footprints);
                return Err(Shortage::Maximum);
            }
            Ok(())
        });
    });
}

fn release_two((word, footprints): &Words) {
    word.release(2, footprints);
}

fn claim_two((word, footprints): &Words) {
    word.claim(2, 9, footprints, u64::MAX).unwrap();
}

/// A queue holds two. It is guaranteed three by `guarantee` while `change` leaves it with `held`.
fn guarantee_and(change: fn(&Words), held: u64, guarantee: fn(&Words)) {
    let words = Arc::new((QuotaWord::default(), Budget::new()));
    claim(&words).unwrap();
    let (here, there) = (Arc::clone(&words), Arc::clone(&words));
    race(move || change(&here), move || guarantee(&there));
    let quota = words.0.load();
    assert_eq!((quota.held(), quota.guaranteed()), (held, 3));
    assert_eq!(words.1.taken(), quota.footprint(), "the footprints drifted");
}

fn guarantee_three((word, footprints): &Words) {
    word.guarantee(3, footprints);
}

/// Goal: the sum of the footprints is exact after a guarantee was set beside a claim or a release. Method: one of each
/// at once.
#[test]
fn footprints_add_up() {
    explore("queues/release-guarantee", None, || guarantee_and(release_two, 0, guarantee_three));
    explore("queues/claim-guarantee", None, || guarantee_and(claim_two, 4, guarantee_three));
}

/// By how much the footprint grows is computed from what is held before.
fn guarantee_in_two_steps((word, footprints): &Words) {
    let held = word.load().held();
    word.guarantee(3, &Budget::new());
    footprints.add(3u64.saturating_sub(held));
}

/// Mutant: a guarantee whose difference is not that of the exchange.
#[test]
#[ignore = "mutant"]
fn mutant_guaranteed_by_an_old_amount() {
    explore("mutant queues/release-guarantee", None, || {
        guarantee_and(release_two, 0, guarantee_in_two_steps);
    });
}

/// Mutant: the same, beside a claim.
#[test]
#[ignore = "mutant"]
fn mutant_guaranteed_before_a_claim() {
    explore("mutant queues/claim-guarantee", None, || {
        guarantee_and(claim_two, 4, guarantee_in_two_steps);
    });
}

/// Executors of one core in a queue with this maximum of cores.
fn with_queue(most: u64) -> ConfigBuilder {
    let queue = Queue::new("q").max_cores(Some(MilliCpus::from_cores(most)));
    config().queue(queue).executor_queue(QueueId::new(1))
}

fn held(kernel: &Kernel) -> u64 {
    kernel.queues()[1].cores.whole_cores()
}

/// Goal: once a lower maximum is set, nothing more is placed in the queue, and a batch that was late leaves nothing
/// booked. Method: a batch beside the setter.
#[test]
fn a_maximum_holds_once_it_is_set() {
    explore("queues/launch-config", Some(2), || {
        let kernel = kernel(with_queue(1));
        let (mut handler, there) = (kernel.handler(), kernel.clone());
        let (placed, counted) = race(
            move || offer_to(&mut handler, "S0", 1).len(),
            move || {
                there.reconfigure(with_queue(0).build().unwrap());
                there.totals().executors
            },
        );
        assert_eq!(kernel.totals().executors, counted, "placed under a maximum not in force");
        assert_eq!(placed as u32, counted);
        assert_eq!(held(&kernel), placed as u64);
        kernel.check().unwrap();
    });
}
