//! Snapshots: what they call exact was so at one instant.

use loom::thread;

use super::binding::place_late;
use super::scenes::{
    NOW, SWEPT, config, finish, kernel, offer, offer_to, place_and_finish, update,
};
use super::{explore, race};
use crate::kernel::state::executor_state::CellState;
use crate::{Bound, BoundAgent, ExecutorId, Kernel, Phase, TaskState};

/// The executors, if the snapshot is exact.
type Picture = Option<Vec<ExecutorId>>;

/// One executor ends and then two are placed, in cells of their own, while `look` takes a snapshot.
fn snapshot_of_a_change(look: fn(&Kernel) -> Picture) {
    let kernel = kernel(config());
    let first = offer(&kernel, 1).remove(0);
    let first_id = kernel.executor_id(&first).unwrap();
    // A handler prefers the cells that it has used. One in the first one's cell would multiply the executions.
    let mut handler = kernel.handler();
    place_and_finish(&kernel, &mut handler, "S0", 2);
    let (here, there) = (kernel.clone(), kernel);
    let (later, picture) = race(
        move || {
            finish(&here, &first);
            offer_to(&mut handler, "S0", 2)
        },
        move || look(&there),
    );
    assert_eq!(later.len(), 2);
    assert!(later.iter().all(|id| id.slot != first_id.slot), "{later:?}");
    if let Some(mut picture) = picture {
        picture.sort_unstable_by_key(|id| id.sequence);
        let one_instant = picture.is_empty() || picture == [first_id] || picture == later;
        assert!(one_instant, "they were never there together: {picture:?}");
    }
}

/// Goal: an exact snapshot shows executors that existed together. Method: one ends and two are placed while it is
/// taken; what is reused is below. With two preemptions each thread may be stopped once anywhere, which is what a
/// mixture of two instants takes.
#[test]
fn executors_in_a_snapshot_existed_together() {
    explore("snapshot/end-launch", Some(2), || {
        snapshot_of_a_change(|kernel| {
            let snapshot = kernel.snapshot(NOW);
            let shown = snapshot.executors.len();
            assert!(!snapshot.exact || snapshot.totals.executors as usize == shown);
            snapshot.exact.then(|| snapshot.executors.iter().map(|view| view.id).collect())
        });
    });
}

/// Mutant: the rows are compared with the word, but not collected again.
#[test]
#[ignore = "mutant"]
fn mutant_one_collection() {
    explore("mutant snapshot/end-launch", Some(2), || {
        snapshot_of_a_change(|kernel| {
            let live = |(slot, state): (u32, CellState)| {
                let id = ExecutorId { sequence: state.sequence, slot };
                state.stage.counted().then_some(id)
            };
            let cells = kernel.0.executors.iter().map(|(slot, cell)| (slot, cell.state()));
            let rows: Vec<_> = cells.filter_map(live).collect();
            (rows.len() == kernel.totals().executors as usize).then_some(rows)
        });
    });
}

/// An executor on one agent ends and another one, on another agent, gets its cell, while `look` returns the agent's
/// cell of the first one if it is still there.
fn snapshot_of_a_reused_cell(look: fn(&Kernel) -> Option<(ExecutorId, String)>) {
    let kernel = kernel(config());
    // It has pinned its version, so that it has no fence but that of its commit.
    let mut handler = kernel.handler();
    place_and_finish(&kernel, &mut handler, "S1", 1);
    let first = offer(&kernel, 1).remove(0);
    let first_id = kernel.executor_id(&first).unwrap();
    let (here, there) = (kernel.clone(), kernel);
    let (second, seen) = race(
        move || {
            // On a thread of its own: in the models an end has a fence, which the handler's thread must not have.
            thread::spawn(move || finish(&here, &first)).join().unwrap();
            offer_to(&mut handler, "S1", 1).remove(0)
        },
        move || look(&there),
    );
    assert_eq!(second.slot, first_id.slot, "the cell is used again");
    if let Some((id, agent)) = seen {
        assert_eq!(agent, if id == first_id { "S0" } else { "S1" }, "another's hold");
    }
}

/// Goal: an exact snapshot shows each executor's own allocation, not that of the next one in its cell. Method: a cell
/// is reused while the snapshot is taken. Two preemptions, as above.
#[test]
fn a_snapshot_shows_an_executors_own_allocation() {
    explore("snapshot/reuse", Some(2), || {
        snapshot_of_a_reused_cell(|kernel| {
            let snapshot = kernel.snapshot(NOW);
            let view = snapshot.executors.first().filter(|_| snapshot.exact)?;
            Some((view.id, view.agent_id.to_string()))
        });
    });
}

/// Goal: a collection that isn't exact shows each executor's own allocation, too. Method: the same with the two looks
/// alone: loom's SeqCst loads see the newest SeqCst store, so that a load of admission in between would show the end.
#[test]
fn two_looks_show_an_executors_own_allocation() {
    explore("snapshot/looks", Some(2), || {
        snapshot_of_a_reused_cell(|kernel| {
            let (id, agent) = kernel.0.look_twice().pop()?;
            Some((id, kernel.0.agents.id(agent)?.to_string()))
        });
    });
}

