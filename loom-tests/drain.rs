//! Close and drain: no wake-up is lost, and no executor is missing from the report. These models run the whole kernel.

use std::cell::Cell;
use std::time::Duration;

use loom::thread;

use super::scenes::{
    NOW, STILL_LATER, SWEPT, cell, config, finish, finish_all, finish_by_updater, give_up, kernel,
    offer, offer_to, one_given_up, used_handler,
};
use super::{explore, is_explored, race};
use crate::kernel::state::admission::ReleaseCounter;
use crate::kernel::state::executor_state::{CellStage, CellState};
use crate::kernel::state::executors::{Allocation, ExecutorCell};
use crate::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};
use crate::sync::{DEADLINE, Ordering, lock};
use crate::{DrainReport, ExecutorId, Fate, Kernel};

/// A deadline that passes when the model sets it.
const SOMETIME: Duration = Duration::from_secs(1);

fn fates(report: &DrainReport) -> Vec<Fate> {
    report.executors.iter().map(|drained| drained.fate).collect()
}

/// Ends the last executor of a closed kernel as the kernel does, but leaves the wake-up to `wake`.
fn finish_and(kernel: &Kernel, executor: &str, wake: fn(&Kernel)) {
    let (id, cell) = cell(kernel, executor);
    let vacant =
        CellState { fate: Fate::Finished, ..CellState::new(id.sequence, CellStage::Vacant) };
    cell.change(id.sequence, |_| Some(vacant)).unwrap();
    kernel.0.agents.release(cell.allocation().agent, 1);
    kernel.0.admission.release(ReleaseCounter::SHARED, 1, MilliCpus::from_cores(1));
    wake(kernel);
}

fn notify_without_the_lock(kernel: &Kernel) {
    kernel.0.drain.emptied.notify_all();
}

fn notify_one(kernel: &Kernel) {
    let _waiters = lock(&kernel.0.drain.waiters);
    kernel.0.drain.emptied.notify_one();
}

/// The last executor ends by `end` while the kernel is drained.
fn end_and_wait(end: fn(&Kernel, &str)) {
    let kernel = kernel(config());
    let executor = offer(&kernel, 1).remove(0);
    let (here, there) = (kernel.clone(), kernel.clone());
    let ((), report) = race(move || end(&here, &executor), move || there.drain(Duration::MAX));
    assert!(report.drained);
    let seen = fates(&report);
    assert!(seen == [Fate::Finished] || seen.is_empty(), "{seen:?}");
    kernel.check().unwrap();
}

/// Goal: the end of the last executor wakes the waiter. Method: both at once; a lost wake-up is a deadlock.
#[test]
fn the_last_end_wakes_the_waiter() {
    explore("drain/end-wait", None, || end_and_wait(finish));
}

/// Goal: the same if what the executor held is counted apart. Method: an updater ends it.
#[test]
fn the_last_end_by_an_updater_wakes_the_waiter() {
    explore("drain/updater-wait", None, || {
        end_and_wait(finish_by_updater);
    });
}

/// Mutant: the last thread notifies without taking the lock.
#[test]
#[ignore = "mutant"]
fn mutant_notify_without_the_lock() {
    explore("mutant drain/end-wait", Some(3), || {
        end_and_wait(|kernel, executor| finish_and(kernel, executor, notify_without_the_lock));
    });
}

/// Both executors end by `end` while the kernel is drained.
fn last_two_end_and_wait(end: fn(&Kernel, &[String])) {
    let kernel = kernel(config());
    let executors = offer(&kernel, 2);
    let (here, there) = (kernel.clone(), kernel.clone());
    let ((), report) = race(move || end(&here, &executors), move || there.drain(Duration::MAX));
    assert!(report.drained);
    let seen = fates(&report);
    assert!(seen.len() <= 2 && seen.iter().all(|fate| *fate == Fate::Finished), "{report:?}");
    kernel.check().unwrap();
}

/// Goal: a batch that ends the last executors wakes the waiter, and the report says how they ended. Method: both at
/// once.
#[test]
fn a_batch_of_last_ends_wakes_the_waiter() {
    explore("drain/batch-wait", Some(3), || last_two_end_and_wait(finish_all));
}

