//! Queues: claims beside claims, ends, guarantees and settings.

use loom::sync::Arc;
use loom::thread;

use super::scenes::{config, finish, kernel, offer, offer_to};
use super::{explore, race};
use crate::config::{Queue, QueueId};
use crate::kernel::state::budget::Budget;
use crate::kernel::state::claim_returns::{ClaimReturns, NoRoom};
use crate::kernel::state::quota::{QuotaWord, Shortage};
use crate::resources::MilliCpus;
use crate::{ConfigBuilder, Kernel};

/// A word and the sum of the footprints.
type Words = (QuotaWord, Budget);
/// Claims two, of at most three.
type Claim = fn(&Words) -> Result<(), Shortage>;

fn claim((word, footprints): &Words) -> Result<(), Shortage> {
    word.claim(2, 3, footprints, u64::MAX).map(drop)
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

/// Goal: two batches in one queue and an end beside them neither exceed its maximum nor lose what is booked. Method: a
/// queue with room for one holds one; a batch is answered while the executor ends and another batch is answered.
#[test]
fn batches_and_an_end_share_a_queue() {
    explore("queues/launch-end-launch", Some(1), || {
        let kernel = kernel(with_queue(1));
        let executor = offer(&kernel, 1).remove(0);
        let (here, there) = (kernel.clone(), kernel.clone());
        let (mut one, mut other) = (kernel.handler(), kernel.handler());
        let (first, second) = race(
            move || {
                let placed = offer_to(&mut one, "S0", 1).len();
                assert!(held(&here) <= 1);
                placed
            },
            move || {
                finish(&there, &executor);
                let placed = offer_to(&mut other, "S0", 1).len();
                assert!(held(&there) <= 1);
                placed
            },
        );
        assert_eq!(first + second, 1, "what was freed is placed once");
        kernel.check().unwrap();
    });
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

/// Goal: if a claim that was seen is given back, one of the two threads requests a revive. Method: a batch that finds a
/// queue full, and one that gives its claim back.
#[test]
fn a_refusal_for_a_claim_is_revived() {
    explore("queues/refuse-return", None, || {
        let words = Arc::new((QuotaWord::default(), Budget::new(), ClaimReturns::default()));
        words.0.claim(2, 2, &words.1, u64::MAX).unwrap();
        let (here, there) = (Arc::clone(&words), Arc::clone(&words));
        let (refused, returned) = race(
            move || {
                let (word, _, returns) = &*here;
                let seen = returns.count();
                (word.load().held() == 2).then(|| returns.refuse(seen))
            },
            move || {
                let (word, footprints, returns) = &*there;
                word.release(2, footprints);
                returns.add()
            },
        );
        assert!(refused != Some(false) || returned, "nobody revives");
    });
}

/// A queue's word, the sum of the footprints, and the claims that were given back.
type QueueWords = (QuotaWord, Budget, ClaimReturns);

fn queue_words() -> Arc<QueueWords> {
    Arc::new((QuotaWord::default(), Budget::new(), ClaimReturns::default()))
}

/// As [`Kernel::set_queue_demand`], a guarantee of two, set by `guarantee`; a claim of two in the same queue, which
/// may find no room; and a batch that needs one of the three that there are, which the footprint of two leaves in any
/// order.
fn refuse_beside_a_guarantee(guarantee: fn(&QueueWords) -> bool) {
    let words = queue_words();
    let (setter, claimer) = (Arc::clone(&words), Arc::clone(&words));
    let setting = thread::spawn(move || guarantee(&setter));
    let claiming = thread::spawn(move || {
        let (word, footprints, returns) = &*claimer;
        word.claim(2, 9, footprints, 3) != Ok(false) && returns.add()
    });
    let (_, footprints, returns) = &*words;
    let seen = returns.count();
    let refused = (footprints.taken() > 2).then(|| returns.refuse(seen));
    let set = setting.join().unwrap();
    let returned = claiming.join().unwrap();
    assert_eq!(footprints.taken(), 2);
    assert!(refused != Some(false) || set || returned, "nobody revives");
}

/// Goal: if a batch is refused for what a queue's guarantee and a claim of that queue have both added to the sum of the
/// footprints, of which one is taken back, somebody requests a revive. Method: the three at once.
#[test]
fn a_refusal_for_a_guarantee_that_is_being_set_is_revived() {
    explore("queues/guarantee-claim-refuse", Some(2), || {
        refuse_beside_a_guarantee(|(word, footprints, returns)| {
            word.guarantee(2, footprints);
            returns.add()
        });
    });
}

/// Mutant: a guarantee that counts no return.
#[test]
#[ignore = "mutant"]
fn mutant_guaranteed_without_a_return() {
    explore("mutant queues/guarantee-claim-refuse", Some(2), || {
        refuse_beside_a_guarantee(|(word, footprints, _)| {
            word.guarantee(2, footprints);
            false
        });
    });
}

/// Goal: an executor that returns isn't refused for good because of a claim that is given back. Method: a queue with
/// room for one; a batch that claims it, and gives it back if it got it, beside an executor that returns.
#[test]
fn a_return_is_not_refused_for_a_claim() {
    explore("queues/claim-return", None, || {
        let words = queue_words();
        let (here, there) = (Arc::clone(&words), Arc::clone(&words));
        let (returned, _) = race(
            move || {
                let (word, footprints, returns) = &*here;
                returns.begin();
                let claimed = returns.claim(|| word.claim(2, 2, footprints, u64::MAX).is_ok());
                returns.end();
                claimed
            },
            move || {
                let (word, footprints, returns) = &*there;
                returns.begin();
                if word.claim(2, 2, footprints, u64::MAX).is_ok() {
                    word.release(2, footprints);
                }
                let revives = returns.add();
                returns.end();
                revives
            },
        );
        assert_ne!(returned, Err(NoRoom::Taken), "killed though there is room");
        let held = if returned.is_ok() { 2 } else { 0 };
        assert_eq!((words.0.load().held(), words.1.taken()), (held, held));
    });
}
