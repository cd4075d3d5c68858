//! An executor's cell: the thread that ends the executor frees it, once.

use loom::sync::Arc;

use super::{explore, race};
use crate::kernel::state::executor_state::{CellStage, CellState};
use crate::kernel::state::executors::{Allocation, ExecutorCell};
use crate::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};
use crate::status::Fate;
use crate::time::Timestamp;

const HOLD: Allocation = Allocation {
    agent: 3,
    resources: ExecutorResources {
        cores: MilliCpus::from_cores(2),
        memory: Mebibytes::new(512),
        gpus: Gpus::ZERO,
        port: None,
    },
};

fn running() -> Arc<ExecutorCell> {
    let executor = Arc::new(ExecutorCell::default());
    executor.reserve(7, &HOLD, Timestamp::ORIGIN);
    executor.publish(7);
    executor
}

fn end(executor: &ExecutorCell, fate: Fate) -> bool {
    executor.end(7, fate).is_ok()
}

fn two_ends(end: fn(&ExecutorCell, Fate) -> bool) {
    let executor = running();
    let (here, there) = (Arc::clone(&executor), Arc::clone(&executor));
    let (lost, failed) = race(move || end(&here, Fate::Lost), move || end(&there, Fate::Failed));
    assert!(lost ^ failed, "freed twice, or never");
    assert_eq!(executor.state().fate, if lost { Fate::Lost } else { Fate::Failed });
}

/// Goal: of two concurrent ends (an update and its duplicate, or an update and a lost agent) one frees. Method: both;
/// the winners are counted, and the fate is the winner's.
#[test]
fn one_of_two_ends_frees() {
    explore("executors/end-end", None, || two_ends(end));
}

/// Mutant: loads the state, then stores the new one.
#[test]
#[ignore = "mutant"]
fn mutant_look_then_store() {
    explore("mutant executors/end-end", None, || {
        two_ends(|executor, fate| {
            let live = executor.state().stage.live();
            if live {
                executor.withdraw(7);
                let _ = executor.change(7, |state| Some(CellState { fate, ..state }));
            }
            live
        });
    });
}

/// An unreachable executor is given up while it returns by `back`, which says whether it did.
fn one_unreachable(back: fn(&ExecutorCell) -> bool) {
    let executor = running();
    executor.change(7, |state| Some(CellState { stage: CellStage::Unreachable, ..state })).unwrap();
    let (here, there) = (Arc::clone(&executor), Arc::clone(&executor));
    let give_up = |state: CellState| {
        (state.stage == CellStage::Unreachable)
            .then_some(CellState { stage: CellStage::GivenUp, ..state })
    };
    let (given_up, returned) = race(move || here.change(7, give_up).is_ok(), move || back(&there));
    assert!(given_up ^ returned);
    assert_eq!(executor.state().stage.counted(), !given_up);
    assert!(end(&executor, Fate::Finished));
    assert_eq!(executor.allocation(), HOLD);
}

/// Goal: a return and the release of an executor that is given up don't both succeed or both fail. Method: one thread
/// gives up, one returns; the state says which came first.
#[test]
fn giving_up_and_returning_agree() {
    explore("executors/give-up-return", None, || {
        one_unreachable(|executor| {
            let back = |state: CellState| {
                (state.stage == CellStage::Unreachable)
                    .then_some(CellState { stage: CellStage::Running, ..state })
            };
            executor.change(7, back).is_ok()
        });
    });
}

/// Mutant: the return checks the stage, and then changes whatever state there is.
#[test]
#[ignore = "mutant"]
fn mutant_return_whatever_is_there() {
    explore("mutant executors/give-up-return", None, || {
        one_unreachable(|executor| {
            let back = |state: CellState| Some(CellState { stage: CellStage::Running, ..state });
            executor.state().stage == CellStage::Unreachable && executor.change(7, back).is_ok()
        });
    });
}

/// A kill sets its flag while `publish` publishes.
fn kill_and_publish(publish: fn(&ExecutorCell)) {
    let executor = Arc::new(ExecutorCell::default());
    executor.reserve(7, &HOLD, Timestamp::ORIGIN);
    let (here, there) = (Arc::clone(&executor), Arc::clone(&executor));
    race(
        move || here.change(7, |state| Some(CellState { asked_to_end: true, ..state })).unwrap(),
        move || publish(&there),
    );
    let expected = CellState { asked_to_end: true, ..CellState::new(7, CellStage::Launching) };
    assert_eq!(executor.state(), expected);
}

/// Goal: a kill during the publication of its executor is kept. Method: both at once.
#[test]
fn publishing_keeps_the_mark_of_a_kill() {
    explore("executors/kill-publish", None, || kill_and_publish(|executor| executor.publish(7)));
}

/// Mutant: the published state is not derived from the current one.
#[test]
#[ignore = "mutant"]
fn mutant_publish_a_new_state() {
    explore("mutant executors/kill-publish", None, || {
        kill_and_publish(|executor| {
            let _ = executor.change(7, |_| Some(CellState::new(7, CellStage::Launching)));
        });
    });
}

/// Another thread reads while `launch` fills a cell.
fn look_at_a_launch(launch: fn(&ExecutorCell)) {
    let executor = Arc::new(ExecutorCell::default());
    let (here, there) = (Arc::clone(&executor), Arc::clone(&executor));
    race(
        move || launch(&here),
        move || {
            if there.state().stage != CellStage::Vacant {
                assert_eq!(there.allocation(), HOLD);
            }
        },
    );
}

/// Goal: a thread that sees an executor sees its allocation. Method: a handler reserves and publishes while another
/// thread reads.
#[test]
fn allocations_are_published_with_the_state() {
    explore("executors/publication", None, || {
        look_at_a_launch(|executor| {
            executor.reserve(7, &HOLD, Timestamp::ORIGIN);
            executor.publish(7);
        });
    });
}

/// Mutant: the state is stored before the allocation.
#[test]
#[ignore = "mutant"]
fn mutant_state_before_the_allocation() {
    explore("mutant executors/publication (state first)", None, || {
        look_at_a_launch(|executor| {
            let nothing = Allocation { resources: ExecutorResources::NONE, ..HOLD };
            executor.reserve(7, &nothing, Timestamp::ORIGIN);
            executor.reserve(7, &HOLD, Timestamp::ORIGIN);
        });
    });
}
