//! Where a framework is told the tag of its task, so that it finds the task without a map of its own.

use offermill::config::UnreachableRule;
use offermill::resources::{ExecutorResources, Mebibytes, MilliCpus};
use offermill::{
    Change, Decisions, Fate, IdScheme, Kernel, Outcome, Picks, Recovered, Scope, StatusUpdate,
    Target, Task, TaskState,
};

use crate::world::{OfferData, Setup, at, lend, secs};

fn kernel(ids: IdScheme) -> Kernel {
    let unreachable = UnreachableRule { release_after: Some(secs(10)), forget_after: secs(99) };
    let setup = Setup { executor_cores: Some(100), memory: 1, unreachable, ..Setup::default() };
    Kernel::new(setup.config(), ids)
}

fn unique() -> IdScheme {
    IdScheme::unique("t", 1).unwrap()
}

/// Places tasks with these tags on S1. Returns their names.
fn place(kernel: &Kernel, tags: &[u64]) -> Vec<String> {
    let mut picks = Picks::new();
    for tag in tags {
        picks.push(0, Task::new(*tag, MilliCpus::from_millis(100 + tag), Mebibytes::new(1)));
    }
    let mut decisions = Decisions::new();
    lend(&[OfferData::new("S1", 640.0, 1000.0)], |offers| {
        kernel.handler().propose(offers, at(0)).commit(&picks, at(0), &mut decisions);
    });
    let placed: Vec<_> = decisions.accepts().flat_map(|it| it.tasks()).collect();
    assert!(placed.iter().map(|(tag, _)| tag).eq(tags), "{} placed", placed.len());
    placed.iter().map(|(_, task)| kernel.executor_name(task.id).to_string()).collect()
}

fn update(kernel: &Kernel, name: &str, state: TaskState) -> (Change, Option<u64>) {
    let Outcome { change, tag, .. } = kernel.status_update(&StatusUpdate::new(name, state), at(1));
    (change, tag)
}

fn tags(targets: &[Target]) -> Vec<Option<u64>> {
    targets.iter().map(|target| target.tag).collect()
}

/// Goal: each outcome of an update tells the tag of the task, as long as it lives, and of those that end it the first.
/// Method: one task through all its changes, by ids that contain the cell and by plain ones.
#[test]
fn outcomes_tell_the_tag() {
    for ids in [unique(), IdScheme::plain()] {
        let kernel = kernel(ids);
        let [name] = &place(&kernel, &[7])[..] else { panic!() };
        for (state, change) in [
            (TaskState::Staging, Change::Nothing),
            (TaskState::Running, Change::Running),
            (TaskState::Running, Change::Nothing),
            (TaskState::Unreachable, Change::Unreachable),
            (TaskState::Running, Change::Returned),
            (TaskState::Unreachable, Change::Unreachable),
        ] {
            assert_eq!(update(&kernel, name, state), (change, Some(7)));
        }
        let ticked = kernel.tick(at(20_000));
        assert_eq!(ticked.given_up[0].target.tag, Some(7));
        assert_eq!(update(&kernel, name, TaskState::Running), (Change::Readmitted, Some(7)));
        assert_eq!(update(&kernel, name, TaskState::Unreachable).1, Some(7));
        assert_eq!(kernel.tick(at(20_000)).given_up.len(), 1);
        kernel.set_executor_limit(Some(0)).unwrap();
        assert_eq!(update(&kernel, name, TaskState::Running), (Change::Refused, Some(7)));
        let ended = (Change::Ended(Fate::Failed), Some(7));
        assert_eq!(update(&kernel, name, TaskState::Failed), ended);
        assert_eq!(update(&kernel, name, TaskState::Failed), (Change::Nothing, None));
        assert_eq!(update(&kernel, name, TaskState::Running), (Change::Nothing, None));
    }
}

