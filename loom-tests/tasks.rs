//! Commits of picked tasks of unequal sizes: one admission for all, cut off from the end.

use super::scenes::{NOW, config, finish_all, kernel, offer_of, offer_to, update};
use super::{explore, race};
use crate::config::ExecutorGpus;
use crate::kernel::state::admission::ReleaseCounter;
use crate::resources::{Gpus, Mebibytes, MilliCpus};
use crate::{
    Change, Decisions, ExecutorId, Fate, Handler, Kernel, Offer, Picks, Resource, Task, TaskState,
};

/// A cap that admits one of two plans as a whole. No model has a larger one.
const CAP: u64 = 4;

/// Picks tasks of these whole cores. Returns those that were placed and their cores in total.
type Place = fn(&Kernel, &mut Handler, &[u64]) -> (Vec<ExecutorId>, u64);

fn place(kernel: &Kernel, handler: &mut Handler, cores: &[u64]) -> (Vec<ExecutorId>, u64) {
    let mut picks = Picks::new();
    for (cores, tag) in cores.iter().zip(0..) {
        picks.push(0, Task::new(tag, MilliCpus::from_cores(*cores), Mebibytes::new(1)));
    }
    let mut decisions = Decisions::new();
    offer_of("S0", 8, |offers| {
        handler.propose(offers, NOW).commit(&picks, NOW, &mut decisions);
    });
    let seen = kernel.totals().cores;
    assert!(seen <= MilliCpus::from_cores(CAP), "{seen} cores for a moment");
    let tasks: Vec<_> = decisions.accepts().flat_map(|accepted| accepted.tasks()).collect();
    // Cut off from the end, and each task with its own tag and amount.
    for ((tag, task), expected) in tasks.iter().zip(0..) {
        assert_eq!(*tag, expected, "not the beginning of the plan");
        assert_eq!(task.resources.cores, MilliCpus::from_cores(cores[expected as usize]));
    }
    assert_eq!(tasks.len() + decisions.unplaced().len(), cores.len());
    let sum = tasks.iter().map(|(_, task)| task.resources.cores.whole_cores()).sum();
    (tasks.iter().map(|(_, task)| task.id).collect(), sum)
}

/// A plan that is admitted at first as if the caps allowed everything, taken back, and then placed as it should be.
fn place_after_a_try(
    kernel: &Kernel,
    handler: &mut Handler,
    cores: &[u64],
) -> (Vec<ExecutorId>, u64) {
    let core = &*kernel.0;
    let sum = MilliCpus::from_cores(cores.iter().sum());
    while core.admission.commit(core.admission.load(), 2, sum).is_err() {}
    core.admission.release(ReleaseCounter::SHARED, 2, sum);
    place(kernel, handler, cores)
}

/// Two plans at once, of 3 and 1 cores and of 2 and 2, one placed by `place_there`, with a cap of 4.
fn two_plans(place_there: Place) {
    let cap = Some(MilliCpus::from_cores(CAP));
    let kernel = kernel(config().core_cap(cap));
    let (here, there) = (kernel.clone(), kernel.clone());
    let (mut one, mut other) = (kernel.handler(), kernel.handler());
    let (first, second) = race(
        move || place(&here, &mut one, &[3, 1]),
        move || place_there(&there, &mut other, &[2, 2]),
    );
    let placed = first.1 + second.1;
    assert!(placed <= CAP, "{placed} cores");
    assert_eq!(kernel.totals().cores, MilliCpus::from_cores(placed));
    // One of them came first and got everything; then nothing was left for the other.
    assert_eq!(placed, CAP, "a plan was cut off though it fits");
    kernel.check().unwrap();
    let names: Vec<String> =
        first.0.iter().chain(&second.0).map(|id| kernel.executor_name(*id).to_string()).collect();
    finish_all(&kernel, &names);
    assert_eq!(kernel.totals().cores, MilliCpus::ZERO, "another amount was freed than was held");
    kernel.check().unwrap();
}

/// Goal: of two plans of unequal tasks that together exceed the cap, nothing exceeds it, each is cut off from its end,
/// what is cut off leaves nothing behind, and the ends free what the tasks held. Method: both at once; then the sums
/// are checked against the cells, and all end.
#[test]
fn unequal_plans_share_the_cap() {
    explore("tasks/plan-plan", Some(2), || two_plans(place));
}

/// Mutant: tasks are admitted first, and taken back because that may have been too much.
#[test]
#[ignore = "mutant"]
fn mutant_admitted_and_taken_back() {
    explore("mutant tasks/plan-plan", Some(2), || two_plans(place_after_a_try));
}

