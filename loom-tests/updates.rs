//! Pairs of concurrent events of one executor, in the whole kernel: whichever wins, the sums agree with the cells.

use super::scenes::{
    LATER, NOW, STILL_LATER, cell, config, finish, finish_all, kernel, offer, one_given_up,
    one_unreachable, update,
};
use super::{explore, race};
use crate::kernel::lifecycle::release::{Ended, Release, ReleaseBatch};
use crate::kernel::state::executor_state::{CellStage, CellState};
use crate::kernel::state::executors::Allocation;
use crate::resources::{ExecutorResources, MilliCpus};
use crate::{Change, Fate, Kernel, Outcome, StatusUpdate, TaskState};

/// Whether an unreachable executor is back, perhaps after it was given up.
fn is_back(change: Change) -> bool {
    matches!(change, Change::Returned | Change::Readmitted)
}

/// Two ends of one executor at once; `end` makes the second and returns whether it freed.
fn two_ends(end: fn(&Kernel, &str) -> bool) {
    let kernel = kernel(config());
    let executor = offer(&kernel, 1).remove(0);
    let (here, there) = ((kernel.clone(), executor.clone()), (kernel.clone(), executor));
    let (first, second) = race(
        move || update(&here.0, &here.1, TaskState::Failed).freed.is_some(),
        move || end(&there.0, &there.1),
    );
    assert!(first ^ second, "freed twice, or never");
    kernel.check().unwrap();
}

/// Goal: of an update and its duplicate, one frees, and a failure counts once. Method: both at once; two failures would
/// exclude the agent.
#[test]
fn a_duplicate_frees_nothing() {
    explore("updates/end-end", Some(4), || {
        two_ends(|kernel, executor| {
            let outcome = update(kernel, executor, TaskState::Failed);
            assert_eq!(outcome.excluded, None);
            assert_eq!(offer(kernel, 1).len(), 1, "excluded");
            outcome.freed.is_some()
        });
    });
}

/// Mutant: the thread checks the executor's state, and frees it without having won the transition.
#[test]
#[ignore = "mutant"]
fn mutant_free_without_winning() {
    explore("mutant updates/end-end", Some(4), || {
        two_ends(|kernel, executor| {
            let (id, cell) = cell(kernel, executor);
            let state = cell.state();
            if !state.stage.live() {
                return false;
            }
            let _ = cell
                .change(id.sequence, |state| Some(CellState { stage: CellStage::Vacant, ..state }));
            kernel.0.vacate(id, cell, state);
            true
        });
    });
}

/// Two executors end in one batch, made by `batch`, while one of them is ended by another thread, too.
fn two_ends_and_one(batch: fn(&Kernel, &[String])) {
    let kernel = kernel(config());
    let executors = offer(&kernel, 2);
    let (here, there) = ((kernel.clone(), executors.clone()), (kernel.clone(), executors));
    race(move || batch(&here.0, &here.1), move || finish(&there.0, &there.1[1]));
    assert_eq!(kernel.totals().executors, 0);
    let mut again: Vec<u32> =
        offer(&kernel, 2).iter().map(|name| cell(&kernel, name).0.slot).collect();
    again.sort_unstable();
    assert_eq!(again, [0, 1], "a cell was freed twice, or never");
    kernel.check().unwrap();
}

/// Goal: an executor that ends in a batch and elsewhere at once is subtracted once, and its cell is freed once. Method:
/// two ends in a batch, one of them elsewhere, too.
#[test]
fn a_batch_frees_what_it_ended() {
    explore("updates/batch-end", None, || two_ends_and_one(finish_all));
}

/// Mutant: the batch checks all its executors first, and then ends those that lived then.
#[test]
#[ignore = "mutant"]
fn mutant_write_off_what_was_seen() {
    explore("mutant updates/batch-end", None, || {
        two_ends_and_one(|kernel, executors| {
            let mut gone = ReleaseBatch::<2>::new();
            let found: Vec<_> = executors.iter().map(|name| cell(kernel, name)).collect();
            let seen: Vec<CellState> = found.iter().map(|(_, cell)| cell.state()).collect();
            for ((id, cell), state) in found.into_iter().zip(seen) {
                if state.stage.live() {
                    let vacant = |state| Some(CellState { stage: CellStage::Vacant, ..state });
                    let _ = cell.change(id.sequence, vacant);
                    let allocation = cell.ended_allocation(id.sequence);
                    gone.release(&kernel.0, Ended::alone(id, cell, state.into(), allocation));
                }
            }
            gone.flush(&kernel.0);
        });
    });
}