/// Mutant: the second load of the state is older than the loads of the allocation.
#[test]
#[ignore = "mutant"]
fn mutant_second_look_unordered() {
    explore("mutant snapshot/reuse", Some(2), || {
        snapshot_of_a_reused_cell(|kernel| {
            let cell = kernel.0.executors.get(0)?;
            let state = cell.state();
            // In the code it comes after the allocation.
            if !state.stage.live() || cell.state() != state {
                return None;
            }
            let agent_id = kernel.0.agents.id(cell.allocation().agent)?;
            Some((ExecutorId { sequence: state.sequence, slot: 0 }, agent_id.to_string()))
        });
    });
}

/// An executor ends, its agent is forgotten, and then `next` runs, while a snapshot is taken.
fn snapshot_of_a_sweep(next: fn(&Kernel)) {
    let kernel = kernel(config());
    let executor = offer(&kernel, 1).remove(0);
    let id = kernel.executor_id(&executor).unwrap();
    let (here, there) = (kernel.clone(), kernel);
    let ((), snapshot) = race(
        move || {
            finish(&here, &executor);
            here.tick(SWEPT);
            next(&here);
        },
        move || there.snapshot(NOW),
    );
    let shown = snapshot.executors.len();
    let counted = snapshot.totals.executors;
    assert!(!snapshot.exact || shown == counted as usize, "exact, and {shown} of {counted} shown");
    for row in snapshot.executors {
        assert_eq!((row.id, &*row.agent_id), (id, "S0"), "another's agent");
    }
}

/// Goal: an exact snapshot contains every executor, even if its agent is just being forgotten. Method: an executor ends
/// and its agent, long unseen, is forgotten while the snapshot is taken.
#[test]
fn no_executor_is_missing_for_a_forgotten_agent() {
    explore("snapshot/sweep", Some(3), || snapshot_of_a_sweep(|_| ()));
}

/// Goal: a snapshot, exact or not, names each executor with its own agent. Method: the same, and another agent gets the
/// forgotten one's cell.
#[test]
fn each_is_named_with_its_own_agent() {
    explore("snapshot/sweep-insert", Some(3), || {
        snapshot_of_a_sweep(|kernel| {
            kernel.0.agents.find_or_insert("S1", "host", SWEPT);
        });
    });
}

/// Goal: an exact snapshot shows phases of one instant. Method: two executors run, one of them unreachable at each
/// moment; they swap while the snapshot is taken.
#[test]
fn phases_in_a_snapshot_are_of_one_instant() {
    explore("snapshot/flap", Some(3), || {
        let kernel = kernel(config());
        let mut both = offer(&kernel, 2);
        let (one, other) = (both.remove(0), both.remove(0));
        update(&kernel, &one, TaskState::Running);
        update(&kernel, &other, TaskState::Unreachable);
        let (here, there) = (kernel.clone(), kernel);
        let ((), snapshot) = race(
            move || {
                update(&here, &one, TaskState::Unreachable);
                update(&here, &other, TaskState::Running);
                update(&here, &other, TaskState::Unreachable);
                update(&here, &one, TaskState::Running);
            },
            move || there.snapshot(NOW),
        );
        let running = snapshot.executors.iter().filter(|row| row.phase == Phase::Running).count();
        assert!(!snapshot.exact || running < 2, "both running, which they never were");
    });
}

/// An executor is bound to an agent, and then another one ends, while a snapshot is taken.
fn snapshot_of_a_binding() {
    let kernel = kernel(config());
    let late = place_late(&kernel);
    let other = offer(&kernel, 1).remove(0);
    let late_id = kernel.executor_id(&late).unwrap();
    let other_id = kernel.executor_id(&other).unwrap();
    let (here, there) = (kernel.clone(), kernel);
    let ((), snapshot) = race(
        move || {
            let bound = here.bind(&late, &BoundAgent::new("S0", "host"), NOW);
            assert!(matches!(bound, Bound::Settled { .. }), "{bound:?}");
            finish(&here, &other);
        },
        move || there.snapshot(NOW),
    );
    let find = |id| snapshot.executors.iter().find(|view| view.id == id);
    let late = find(late_id).expect("it lives all the time");
    assert!(["", "S0"].contains(&&*late.agent_id), "another's agent");
    let was_there = &*late.agent_id == "S0" || find(other_id).is_some();
    assert!(!snapshot.exact || was_there, "not bound, though the other one ended afterwards");
}

/// Goal: an exact snapshot shows an executor that is bound late on its agent if that was before the snapshot's instant,
/// and every snapshot shows it, on its own agent or on none. Method: one is bound and then another one ends while the
/// snapshot is taken.
#[test]
fn bindings_in_a_snapshot_are_of_one_instant() {
    explore("snapshot/bind-end", Some(2), snapshot_of_a_binding);
}