/// Mutant: the batch checks whether the kernel is closed before it subtracts its executors.
#[test]
#[ignore = "mutant"]
fn mutant_flush_without_waking() {
    explore("mutant drain/batch-wait", Some(3), || {
        last_two_end_and_wait(|kernel, executors| {
            for executor in executors {
                let (id, cell) = cell(kernel, executor);
                let vacant = CellState {
                    fate: Fate::Finished,
                    ..CellState::new(id.sequence, CellStage::Vacant)
                };
                cell.change(id.sequence, |_| Some(vacant)).unwrap();
                kernel.0.agents.release(cell.allocation().agent, 1);
            }
            let closed = kernel.0.admission.load().closed();
            let (counter, cores) = (ReleaseCounter::SHARED, MilliCpus::from_cores(2));
            kernel.0.admission.release(counter, 2, cores);
            if closed && kernel.0.admission.load().executors() == 0 {
                kernel.0.drain.wake();
            }
        });
    });
}

/// Two callers drain while the last executor ends by `end`, in a third thread.
fn two_waiters(end: fn(&Kernel, &str)) {
    let kernel = kernel(config());
    let executor = offer(&kernel, 1).remove(0);
    kernel.close();
    let other = kernel.clone();
    let ended = thread::spawn(move || end(&other, &executor));
    let (here, there) = (kernel.clone(), kernel);
    let (one, two) = race(move || here.drain(Duration::MAX), move || there.drain(Duration::MAX));
    assert_eq!(fates(&one), [Fate::Finished]);
    assert_eq!(fates(&one), fates(&two));
    ended.join().unwrap();
}

/// Goal: two callers get the same report, and both return. Method: both wait while a third thread ends the executor.
#[test]
fn two_callers_agree() {
    explore("drain/wait-wait", Some(3), || two_waiters(finish));
}

/// Mutant: the end wakes only one.
#[test]
#[ignore = "mutant"]
fn mutant_wake_one() {
    explore("mutant drain/wait-wait", Some(3), || {
        two_waiters(|kernel, executor| finish_and(kernel, executor, notify_one));
    });
}

/// Goal: an executor whose commit came before the close is listed, and one that is not admitted is not. Method: a batch
/// and a close at once; then the executor, if any, is among those to be killed and in the report.
#[test]
fn no_executor_is_missing_on_the_list() {
    explore("drain/launch-close", None, || {
        let kernel = kernel(config());
        let (here, there) = (kernel.clone(), kernel.clone());
        let (placed, _) = race(move || offer(&here, 1), move || there.close().len());
        assert_eq!(kernel.close().len(), placed.len());
        placed.iter().for_each(|executor| finish(&kernel, executor));
        let report = kernel.drain(Duration::MAX);
        assert!(report.drained);
        assert_eq!(fates(&report), vec![Fate::Finished; placed.len()]);
        kernel.check().unwrap();
    });
}

/// Mutant: the list contains published executors only, without reserved ones.
#[test]
#[ignore = "mutant"]
fn mutant_list_without_the_reserved() {
    explore("mutant drain/launch-close", None, || {
        let kernel = kernel(config());
        let (here, there) = (kernel.clone(), kernel);
        let (placed, roll) = race(
            move || offer(&here, 1),
            move || {
                there.0.admission.close();
                let cells = there.0.executors.iter().map(|(_, cell)| cell.state());
                cells.filter(|state| state.stage.live()).count()
            },
        );
        assert_eq!(placed.len(), roll, "missing on the roll");
    });
}

/// A handler places an executor, which ends by `end`, while the kernel is drained.
fn late_worker(end: fn(&Kernel, ExecutorId)) {
    let kernel = kernel(config());
    let (here, there) = (kernel.clone(), kernel.clone());
    let mut handler = kernel.handler();
    let (placed, report) = race(
        move || {
            let placed = offer_to(&mut handler, "S0", 1);
            placed.iter().for_each(|executor| end(&here, *executor));
            placed.len()
        },
        move || there.drain(Duration::MAX),
    );
    assert!(report.drained);
    let seen = fates(&report);
    assert!(seen.is_empty() || seen == [Fate::Finished] && placed == 1, "{seen:?}");
    kernel.check().unwrap();
}

