//! Executors that become unreachable and return near a deadline, during ticks: none is given up or forgotten before its
//! current absence has lasted as long as the config says.

use super::scenes::{
    LATER, NOW, STILL_LATER, cell, config, finish, kernel, offer, one_given_up, one_unreachable,
    update,
};
use super::{explore, race};
use crate::kernel::state::executor_state::CellStage;
use crate::{Change, Kernel, StatusUpdate, TaskState, Timestamp};

const fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn tell(kernel: &Kernel, executor: &str, state: TaskState, now: Timestamp) -> Change {
    kernel.status_update(&StatusUpdate::new(executor, state), now).change
}

/// Returns and becomes unreachable again at `now`.
fn flap(kernel: &Kernel, executor: &str, now: Timestamp) {
    tell(kernel, executor, TaskState::Running, now);
    tell(kernel, executor, TaskState::Unreachable, now);
}

/// The same in one batch.
fn flap_in_a_batch(kernel: &Kernel, executor: &str, now: Timestamp) {
    let updates = [TaskState::Running, TaskState::Unreachable]
        .map(|state| StatusUpdate::new(executor, state));
    kernel.status_updates(&updates, now, &mut Vec::new());
}

/// An executor that is unreachable since [`NOW`] returns and is unreachable again from 1999 on by `flap`, during a tick
/// at [`LATER`]. If it is unreachable after that, then since 1999, and it is too early to give it up.
fn flap_and_tick(flap: fn(&Kernel, &str, Timestamp)) {
    let (kernel, executor) = one_unreachable(config());
    let (here, there) = ((kernel.clone(), executor.clone()), kernel.clone());
    race(move || flap(&here.0, &here.1, at(1999)), move || there.tick(LATER));
    // If it was given up before it returned, there was room for it.
    assert_eq!(
        cell(&kernel, &executor).1.state().stage,
        CellStage::Unreachable,
        "given up after 1 ms"
    );
    assert!(kernel.tick(at(2998)).given_up.is_empty(), "given up by the clock of another absence");
    assert_eq!(kernel.tick(at(2999)).given_up.len(), 1, "the clock is lost");
    kernel.check().unwrap();
}

/// Goal: an absence is given up by its own clock alone. Method: an executor returns and leaves at its deadline during a
/// tick.
#[test]
fn a_new_absence_is_not_given_up_for_the_last() {
    explore("expiry/flap-tick", Some(3), || flap_and_tick(flap));
}

/// Goal: the same if the updates come in one batch. Method: the same.
#[test]
fn a_new_absence_in_a_batch_is_not_given_up_for_the_last() {
    explore("expiry/flap-batch", Some(3), || flap_and_tick(flap_in_a_batch));
}

/// Goal: of two ticks at a deadline, one gives the executor up, at a time that stays, and then one forgets it. Method:
/// two ticks at once at either deadline, and one tick just before the second.
#[test]
fn two_ticks_are_as_one() {
    explore("expiry/tick-tick", Some(3), || {
        let (kernel, _) = one_unreachable(config());
        let tick_twice = |now| {
            let (here, there) = (kernel.clone(), kernel.clone());
            let (one, other) = race(move || here.tick(now), move || there.tick(now));
            (one.given_up.len() + other.given_up.len(), one.forgotten.len() + other.forgotten.len())
        };
        assert_eq!(tick_twice(LATER), (1, 0));
        assert_eq!(kernel.tick(at(2999)).forgotten.len(), 0, "forgotten early");
        assert_eq!(tick_twice(STILL_LATER), (0, 1));
        kernel.check().unwrap();
    });
}

/// Goal: if two ticks have different times, one gives up and none forgets early. Method: a tick at the deadline of
/// giving up, and one so late that the executor would be forgotten if the clock of its absence counted for that.
#[test]
fn a_tick_forgets_by_the_clock_that_started_last() {
    explore("expiry/tick-late-tick", Some(3), || {
        let (kernel, _) = one_unreachable(config());
        let (here, there) = (kernel.clone(), kernel.clone());
        let (one, other) = race(move || here.tick(LATER), move || there.tick(at(2500)));
        assert_eq!(one.given_up.len() + other.given_up.len(), 1);
        assert!(one.forgotten.is_empty() && other.forgotten.is_empty());
        let given_up = if one.given_up.len() == 1 { 2000 } else { 2500 };
        assert!(kernel.tick(at(given_up + 999)).forgotten.is_empty(), "forgotten early");
        assert_eq!(kernel.tick(at(3500)).forgotten.len(), 1);
        kernel.check().unwrap();
    });
}

