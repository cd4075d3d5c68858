//! Suppress and revive: no revive is lost when room appears while the kernel suppresses.

use std::time::Duration;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use super::explore;
use crate::kernel::admission::Admission;
use crate::kernel::demand::{Demand, DemandCall};
use crate::resources::MilliCpus;
use crate::time::Timestamp;

const CORE: MilliCpus = MilliCpus::from_cores(1);
const NOW: Timestamp = Timestamp::from_millis(1000);

fn poll(words: &(Admission, Demand)) -> Option<DemandCall> {
    words.1.poll(|| words.0.load().executors() == 0, Duration::ZERO, NOW)
}

/// Goal: room that appears while a poll suppresses is not forgotten. Method: the word is full; one thread polls, the
/// other releases and polls. In the end there is room, so a further poll must have nothing to say.
#[test]
fn no_revive_is_lost() {
    explore("demand/suppress-release", None, || {
        let words = Arc::new((Admission::new(), Demand::new()));
        words.0.commit(words.0.load(), 1, CORE).unwrap();
        let other = Arc::clone(&words);
        let theirs = thread::spawn(move || {
            other.0.release(1, CORE);
            poll(&other)
        });
        let ours = poll(&words);
        let calls = [ours, theirs.join().unwrap()];
        assert_eq!(poll(&words), None, "room, and nobody said so: {calls:?}");
    });
}

/// Mutant: no fences and no second look after suppressing.
#[test]
#[ignore = "mutant"]
fn mutant_no_second_look() {
    explore("mutant demand/suppress-release", None, || {
        let words = Arc::new((AtomicU64::new(1), AtomicU64::new(0)));
        let poll = |words: &(AtomicU64, AtomicU64)| {
            let suppressed = words.1.load(Ordering::Acquire) == 1;
            if words.0.load(Ordering::Acquire) == 0 {
                if suppressed {
                    words.1.store(0, Ordering::Release);
                }
                suppressed
            } else {
                words.1.store(1, Ordering::Release);
                false
            }
        };
        let other = Arc::clone(&words);
        let theirs = thread::spawn(move || {
            other.0.fetch_sub(1, Ordering::AcqRel);
            poll(&other)
        });
        poll(&words);
        theirs.join().unwrap();
        assert!(!poll(&words), "room, and nobody said so");
    });
}

/// Goal: two polls at once give one revive. Method: both after a suppression, with room.
#[test]
fn two_polls_give_one_revive() {
    explore("demand/poll-poll", None, || {
        let demand = Arc::new(Demand::new());
        assert_eq!(demand.poll(|| false, Duration::ZERO, NOW), Some(DemandCall::Suppress));
        let other = Arc::clone(&demand);
        let theirs = thread::spawn(move || other.poll(|| true, Duration::ZERO, NOW));
        let ours = demand.poll(|| true, Duration::ZERO, NOW);
        assert!(ours.is_some() ^ theirs.join().unwrap().is_some());
    });
}

/// Mutant: look, then store.
#[test]
#[ignore = "mutant"]
fn mutant_revive_in_two_steps() {
    explore("mutant demand/poll-poll", None, || {
        let suppressed = Arc::new(AtomicU64::new(1));
        let poll = |word: &AtomicU64| {
            let due = word.load(Ordering::Acquire) == 1;
            if due {
                word.store(0, Ordering::Release);
            }
            due
        };
        let other = Arc::clone(&suppressed);
        let theirs = thread::spawn(move || poll(&other));
        assert!(poll(&suppressed) ^ theirs.join().unwrap(), "two revives");
    });
}