/// Goal: a drain waits for an executor that was admitted before the close and is published after it, and no longer.
/// Method: a batch and the end of what it placed, while the kernel is drained.
#[test]
fn a_late_worker_is_waited_for() {
    explore("drain/late-worker", Some(3), || {
        late_worker(|kernel, id| finish(kernel, &kernel.executor_name(id).to_string()));
    });
}

/// Mutant: the end of the late executor notifies without the lock.
#[test]
#[ignore = "mutant"]
fn mutant_late_notify_without_the_lock() {
    explore("mutant drain/late-worker", Some(3), || {
        late_worker(|kernel, id| {
            let name = kernel.executor_name(id).to_string();
            finish_and(kernel, &name, notify_without_the_lock);
        });
    });
}

/// An executor that was given up ends by `end`, and a handler tries to use its cell, while the kernel is closed. All
/// listed executors must be in the report.
fn end_and_close(end: fn(&Kernel, &str)) {
    let (kernel, executor) = one_given_up(config());
    let id = kernel.executor_id(&executor).unwrap();
    let (here, there) = (kernel.clone(), kernel.clone());
    let mut handler = kernel.handler();
    let (placed, roll) = race(
        move || {
            end(&here, &executor);
            offer_to(&mut handler, "S0", 1)
        },
        move || there.close(),
    );
    let name = |id: &ExecutorId| kernel.executor_name(*id).to_string();
    placed.iter().for_each(|id| finish(&kernel, &name(id)));
    let report = kernel.drain(Duration::MAX);
    let reported: Vec<_> = report.executors.iter().map(|drained| drained.executor.id).collect();
    let missing = roll.iter().any(|target| target.id == id) && !reported.contains(&id);
    assert!(!missing, "on the roll, and not in the report");
}

/// Goal: a listed executor whose cell would have been free is in the report. Method: it is forgotten, and a handler
/// tries to claim its cell, while the kernel is closed.
#[test]
fn listed_executors_are_reported() {
    explore("drain/forget-close", Some(3), || {
        end_and_close(|kernel, _| {
            kernel.tick(STILL_LATER);
        });
    });
}

/// Mutant: the thread that ends it loads the word to check whether the kernel is closed.
#[test]
#[ignore = "mutant"]
fn mutant_look_whether_it_is_closed() {
    explore("mutant drain/forget-close", Some(3), || {
        end_and_close(|kernel, executor| {
            let (id, cell) = cell(kernel, executor);
            let gone = |state: CellState| {
                Some(CellState { stage: CellStage::Vacant, fate: Fate::Lost, ..state })
            };
            let _ = cell.change(id.sequence, gone);
            kernel.0.agents.release(cell.allocation().agent, 1);
            if !kernel.totals().closed {
                kernel.0.executors.free(id.slot);
            }
        });
    });
}

thread_local! {
    /// Whether a batch got the cell of the executor that ended.
    static REUSED: Cell<bool> = const { Cell::new(false) };
}

/// An executor that was given up ends by `end`, while a batch is answered and the kernel closed, in three threads. All
/// listed executors must be in the report.
fn end_reuse_and_close(end: fn(&Kernel, &str)) {
    let kernel = kernel(config());
    // The batch is of the handler that placed it: its cell returns to where this handler looks first.
    let mut handler = used_handler(&kernel);
    let id = offer_to(&mut handler, "S0", 1).remove(0);
    let executor = kernel.executor_name(id).to_string();
    give_up(&kernel, &executor);
    let (here, there, third) = (kernel.clone(), kernel.clone(), kernel.clone());
    let ended = thread::spawn(move || end(&third, &executor));
    let (placed, roll) = race(move || offer_to(&mut handler, "S0", 1), move || there.close());
    ended.join().unwrap();
    if placed.iter().any(|new| new.slot == id.slot) {
        REUSED.set(true);
    }
    placed.iter().for_each(|id| finish(&here, &here.executor_name(*id).to_string()));
    let report = kernel.drain(Duration::MAX);
    let on_the_roll = roll.iter().any(|target| target.id == id);
    let reported = report.executors.iter().any(|drained| drained.executor.id == id);
    assert!(reported || !on_the_roll, "on the roll, and not in the report");
}