/// Two executors end one by one, by `ends`, while another thread places one.
fn ends_and_placement(ends: fn(&Kernel, &[String])) {
    let kernel = kernel(config());
    let executors = offer(&kernel, 2);
    let (here, there) = ((kernel.clone(), executors), kernel.clone());
    let ((), placed) = race(move || ends(&here.0, &here.1), move || offer(&there, 1));
    assert_eq!(kernel.totals().executors, placed.len() as u32);
    let live = placed.into_iter().chain(offer(&kernel, 2));
    let mut cells: Vec<u32> = live.map(|name| cell(&kernel, &name).0.slot).collect();
    let executors = cells.len();
    cells.sort_unstable();
    cells.dedup();
    assert_eq!(cells.len(), executors, "two executors in one cell");
    kernel.check().unwrap();
}

/// Goal: an updater frees the cells of executors that it ended once, together, after what they held. Method: it ends as
/// many as it frees at a time, while a handler claims cells.
#[test]
fn an_updater_frees_what_it_ended() {
    explore("updates/updater-place", Some(4), || {
        ends_and_placement(|kernel, executors| {
            let mut updater = kernel.updater();
            for executor in executors {
                let outcome =
                    updater.status_update(&StatusUpdate::new(executor, TaskState::Finished), NOW);
                assert_eq!(outcome.change, Change::Ended(Fate::Finished));
            }
        });
    });
}

/// Mutant: the cells are freed with the ends, and once more together.
#[test]
#[ignore = "mutant"]
fn mutant_free_at_once_and_later() {
    explore("mutant updates/updater-place", Some(4), || {
        ends_and_placement(|kernel, executors| {
            let slots = executors.iter().map(|executor| cell(kernel, executor).0.slot);
            let slots: Vec<u32> = slots.collect();
            for executor in executors {
                finish(kernel, executor);
            }
            kernel.0.executors.free_all(&slots);
        });
    });
}

/// An executor ends while `lose` reports a loss.
fn end_and_loss(lose: fn(&Kernel, &str)) {
    let kernel = kernel(config());
    let executor = offer(&kernel, 1).remove(0);
    let (here, there) = ((kernel.clone(), executor.clone()), (kernel.clone(), executor.clone()));
    let (ended, ()) = race(
        move || update(&here.0, &here.1, TaskState::Finished).change,
        move || lose(&there.0, &there.1),
    );
    assert_eq!(ended, Change::Ended(Fate::Finished));
    assert_eq!(cell(&kernel, &executor).1.state().stage, CellStage::Vacant);
    kernel.check().unwrap();
}

/// Goal: a lost agent doesn't revive an executor that ended. Method: the end and the loss at once.
#[test]
fn a_lost_agent_revives_no_executor() {
    explore("updates/end-lost", None, || {
        end_and_loss(|kernel, _| {
            kernel.agent_lost("S0", NOW);
        });
    });
}

/// Mutant: the flag is set in the state that was seen, not in the current one.
#[test]
#[ignore = "mutant"]
fn mutant_mark_on_an_old_state() {
    explore("mutant updates/end-lost", None, || {
        end_and_loss(|kernel, executor| {
            let (id, cell) = cell(kernel, executor);
            let seen = cell.state();
            if seen.stage.live() {
                let _ = cell.change(id.sequence, |_| Some(CellState { doubtful: true, ..seen }));
            }
        });
    });
}

/// An executor that was launched at [`NOW`] becomes unreachable at [`LATER`] by `lose`, during a tick; it is too early
/// to give it up.
fn loss_and_tick(lose: fn(&Kernel, &str)) {
    let kernel = kernel(config());
    let executor = offer(&kernel, 1).remove(0);
    let (here, there) = (kernel.clone(), kernel.clone());
    let ((), ticked) = race(move || lose(&here, &executor), move || there.tick(LATER));
    assert!(ticked.given_up.is_empty(), "given up by an old clock");
    assert_eq!(kernel.totals().executors, 1);
    kernel.check().unwrap();
}

