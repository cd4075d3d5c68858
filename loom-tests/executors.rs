//! An executor's cell: who ends it frees it, once.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use super::explore;
use crate::kernel::executors::{Executor, Hold, Stage, State};
use crate::resources::{Gpus, Mebibytes, MilliCpus};
use crate::status::Fate;
use crate::time::Timestamp;

const HOLD: Hold = Hold {
    agent: 3,
    cores: MilliCpus::from_cores(2),
    memory: Mebibytes::new(512),
    gpus: Gpus::ZERO,
    port: None,
};

fn running() -> Arc<Executor> {
    let executor = Arc::new(Executor::default());
    executor.reserve(7, &HOLD, Timestamp::ORIGIN);
    executor.publish(7);
    executor
}

fn end(executor: &Executor, fate: Fate) -> bool {
    let ended = executor.change(7, |state| {
        state.stage.live().then_some(State { stage: Stage::Vacant, fate, ..state })
    });
    ended.is_ok()
}

/// Goal: of two ends at once (an update and its duplicate, an update and a lost agent) one frees. Method: both; the
/// winners are counted, and the fate is the winner's.
#[test]
fn one_of_two_ends_frees() {
    explore("executors/end-end", None, || {
        let executor = running();
        let other = Arc::clone(&executor);
        let theirs = thread::spawn(move || end(&other, Fate::Failed));
        let ours = end(&executor, Fate::Lost);
        let theirs = theirs.join().unwrap();
        assert!(ours ^ theirs);
        let fate = if ours { Fate::Lost } else { Fate::Failed };
        assert_eq!(executor.state().fate, fate);
    });
}

/// Mutant: look at the state, then store.
#[test]
#[ignore = "mutant"]
fn mutant_look_then_store() {
    explore("mutant executors/end-end", None, || {
        let state = Arc::new(AtomicU64::new(1));
        let end = |state: &AtomicU64| {
            let live = state.load(Ordering::Acquire) == 1;
            if live {
                state.store(0, Ordering::Release);
            }
            live
        };
        let other = Arc::clone(&state);
        let theirs = thread::spawn(move || end(&other));
        let ours = end(&state);
        assert!(ours ^ theirs.join().unwrap(), "freed twice");
    });
}

/// Goal: a return from limbo and the release of an executor given up don't both count it or both not. Method: one
/// thread gives up, one returns, one update ends; the holds released minus those taken again are what the state says.
#[test]
fn giving_up_returning_and_ending_agree() {
    explore("executors/limbo", None, || {
        let executor = running();
        let limbo = |state: State| Some(State { stage: Stage::Limbo, ..state });
        executor.change(7, limbo).unwrap();
        let other = Arc::clone(&executor);
        let given_up = thread::spawn(move || {
            let give_up = |state: State| {
                (state.stage == Stage::Limbo).then_some(State { stage: Stage::Adrift, ..state })
            };
            other.change(7, give_up).is_ok()
        });
        let returned = executor.change(7, |state| {
            (state.stage == Stage::Limbo).then_some(State { stage: Stage::Running, ..state })
        });
        let given_up = given_up.join().unwrap();
        assert!(given_up ^ returned.is_ok());
        assert_eq!(executor.state().stage.counted(), !given_up);
        assert!(end(&executor, Fate::Finished));
        assert_eq!(executor.hold(), HOLD);
    });
}

/// Goal: who sees an executor sees what it holds. Method: a handler publishes while another thread reads.
#[test]
fn holds_are_published_with_the_state() {
    explore("executors/publication", None, || {
        let executor = Arc::new(Executor::default());
        let other = Arc::clone(&executor);
        let handler = thread::spawn(move || {
            other.reserve(7, &HOLD, Timestamp::ORIGIN);
            other.publish(7);
        });
        let state = executor.state();
        if state.stage != Stage::Vacant {
            assert_eq!(executor.hold(), HOLD);
        }
        handler.join().unwrap();
    });
}

/// Mutant: the state is stored with no ordering.
#[test]
#[ignore = "mutant"]
fn mutant_relaxed_publication() {
    explore("mutant executors/publication", None, || {
        let words = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let other = Arc::clone(&words);
        let handler = thread::spawn(move || {
            other.0.store(2000, Ordering::Relaxed);
            other.1.store(1, Ordering::Relaxed);
        });
        if words.1.load(Ordering::Acquire) == 1 {
            assert_eq!(words.0.load(Ordering::Relaxed), 2000);
        }
        handler.join().unwrap();
    });
}