/// Goal: the cell of an executor that ends after the close is not reused, even by a batch that began before. Method: it
/// is forgotten while a batch is answered and the kernel closed.
#[test]
fn cells_are_kept_after_the_close() {
    explore("drain/reuse-close", Some(2), || {
        end_reuse_and_close(|kernel, _| {
            kernel.tick(STILL_LATER);
        });
    });
    assert!(REUSED.get() || !is_explored("drain/reuse-close"), "the cell was never free in time");
}

/// Mutant: a cell is freed even if the kernel is closed.
#[test]
#[ignore = "mutant"]
fn mutant_cell_freed_after_the_close() {
    explore("mutant drain/reuse-close", Some(2), || {
        end_reuse_and_close(|kernel, executor| {
            let (id, cell) = cell(kernel, executor);
            let gone = |state: CellState| {
                Some(CellState { stage: CellStage::Vacant, fate: Fate::Lost, ..state })
            };
            let _ = cell.change(id.sequence, gone);
            kernel.0.agents.release(cell.allocation().agent, 1);
            kernel.0.admission.is_closed_latest();
            kernel.0.executors.free(id.slot);
        });
    });
}

/// The deadline passes, and the waiters are woken.
fn let_the_deadline_pass(kernel: &Kernel) {
    DEADLINE.store(1, Ordering::Release);
    kernel.0.drain.wake();
}

/// The last executor ends by `end`, the deadline passes, and the kernel is drained, all at once.
fn end_deadline_and_wait(end: fn(&Kernel, &str)) {
    let kernel = kernel(config());
    let executor = offer(&kernel, 1).remove(0);
    kernel.close();
    let other = kernel.clone();
    let passed = thread::spawn(move || let_the_deadline_pass(&other));
    let (here, there) = (kernel.clone(), kernel.clone());
    let name = executor.clone();
    let ((), report) = race(move || end(&here, &name), move || there.drain(SOMETIME));
    let fate = fates(&report);
    assert!(fate == [Fate::Finished] || !report.drained && fate == [Fate::Alive], "{report:?}");
    passed.join().unwrap();
    let again = kernel.drain(SOMETIME);
    assert!(again.drained && fates(&again) == [Fate::Finished]);
    kernel.check().unwrap();
}

/// Goal: a drain returns at its deadline or at the last end, whichever comes first, and reports which executors are
/// left; a later one reports how they ended. Method: both at once.
#[test]
fn a_deadline_ends_the_wait() {
    explore("drain/deadline", Some(3), || end_deadline_and_wait(finish));
}

/// Mutant: an executor is subtracted from the sums before its cell says how it ended.
#[test]
#[ignore = "mutant"]
fn mutant_sums_before_the_cell() {
    explore("mutant drain/deadline", Some(3), || {
        end_deadline_and_wait(|kernel, executor| {
            let (_, cell) = cell(kernel, executor);
            kernel.0.release_allocation(&cell.allocation());
            let id = kernel.executor_id(executor).unwrap();
            let fate = Fate::Finished;
            let ended =
                |state: CellState| Some(CellState { stage: CellStage::Vacant, fate, ..state });
            cell.change(id.sequence, ended).unwrap();
            kernel.0.agents.release(cell.allocation().agent, 1);
        });
    });
}

/// Goal: an executor that ends between the close and the listing is in the report with its own agent, even if that was
/// forgotten by then. Method: the closed bit is set; then the executor ends, its agent is forgotten and another
/// inserted, while the kernel is drained.
#[test]
fn an_end_before_the_list_is_reported() {
    explore("drain/end-sweep", Some(3), || {
        let kernel = kernel(config());
        let executor = offer(&kernel, 1).remove(0);
        let id = kernel.executor_id(&executor).unwrap();
        kernel.0.admission.close();
        let (here, there) = (kernel.clone(), kernel);
        let (_, report) = race(
            move || {
                finish(&here, &executor);
                here.tick(SWEPT);
                here.0.agents.find_or_insert("S1", "host", SWEPT)
            },
            move || there.drain(Duration::MAX),
        );
        assert_eq!(report.executors.len(), 1, "it ended after the close");
        let row = &report.executors[0];
        assert_eq!(
            (row.executor.id, &*row.executor.agent_id, row.fate),
            (id, "S0", Fate::Finished)
        );
    });
}