/// Goal: an executor is forgotten by the clock of its current absence. Method: one that was given up returns, becomes
/// unreachable and is given up again while a tick forgets what is due.
#[test]
fn a_new_absence_is_not_forgotten_for_the_last() {
    explore("expiry/flap-forget", Some(2), || {
        let (kernel, executor) = one_given_up(config());
        let (here, there) = ((kernel.clone(), executor.clone()), kernel.clone());
        let (given_up, ticked) = race(
            move || {
                flap(&here.0, &here.1, STILL_LATER);
                here.0.tick(at(4000)).given_up.len() == 1
            },
            move || there.tick(at(3001)),
        );
        assert!(!(given_up && ticked.forgotten.len() == 1), "forgotten by the clock of another");
        kernel.check().unwrap();
    });
}

/// Goal: a late update has no effect on the clock of a later absence. Method: an executor is reported unreachable
/// twice, long after each other, and running in between.
#[test]
fn a_late_report_leaves_a_later_absence_alone() {
    explore("expiry/lose-flap", Some(3), || {
        let kernel = kernel(config());
        let executor = offer(&kernel, 1).remove(0);
        let (here, there) =
            ((kernel.clone(), executor.clone()), (kernel.clone(), executor.clone()));
        let (_, change) = race(
            move || tell(&here.0, &here.1, TaskState::Unreachable, NOW),
            move || {
                tell(&there.0, &there.1, TaskState::Unreachable, at(2000));
                tell(&there.0, &there.1, TaskState::Running, at(2500));
                tell(&there.0, &there.1, TaskState::Unreachable, at(2500))
            },
        );
        if change == Change::Unreachable {
            assert!(kernel.tick(at(3499)).given_up.is_empty(), "given up by the first report");
            assert_eq!(kernel.tick(at(3500)).given_up.len(), 1, "the clock is lost");
        }
        kernel.check().unwrap();
    });
}

/// Goal: an update of an executor that has left its cell has no effect on the clock of the cell's next executor.
/// Method: it ends, and the next one is placed there and becomes unreachable during the update.
#[test]
fn a_late_report_leaves_the_next_executor_alone() {
    explore("expiry/lose-reuse", Some(2), || {
        let kernel = kernel(config());
        let executor = offer(&kernel, 1).remove(0);
        let (here, there) = ((kernel.clone(), executor.clone()), (kernel.clone(), executor));
        race(
            move || tell(&here.0, &here.1, TaskState::Unreachable, NOW),
            move || {
                finish(&there.0, &there.1);
                let next = offer(&there.0, 1).remove(0);
                tell(&there.0, &next, TaskState::Unreachable, at(2500));
            },
        );
        assert!(kernel.tick(at(3499)).given_up.is_empty(), "given up by the clock of another");
        assert_eq!(kernel.tick(at(3500)).given_up.len(), 1, "the clock is lost");
        kernel.check().unwrap();
    });
}

/// Goal: a late tick has no effect on the clocks of the cell's next executor. Method: an executor that is due ends
/// during the tick, and the next one is placed there, becomes unreachable and is given up.
#[test]
fn a_late_tick_leaves_the_next_executor_alone() {
    explore("expiry/tick-reuse", Some(1), || {
        let (kernel, executor) = one_unreachable(config());
        let (here, there) = (kernel.clone(), kernel.clone());
        let (_, given_up) = race(
            move || here.tick(LATER),
            move || {
                finish(&there, &executor);
                let next = offer(&there, 1).remove(0);
                tell(&there, &next, TaskState::Unreachable, at(1500));
                there.tick(at(2500)).given_up.len()
            },
        );
        assert_eq!(given_up, 1);
        assert!(kernel.tick(at(3499)).forgotten.is_empty(), "forgotten by the clock of another");
        assert_eq!(kernel.tick(at(3500)).forgotten.len(), 1, "the clock is lost");
        kernel.check().unwrap();
    });
}

/// Goal: during updates, ticks still check executors that have been unreachable for long. Method: one is due; another
/// becomes unreachable, and ends in another thread, which then ticks.
#[test]
fn unreachable_executors_are_never_counted_too_low() {
    explore("expiry/count", Some(2), || {
        let kernel = kernel(config());
        let mut both = offer(&kernel, 2);
        let (due, other) = (both.remove(0), both.remove(0));
        update(&kernel, &due, TaskState::Unreachable);
        let (here, there) = ((kernel.clone(), other.clone()), (kernel.clone(), other));
        let (_, ticked) = race(
            move || tell(&here.0, &here.1, TaskState::Unreachable, at(1999)),
            move || {
                finish(&there.0, &there.1);
                there.0.tick(LATER)
            },
        );
        assert_eq!(ticked.given_up.len(), 1, "one was due");
        kernel.check().unwrap();
    });
}