/// Goal: a thread that sees that an executor is unreachable sees since when. Method: it becomes unreachable during a
/// tick.
#[test]
fn no_executor_is_given_up_by_an_old_clock() {
    explore("updates/lose-tick", None, || {
        loss_and_tick(|kernel, executor| {
            kernel.status_update(&StatusUpdate::new(executor, TaskState::Unreachable), LATER);
        });
    });
}

/// An executor returns while `give_up` gives it up.
fn return_and_give_up(give_up: fn(&Kernel, &str)) {
    let (kernel, executor) = one_unreachable(config());
    let (here, there) = ((kernel.clone(), executor.clone()), (kernel.clone(), executor.clone()));
    let (returned, ()) = race(
        move || update(&here.0, &here.1, TaskState::Running).change,
        move || give_up(&there.0, &there.1),
    );
    assert!(is_back(returned), "{returned:?}");
    assert_eq!(cell(&kernel, &executor).1.state().stage, CellStage::Running);
    assert_eq!(kernel.totals().executors, 1);
    kernel.check().unwrap();
}

/// Goal: an executor that returns while it is given up is counted in the end, once. Method: both at once.
#[test]
fn an_executor_that_returns_is_counted() {
    explore("updates/give_up-return", None, || {
        return_and_give_up(|kernel, _| {
            kernel.tick(LATER);
        });
    });
}

/// Mutant: giving up checks first, and then moves the executor whatever its state.
#[test]
#[ignore = "mutant"]
fn mutant_give_up_whatever_is_there() {
    explore("mutant updates/give_up-return", None, || {
        return_and_give_up(|kernel, executor| {
            let (id, cell) = cell(kernel, executor);
            if cell.state().stage == CellStage::Unreachable {
                let allocation = cell.allocation();
                let _ = cell.change(id.sequence, |state| {
                    Some(CellState { stage: CellStage::GivenUp, ..state })
                });
                kernel.0.release_allocation(&allocation);
            }
        });
    });
}

/// An executor ends while `give_up` gives it up; if its end comes later, another one gets its cell. The end is made in
/// the words alone: the kernel's own would read the allocation once more, and loom compares accesses only with the last
/// one.
fn reuse_and_give_up(give_up: fn(&Kernel, &str)) {
    let (kernel, executor) = one_unreachable(config());
    let (here, there) = ((kernel.clone(), executor.clone()), (kernel.clone(), executor));
    let allocation = cell(&kernel, &here.1).1.allocation();
    let end = move || {
        let (id, cell) = cell(&here.0, &here.1);
        let (before, _) = cell
            .change(id.sequence, |state| Some(CellState { stage: CellStage::Vacant, ..state }))
            .unwrap();
        if before.stage.counted() {
            here.0.0.release_allocation(&allocation);
        } else {
            let cores = MilliCpus::from_cores(2);
            let resources = ExecutorResources { cores, ..allocation.resources };
            let larger = Allocation { resources, ..allocation };
            cell.reserve(id.sequence + 1, &larger, NOW);
        }
    };
    race(end, move || give_up(&there.0, &there.1));
    let totals = kernel.totals();
    assert_eq!((totals.executors, totals.cores), (0, MilliCpus::ZERO));
}

/// Goal: the allocation that is subtracted is that of the executor that was given up, even if its cell is another's by
/// then. Method: its cell is reused for a larger one at the same time.
#[test]
fn giving_up_subtracts_the_counted_allocation() {
    explore("updates/give_up-reuse", None, || {
        reuse_and_give_up(|kernel, _| {
            kernel.tick(LATER);
        });
    });
}

/// Mutant: the allocation is read after the executor was given up.
#[test]
#[ignore = "mutant"]
fn mutant_allocation_read_too_late() {
    explore("mutant updates/give_up-reuse", None, || {
        reuse_and_give_up(|kernel, executor| {
            let (id, cell) = cell(kernel, executor);
            let given_up = cell.change(id.sequence, |state| {
                (state.stage == CellStage::Unreachable)
                    .then_some(CellState { stage: CellStage::GivenUp, ..state })
            });
            if given_up.is_ok() {
                kernel.0.release_allocation(&cell.allocation());
            }
        });
    });
}