/// An executor ends by `end`, its agent is forgotten, and the kernel is closed, all at once; then another agent gets
/// the cell. Every executor in the report has its own agent.
pub(super) fn end_across_the_close(end: fn(&Kernel, &str)) {
    let kernel = kernel(config());
    let executor = offer(&kernel, 1).remove(0);
    let (here, there, third) = (kernel.clone(), kernel.clone(), kernel.clone());
    let ended = thread::spawn(move || end(&third, &executor));
    let (_, report) = race(
        move || {
            here.tick(SWEPT);
            here.0.agents.find_or_insert("S1", "host", SWEPT)
        },
        move || there.drain(Duration::MAX),
    );
    ended.join().unwrap();
    for row in &report.executors {
        assert_eq!((&*row.executor.agent_id, row.fate), ("S0", Fate::Finished));
    }
    assert!(report.executors.len() <= 1);
    kernel.check().unwrap();
}

/// Goal: every executor in the report has its own agent, even if that is forgotten before the close and the executor's
/// resources are released after it. Method: all at once.
#[test]
fn an_end_across_the_close_is_named_right() {
    explore("drain/end-sweep-close", Some(2), || end_across_the_close(finish));
}

/// Goal: a drain names each executor with its own agent. Method: an executor has ended before the close, up to the
/// point in `Core::release` where its cell is freed. While the kernel is drained, the cell is freed, and a batch
/// that loaded the admission word before the close claims it for another agent and gives it back.
#[test]
fn a_drain_names_each_with_its_own_agent() {
    explore("drain/reuse-name", Some(3), || {
        let kernel = kernel(config());
        let name = offer(&kernel, 1).remove(0);
        let id = kernel.executor_id(&name).unwrap();
        let other = kernel.0.agents.find_or_insert("S1", "host", NOW).unwrap();
        let allocation = {
            let executor = kernel.0.executors.get(id.slot).unwrap();
            let end =
                |state| Some(CellState { stage: CellStage::Vacant, fate: Fate::Finished, ..state });
            executor.change(id.sequence, end).unwrap();
            executor.allocation()
        };
        // `Core::release`: the kernel is open.
        assert!(!kernel.0.release_allocation(&allocation));
        let (here, there) = (kernel.clone(), kernel.clone());
        let (report, ()) = race(
            move || here.drain(Duration::MAX),
            move || {
                // The rest of `Core::release`.
                there.0.executors.free(id.slot);
                there.0.agents.release(allocation.agent, 1);
                // `commit`, steps 1 and 3, until it finds the kernel closed.
                there.0.agents.reserve(other, 1, NOW).unwrap();
                let mut cells = Vec::new();
                assert!(there.0.executors.claim(1, &mut cells));
                let taken = Allocation {
                    agent: other.index(),
                    resources: ExecutorResources {
                        cores: MilliCpus::from_cores(1),
                        memory: Mebibytes::new(1),
                        gpus: Gpus::ZERO,
                        port: None,
                    },
                };
                let next = ExecutorId { sequence: id.sequence + 1, slot: cells[0] };
                let executor = there.0.executors.get(next.slot).unwrap();
                ExecutorCell::before_reserving();
                executor.reserve(next.sequence, &taken, NOW);
                executor.withdraw(next.sequence);
                there.0.executors.free(next.slot);
                there.0.agents.release(other.index(), 1);
            },
        );
        for row in &report.executors {
            assert_eq!(row.executor.id.sequence, id.sequence, "{row:?}");
            assert_eq!(&*row.executor.agent_id, "S0", "{row:?}");
        }
    });
}