/// A plan of 2 and 1 cores, placed by `place_here`, while a batch of executors of a core is answered, with a cap of 3
/// cores.
fn plan_and_batch(place_here: Place) {
    let kernel = kernel(config().core_cap(Some(MilliCpus::from_cores(3))));
    let here = kernel.clone();
    let (mut one, mut other) = (kernel.handler(), kernel.handler());
    let (tasks, executors) =
        race(move || place_here(&here, &mut one, &[2, 1]), move || offer_to(&mut other, "S0", 1));
    let cores = tasks.1 + executors.len() as u64;
    assert_eq!(kernel.totals().cores, MilliCpus::from_cores(cores));
    assert!(cores <= 3, "{cores} cores");
    kernel.check().unwrap();
    let mut tagged = kernel.0.executors.iter().filter(|(_, cell)| cell.state().stage.live());
    let is_right = |id: ExecutorId| kernel.task_tag(id).is_some() == tasks.0.contains(&id);
    assert!(
        tagged.all(|(slot, cell)| is_right(ExecutorId { sequence: cell.state().sequence, slot }))
    );
}

/// Goal: tasks and executors of the configured size share one cap, and only tasks have tags. Method: a plan and a batch
/// at once.
#[test]
fn tasks_and_executors_share_the_cap() {
    explore("tasks/plan-batch", Some(2), || plan_and_batch(place));
}

/// Mutant: what was checked before is admitted without a comparison.
#[test]
#[ignore = "mutant"]
fn mutant_added_blindly() {
    explore("mutant tasks/plan-batch", Some(2), || {
        plan_and_batch(|kernel, _, cores| {
            let core = &*kernel.0;
            let left = 3000 - core.admission.load().cores().millis();
            let mut placed = 0;
            for cores in cores.iter().filter(|cores| **cores * 1000 <= left) {
                let cores = MilliCpus::from_cores(*cores);
                while core.admission.commit(core.admission.load(), 1, cores).is_err() {}
                placed += cores.whole_cores();
            }
            (Vec::new(), placed)
        });
    });
}

/// Reports a task running, and returns what changed with the tag that is told.
type Tell = fn(&Kernel, &str) -> (Change, Option<u64>);

/// Places a task of one core, and returns it.
fn place_one(handler: &mut Handler, tag: u64) -> ExecutorId {
    let (mut picks, mut decisions) = (Picks::new(), Decisions::new());
    picks.push(0, Task::new(tag, MilliCpus::from_cores(1), Mebibytes::new(1)));
    offer_of("S0", 1, |offers| {
        handler.propose(offers, NOW).commit(&picks, NOW, &mut decisions);
    });
    decisions.accepts().next().unwrap().executors[0].id
}

/// A task is reported running by `tell`, while it ends and the next task takes its cell.
fn running_and_the_next(tell: Tell) {
    let kernel = kernel(config());
    let mut handler = kernel.handler();
    let first = place_one(&mut handler, 1);
    let name = kernel.executor_name(first).to_string();
    let (here, there) = ((kernel.clone(), name.clone()), kernel.clone());
    let ((change, told), next) = race(
        move || tell(&here.0, &here.1),
        move || {
            let ended = update(&there, &name, TaskState::Finished);
            assert_eq!((ended.change, ended.tag), (Change::Ended(Fate::Finished), Some(1)));
            place_one(&mut handler, 2)
        },
    );
    match change {
        Change::Running => assert_eq!(told, Some(1), "it was alive"),
        // It had ended, or ended meanwhile.
        _ => assert!(matches!(told, None | Some(1)), "{told:?}"),
    }
    assert_eq!(next.slot, first.slot, "another cell");
    assert_eq!((kernel.task_tag(first), kernel.task_tag(next)), (None, Some(2)));
}

/// Goal: an update tells the tag of its own task, whatever happens meanwhile, and the end tells it before the cell has
/// another task. Method: one of each at once.
#[test]
fn the_next_task_leaves_the_tag() {
    explore("tasks/running-next", Some(2), || {
        running_and_the_next(|kernel, name| {
            let outcome = update(kernel, name, TaskState::Running);
            (outcome.change, outcome.tag)
        });
    });
}

/// Mutant: the tag is looked up after the change.
#[test]
#[ignore = "mutant"]
fn mutant_looked_up_afterwards() {
    explore("mutant tasks/running-next", Some(2), || {
        running_and_the_next(|kernel, name| {
            let id = kernel.executor_id(name);
            let change = update(kernel, name, TaskState::Running).change;
            (change, id.and_then(|id| kernel.task_tag(id)))
        });
    });
}

/// Places one gang of unequal tasks of these cores and of as many GPUs. Returns those that were placed.
type PlaceGang = fn(&Kernel, &mut Handler, [u64; 2], u32) -> Vec<ExecutorId>;

