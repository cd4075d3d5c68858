//! The table that `.ci/counting` prints and `benches/README.md` shows.

use std::time::Duration;

use super::scenes::{Counts, NOW, Scene, Size, config};
use crate::kernel::lines::SharedWord;
use crate::sync::counting::Write;
use crate::{Constraint, IdScheme, TaskState};

/// The columns: what all threads write, what several may write, what is a handler's own.
const COLUMNS: [(&str, &[SharedWord]); 8] = [
    ("admission", &[SharedWord::Admission]),
    ("what is released", &[SharedWord::Released]),
    ("sequence", &[SharedWord::Sequence]),
    ("demand", &[SharedWord::Demand]),
    ("a stack of free cells", &[SharedWord::Stack]),
    ("agents' cells", &[SharedWord::Agent]),
    ("executors' cells", &[SharedWord::Executor]),
    ("own counters", &[SharedWord::Own(0)]),
];

/// A number of writes, and of lines if they are fewer.
fn field(counts: &Counts, words: &[SharedWord]) -> String {
    let counts = || words.iter().filter_map(|word| counts.get(word));
    let writes: u64 = counts().map(|count| count.writes).sum();
    let lines: u64 = counts().map(|count| count.lines).sum();
    if writes == lines || words == [SharedWord::Own(0)] {
        writes.to_string()
    } else {
        format!("{writes} on {lines}")
    }
}

fn row(name: &str, scene: &Scene, writes: &[Write]) {
    let counts = scene.count(writes);
    let fields: Vec<String> = COLUMNS.iter().map(|(_, words)| field(&counts, words)).collect();
    let named = |word: &SharedWord| COLUMNS.iter().any(|(_, words)| words.contains(word));
    let rest: Vec<String> = counts
        .iter()
        .filter(|(word, _)| !named(word))
        .map(|(word, count)| format!("{word:?} {}", count.writes))
        .collect();
    println!("counted: | {name} | {} | {} |", fields.join(" | "), rest.join(", "));
}

/// A kernel that has placed and ended as many executors before.
fn warm(size: Size, ids: IdScheme) -> Scene {
    let mut scene = Scene::with_ids(config(), ids);
    scene.warm_up(size);
    scene
}

fn unique() -> IdScheme {
    IdScheme::unique("c", 0).unwrap()
}

/// Goal: the numbers that the other tests assert, in one place. Method: print what they do.
#[test]
fn print() {
    let names = COLUMNS.map(|(name, _)| name).join(" | ");
    println!("counted: | writes of | {names} | others |");
    println!("counted: |---{}", "|---".repeat(COLUMNS.len() + 1) + "|");
    let roomy = Size::of(100, 4);
    let unmet = config().constraint(Constraint::parse("zone:north").unwrap());
    let mut scene = Scene::new(unmet);
    scene.offer(roomy, NOW);
    let writes = scene.offer(roomy, NOW);
    row("100 offers declined: constraint unmet", &scene, &writes);
    let mut scene = Scene::new(config());
    let small = Size { memory: 0.0, ..roomy };
    scene.offer(small, NOW);
    let writes = scene.offer(small, NOW);
    row("100 offers declined: too small", &scene, &writes);
    let mut scene = Scene::new(config().executor_limit(Some(0)));
    let first = scene.offer(roomy, NOW);
    let writes = scene.offer(roomy, NOW);
    row("100 offers declined: a cap reached, the first batch after a call", &scene, &first);
    row("100 offers declined: a cap reached, all others", &scene, &writes);
    for (agents, each, name) in [
        (1, 1, "1 offer, 1 executor"),
        (10, 1, "10 offers, 10 executors"),
        (100, 1, "100 offers, 100 executors"),
        (10, 10, "10 offers, 100 executors"),
    ] {
        let mut scene = warm(Size::of(agents, each), unique());
        let writes = scene.offer(Size::of(agents, each), NOW);
        row(name, &scene, &writes);
    }
    let mut scene = Scene::new(config().capacity_refresh(Duration::MAX));
    let size = Size::of(25, 4);
    scene.warm_up_tasks(size, 100);
    let writes = scene.place(size, 100);
    row("25 offers, 100 tasks (others: their tags)", &scene, &writes);
    let mut scene = warm(Size::of(100, 1), IdScheme::plain());
    let writes = scene.offer(Size::of(100, 1), NOW);
    row("100 offers, 100 executors, plain ids", &scene, &writes);
    for (ids, name) in [(unique(), ""), (IdScheme::plain(), ", plain ids")] {
        let mut scene = warm(Size::of(100, 1), ids);
        scene.offer(Size::of(100, 1), NOW);
        let running = scene.update_all(TaskState::Running);
        row(&format!("100 updates together: running{name}"), &scene, &running);
        let ended = scene.update_all(TaskState::Finished);
        row(&format!("100 updates together: ended{name}"), &scene, &ended);
    }
    for (ids, name) in [(unique(), ""), (IdScheme::plain(), ", plain ids")] {
        let mut scene = warm(Size::of(3, 1), ids);
        scene.offer(Size::of(3, 1), NOW);
        let started = scene.started();
        let told = |state| scene.update(started[0], state);
        row(&format!("an update: running{name}"), &scene, &told(TaskState::Running));
        row(&format!("an update: running, told again{name}"), &scene, &told(TaskState::Running));
        row(&format!("an update: ended{name}"), &scene, &told(TaskState::Finished));
        row(&format!("an update: ended, told again{name}"), &scene, &told(TaskState::Finished));
        let failed = scene.update(started[1], TaskState::Failed);
        row(&format!("an update: failed{name}"), &scene, &failed);
        let by_updater = scene.update_by_updater(started[2], TaskState::Finished);
        row(&format!("an update by an updater: ended{name}"), &scene, &by_updater);
    }
}