/// Goal: ends that are released together tell the tag of each task, and later tasks in their cells have their own.
/// Method: two rounds of 100 tasks end in one batch each, every third by failure, with each update twice.
#[test]
fn batches_tell_each_tag() {
    for ids in [unique(), IdScheme::plain()] {
        let kernel = kernel(ids);
        for round in 0..2 {
            let tags: Vec<u64> = (0..100).map(|tag| round * 1000 + tag).collect();
            let names = place(&kernel, &tags);
            let state = |tag: u64| match tag % 3 {
                0 => TaskState::Failed,
                _ => TaskState::Finished,
            };
            let twice = names.iter().zip(&tags).flat_map(|(name, tag)| {
                let update = StatusUpdate::new(name, state(*tag));
                [update, update]
            });
            let (updates, mut outcomes) = (twice.collect::<Vec<_>>(), Vec::new());
            kernel.status_updates(&updates, at(1), &mut outcomes);
            let told: Vec<_> = outcomes.iter().map(|outcome| outcome.tag).collect();
            assert_eq!(told, tags.iter().flat_map(|tag| [Some(*tag), None]).collect::<Vec<_>>());
            // Failures have excluded the agent.
            kernel.readmit_agent("S1", at(1));
        }
        assert_eq!(kernel.totals().executors, 0);
    }
}

/// Goal: whatever names executors to kill, to reconcile, or that are left after a close, names the tags of tasks; so
/// do snapshots. Method: two tasks and an executor of the configured size, through each of these calls.
#[test]
fn targets_and_reports_tell_the_tag() {
    let kernel = kernel(unique());
    let names = place(&kernel, &[7, 0]);
    let mut decisions = Decisions::new();
    kernel.set_executor_limit(Some(3)).unwrap();
    lend(&[OfferData::new("S1", 0.1, 1.0)], |offers| {
        kernel.handler().resource_offers(offers, at(0), &mut decisions);
    });
    let coarse = decisions.accepts().next().unwrap().executors[0].id;
    let expected = [Some(7), Some(0), None];
    let snapshot = kernel.snapshot(at(1));
    assert_eq!(snapshot.executors.iter().map(|it| it.tag).collect::<Vec<_>>(), expected);
    assert_eq!(tags(&kernel.reconcile(Scope::All, at(9000))), expected);
    assert_eq!(tags(&kernel.agent_lost("S1", at(1))), expected);
    assert_eq!(kernel.executor_lost(&names[0]).unwrap().tag, Some(7));
    assert_eq!(kernel.executor_lost(&kernel.executor_name(coarse).to_string()).unwrap().tag, None);
    let ids = snapshot.executors.iter().map(|executor| executor.id);
    assert_eq!(tags(&kernel.kill_executors(ids)), expected);

    assert_eq!(update(&kernel, &names[1], TaskState::Unreachable).1, Some(0));
    assert_eq!(kernel.tick(at(11_001)).given_up.len(), 1);
    assert_eq!(tags(&kernel.tick(at(111_000)).forgotten), [Some(0)]);

    assert_eq!(tags(&kernel.close()), [Some(7), None]);
    // Its cell is kept, so that the report says how it ended.
    let ended = (Change::Ended(Fate::Finished), Some(7));
    assert_eq!(update(&kernel, &names[0], TaskState::Finished), ended);
    assert_eq!(update(&kernel, &names[0], TaskState::Finished), (Change::Nothing, None));
    let report = kernel.drain(secs(0));
    let drained: Vec<_> = report.executors.iter().map(|it| (it.executor.tag, it.fate)).collect();
    assert_eq!(drained, [(Some(7), Fate::Finished), (None, Fate::Alive)]);
}

/// Goal: an adopted executor is a task if it is said to be one. Method: one of two has a tag; the updates and the
/// reconciliation tell it.
#[test]
fn adopted_tasks_have_their_tags() {
    let kernel = kernel(unique());
    let cores = MilliCpus::from_millis(250);
    let resources = ExecutorResources { cores, ..ExecutorResources::NONE };
    let former = ["old-0", "old-1"].map(|name| Recovered::new(name, "S1", "host", resources));
    let former = [former[0].with_tag(42), former[1]];
    let ids = kernel.adopt(&former, at(0)).unwrap();
    assert_eq!(kernel.task_tag(ids[0].unwrap()), Some(42));
    assert_eq!(kernel.task_tag(ids[1].unwrap()), None);
    assert_eq!(tags(&kernel.reconcile(Scope::InDoubt, at(1))), [Some(42), None]);
    assert_eq!(update(&kernel, "old-0", TaskState::Running), (Change::Running, Some(42)));
    assert_eq!(update(&kernel, "old-0", TaskState::Finished).1, Some(42));
    assert_eq!(update(&kernel, "old-1", TaskState::Finished).1, None);
}