/// An executor returns that was given up, while `forget` forgets it and returns whether it did.
fn return_and_forget(forget: fn(&Kernel, &str) -> bool) {
    let (kernel, executor) = one_given_up(config());
    let (here, there) = ((kernel.clone(), executor.clone()), (kernel.clone(), executor));
    let (returned, forgotten) = race(
        move || update(&here.0, &here.1, TaskState::Running),
        move || forget(&there.0, &there.1),
    );
    let Outcome { change, kill, .. } = returned;
    let returned = is_back(change);
    assert!(returned ^ forgotten, "{change:?}");
    assert_eq!(kernel.totals().executors, u32::from(returned));
    assert!(returned || kill || change == Change::Nothing);
    kernel.check().unwrap();
}

/// Goal: an executor that was given up returns or is forgotten, never both. Method: both at once.
#[test]
fn forgotten_executors_do_not_return() {
    explore("updates/forget-return", None, || {
        return_and_forget(|kernel, _| kernel.tick(STILL_LATER).forgotten.len() == 1);
    });
}

/// Mutant: forgetting checks first, and then ends the executor whatever its state.
#[test]
#[ignore = "mutant"]
fn mutant_forget_whatever_is_there() {
    explore("mutant updates/forget-return", None, || {
        return_and_forget(|kernel, executor| {
            let (id, cell) = cell(kernel, executor);
            if cell.state().stage != CellStage::GivenUp {
                return false;
            }
            let gone = |state: CellState| {
                Some(CellState { stage: CellStage::Vacant, fate: Fate::Lost, ..state })
            };
            let (before, _) = cell.change(id.sequence, gone).unwrap();
            kernel.0.vacate(id, cell, before);
            true
        });
    });
}

/// An executor that was given up returns, in two updates at once, of which `again` makes the second. There is room for
/// one.
fn two_returns(again: fn(&Kernel, &str) -> Outcome) {
    let (kernel, executor) = one_given_up(config().executor_limit(Some(1)));
    let (here, there) = ((kernel.clone(), executor.clone()), (kernel.clone(), executor.clone()));
    let outcomes: [Outcome; 2] = race(
        move || update(&here.0, &here.1, TaskState::Running),
        move || again(&there.0, &there.1),
    )
    .into();
    let returned = outcomes.iter().filter(|outcome| is_back(outcome.change)).count();
    let killed = outcomes.iter().any(|outcome| outcome.kill);
    let running = cell(&kernel, &executor).1.state().stage == CellStage::Running;
    assert_eq!(kernel.totals().executors, u32::from(running));
    assert!(returned == usize::from(running) && killed != running, "{outcomes:?}");
    kernel.check().unwrap();
}

/// Goal: two updates of one return count it once, and neither has the executor killed because the other used the last
/// room. Method: both at once.
#[test]
fn two_reports_of_a_return_agree() {
    explore("updates/return-return", None, || {
        two_returns(|kernel, executor| update(kernel, executor, TaskState::Running));
    });
}

/// Mutant: a thread that finds no room refuses, without checking whether the executor's own return used it.
#[test]
#[ignore = "mutant"]
fn mutant_refuse_without_a_second_look() {
    explore("mutant updates/return-return", None, || {
        two_returns(|kernel, executor| {
            let full = kernel.totals().executors == 1;
            let one_given_up = cell(kernel, executor).1.state().stage == CellStage::GivenUp;
            let mut outcome = update(kernel, executor, TaskState::Running);
            outcome.kill |= full && one_given_up;
            outcome
        });
    });
}

/// An executor that was given up returns, while the kernel closes; `close` returns the number of executors then.
fn return_and_close(close: fn(&Kernel) -> u32) {
    let (kernel, executor) = one_given_up(config());
    let (here, there) = (kernel.clone(), kernel.clone());
    let (returned, after_close) =
        race(move || update(&here, &executor, TaskState::Running).change, move || close(&there));
    assert_eq!(u32::from(is_back(returned)), after_close);
    assert_eq!(kernel.totals().executors, after_close);
    kernel.check().unwrap();
}

/// Goal: no executor is counted again once the kernel is closed. Method: a return and the close at once; the count
/// after the close bounds that at the end.
#[test]
fn no_executor_returns_after_the_close() {
    explore("updates/return-close", None, || {
        return_and_close(|kernel| {
            kernel.close();
            kernel.totals().executors
        });
    });
}

/// Mutant: the sums are read before the kernel is closed.
#[test]
#[ignore = "mutant"]
fn mutant_close_in_two_steps() {
    explore("mutant updates/return-close", None, || {
        return_and_close(|kernel| {
            let executors = kernel.totals().executors;
            kernel.close();
            executors
        });
    });
}
