//! Status updates, one by one.

use std::collections::BTreeSet;

use super::counts::{ENDED, ENDED_BY_UPDATER, OWN_COUNTERS, RUNNING, ended};
use super::scenes::{Counts, NOW, Scene, Size, and, config, expected};
use crate::kernel::lines::{LINE, SharedWord, WordAddresses};
use crate::sync::counting::record_writes;
use crate::{IdScheme, StatusUpdate, TaskState, Updater};

/// A kernel with ten executors on as many agents.
fn ten(ids: IdScheme) -> Scene {
    let mut scene = Scene::with_ids(config(), ids);
    scene.warm_up(Size::of(10, 1));
    scene.offer(Size::of(10, 1), NOW);
    scene
}

fn unique() -> IdScheme {
    IdScheme::unique("c", 0).unwrap()
}

/// Goal: the numbers that the benchmark's model uses, and duplicates are free. Method: the life of ten executors, each
/// update of it applied twice.
#[test]
fn an_update_writes_what_it_changes() {
    let scene = ten(unique());
    for id in scene.started() {
        for (state, counts) in [
            (TaskState::Starting, Counts::new()),
            (TaskState::Running, expected(RUNNING)),
            (TaskState::Finished, expected(ENDED)),
        ] {
            let (told, again) = (scene.update(id, state), scene.update(id, state));
            assert_eq!(scene.count(&told), counts, "{state:?}");
            assert_eq!(scene.count(&again), Counts::new(), "{state:?} again");
        }
    }
}

/// Goal: threads that end executors by updaters write no line in common, unless they free cells or share a counter.
/// Method: as many updaters as have one to themselves, and one with the shared counter, end an executor each, on
/// different agents.
#[test]
fn updaters_write_lines_of_their_own() {
    let scene = ten(unique());
    let lines = WordAddresses::of(&scene.kernel, &[]);
    let mut written = BTreeSet::new();
    // As long as the writes are looked at: a dropped updater frees its cells.
    let mut updaters: Vec<Updater> = (0..=OWN_COUNTERS).map(|_| scene.kernel.updater()).collect();
    for (id, updater) in scene.started().into_iter().zip(&mut updaters) {
        let name = scene.kernel.executor_name(id).to_string();
        let update = StatusUpdate::new(&name, TaskState::Finished);
        let writes = record_writes(|| drop(updater.status_update(&update, NOW)));
        assert_eq!(scene.count(&writes), expected(ENDED_BY_UPDATER));
        let own: BTreeSet<usize> = writes.iter().map(|write| write.address / LINE).collect();
        assert!(own.iter().all(|line| written.insert(*line)), "a line of another updater");
        let released = writes.iter().filter(|it| lines.word(it.address) == SharedWord::Released);
        assert_eq!(released.count(), 1);
    }
}

/// Goal: ends that are applied together change the shared sums once per 64 of them, and duplicates change nothing.
/// Method: batches of about that size, with one executor per agent, applied twice.
#[test]
fn updates_applied_together_write_the_sums_once() {
    for size in [1, 2, 63, 64, 65, 100, 128, 200] {
        let mut scene = Scene::new(config());
        scene.warm_up(Size::of(size, 1));
        scene.offer(Size::of(size, 1), NOW);
        let (running, again) =
            (scene.update_all(TaskState::Running), scene.update_all(TaskState::Running));
        assert_eq!(running.len(), size);
        assert!(again.is_empty());
        let (told, again) =
            (scene.update_all(TaskState::Finished), scene.update_all(TaskState::Finished));
        assert_eq!(scene.count(&told), expected(ended(size as u64)), "{size}");
        assert!(again.is_empty());
    }
}

/// Goal: a failure additionally writes the agent's own line, and nothing else. Method: one.
#[test]
fn a_failure_writes_its_agents_line() {
    let scene = ten(unique());
    let writes = scene.update(scene.started()[0], TaskState::Failed);
    // The time of the failure, the time when the agent was seen, and the lock of failure times, all on one line.
    let more = [(SharedWord::Agent, 3, 0)];
    assert_eq!(scene.count(&writes), and(expected(ENDED), &more));
}

/// Goal: unreachable executors are counted, so that ticks needn't search for them. Method: one becomes unreachable and
/// returns, and one ends while it is unreachable.
#[test]
fn unreachable_executors_are_counted() {
    let scene = ten(unique());
    let [one, other] = [scene.started()[0], scene.started()[1]];
    let out = [(SharedWord::Unreachable, 1, 1)];
    // The clock and the stage.
    let gone =
        and(expected(RUNNING), &[(SharedWord::Unreachable, 1, 1), (SharedWord::Executor, 1, 0)]);
    assert_eq!(scene.count(&scene.update(one, TaskState::Unreachable)), gone);
    assert_eq!(scene.count(&scene.update(one, TaskState::Running)), and(expected(RUNNING), &out));
    assert_eq!(scene.count(&scene.update(other, TaskState::Unreachable)), gone);
    assert_eq!(scene.count(&scene.update(other, TaskState::Finished)), and(expected(ENDED), &out));
}

/// Goal: updates of unknown executors are counted, and write nothing else. Method: ids that belong to no executor.
#[test]
fn an_unknown_update_is_counted() {
    let scene = ten(unique());
    let writes = scene.update_named("nobody", TaskState::Running);
    assert_eq!(scene.count(&writes), and(Counts::new(), &[(SharedWord::UnknownUpdates, 1, 1)]));
}

/// Goal: ids without a cell's number cost no lock, and at their end one write to the count of their page. Method: the
/// life of one, each update of it applied twice.
#[test]
fn plain_ids_cost_a_write_at_the_end() {
    let scene = ten(IdScheme::plain());
    let id = scene.started()[0];
    let told =
        |state| [scene.update(id, state), scene.update(id, state)].map(|it| scene.count(&it));
    assert_eq!(told(TaskState::Running), [expected(RUNNING), Counts::new()]);
    let ended = and(expected(ENDED), &[(SharedWord::Numbers, 1, 1)]);
    assert_eq!(told(TaskState::Finished), [ended, Counts::new()]);
}

/// Goal: ends that are applied together are counted together, if their numbers are in the same page. Method: a batch in
/// one page, and one of 300 executors in five runs of at most 64, of which the fourth is in two pages.
#[test]
fn numbers_of_one_page_are_retired_together() {
    let mut scene = Scene::with_ids(config(), IdScheme::plain());
    for (size, runs, pages) in [(40, 1, 1), (300, 6, 2)] {
        scene.offer(Size::of(size, 1), NOW);
        let told = scene.update_all(TaskState::Finished);
        let more = [(SharedWord::Numbers, runs, pages)];
        assert_eq!(scene.count(&told), and(expected(ended(size as u64)), &more), "{size}");
    }
}

/// Goal: asking an executor to end writes its state, and no line more. Method: kill one, twice.
#[test]
fn a_kill_writes_a_state() {
    let scene = ten(unique());
    let id = scene.started()[0];
    let kill = || crate::sync::counting::record_writes(|| drop(scene.kernel.kill_executors([id])));
    let (first, second) = (kill(), kill());
    assert!(first.iter().chain(&second).all(|write| {
        let word = crate::kernel::lines::WordAddresses::of(&scene.kernel, &[]).word(write.address);
        matches!(word, SharedWord::Executor | SharedWord::Agent)
    }));
}