fn commit(handler: &mut Handler, picks: &Picks) -> Vec<ExecutorId> {
    let mut decisions = Decisions::new();
    let scalar = |(name, amount)| Resource::scalar(name, amount);
    let resources = [("cpus", 8.0), ("mem", 8.0), ("gpus", 8.0)].map(scalar);
    let offers = [Offer::new("o", "S0", "host", &resources, &[])];
    handler.propose(&offers, NOW).commit(picks, NOW, &mut decisions);
    let placed = decisions.accepts().flat_map(|accepted| accepted.executors);
    placed.map(|executor| executor.id).collect()
}

fn members(cores: [u64; 2], gpus: u32) -> [(u32, Task); 2] {
    cores.map(|cores| {
        let task = Task::new(cores, MilliCpus::from_cores(cores), Mebibytes::new(1));
        (0, Task { gpus: Gpus::new(gpus), ..task })
    })
}

fn place_gang(_: &Kernel, handler: &mut Handler, cores: [u64; 2], gpus: u32) -> Vec<ExecutorId> {
    let mut picks = Picks::new();
    picks.push_gang(&members(cores, gpus));
    commit(handler, &picks)
}

/// Two gangs on two handlers, each of which wants more than half of the cap; the other is placed by `place_there`.
fn two_gangs(place_there: PlaceGang) {
    let cap = Some(MilliCpus::from_cores(CAP));
    let kernel = kernel(config().core_cap(cap));
    let (mut one, mut other) = (kernel.handler(), kernel.handler());
    let (here, there) = (kernel.clone(), kernel.clone());
    let ((first, mut one), second) = race(
        move || (place_there(&here, &mut one, [2, 1], 0), one),
        move || place_there(&there, &mut other, [1, 2], 0),
    );
    let placed = [first.len(), second.len()];
    assert!(matches!(placed, [2, 0] | [0, 2]), "neither is whole, or one is cut: {placed:?}");
    assert_eq!(kernel.totals().cores, MilliCpus::from_cores(3));
    let names: Vec<String> =
        first.iter().chain(&second).map(|id| kernel.executor_name(*id).to_string()).collect();
    finish_all(&kernel, &names);
    // The other's turn.
    assert_eq!(place_there(&kernel, &mut one, [2, 1], 0).len(), 2);
    kernel.check().unwrap();
}

/// Goal: two gangs can't wait for each other: of two that don't fit together one is placed whole, and nothing of the
/// other, which is placed when the first has ended. Method: both at once, on two handlers.
#[test]
fn gangs_hold_nothing_while_they_wait() {
    explore("tasks/gang-gang", Some(2), || two_gangs(place_gang));
}

/// Mutant: each gang takes its members one by one and holds what it has.
#[test]
#[ignore = "mutant"]
fn mutant_members_one_by_one() {
    explore("mutant tasks/gang-gang", Some(2), || {
        let one_by_one: PlaceGang = |_, handler, cores, gpus| {
            let placed = members(cores, gpus).map(|(room, task)| {
                let mut picks = Picks::new();
                picks.push(room, task);
                commit(handler, &picks)
            });
            placed.concat()
        };
        two_gangs(one_by_one);
    });
}

/// A gang of four GPUs, placed by `place_large`, and one of two, with a cap of three.
fn two_gangs_of_gpus(place_large: PlaceGang) {
    let kernel =
        kernel(config().gpu_cap(Gpus::new(3)).executor_gpus(ExecutorGpus::Exactly(Gpus::ZERO)));
    let (mut one, mut other) = (kernel.handler(), kernel.handler());
    let (here, there) = (kernel.clone(), kernel.clone());
    let (large, small) = race(
        move || place_large(&here, &mut one, [1, 1], 2),
        move || place_gang(&there, &mut other, [1, 1], 1),
    );
    assert_eq!((large.len(), small.len()), (0, 2), "the one that fits wasn't placed");
    kernel.check().unwrap();
}

/// Goal: a gang that needs more GPUs than there are doesn't keep one from being placed that has enough. Method: both at
/// once.
#[test]
fn gangs_take_no_gpus_in_vain() {
    explore("tasks/gang-gpus", Some(2), || two_gangs_of_gpus(place_gang));
}

/// Mutant: what there is of GPUs is taken at first, and given back if it isn't enough.
#[test]
#[ignore = "mutant"]
fn mutant_gpus_taken_in_vain() {
    explore("mutant tasks/gang-gpus", Some(2), || {
        two_gangs_of_gpus(|kernel, handler, cores, gpus| {
            let granted = kernel.0.gpus.reserve(4, 1, 3);
            kernel.0.gpus.release(granted);
            place_gang(kernel, handler, cores, gpus)
        });
    });
}
