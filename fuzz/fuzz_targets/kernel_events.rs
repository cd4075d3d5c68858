//! Random histories of events, applied to the whole kernel and to a reference model: for every order of events the
//! kernel answers as documented, and its accounts are consistent.
//!
//! The input is a script. Every byte string is a valid script: see [`script`]. After each event
//! * the answer equals that of the reference model in `tests/kernel/reference`, which computes it in advance, from its
//!   own memory and without access to the kernel. This covers: each offer is answered once; caps, limit, constraint,
//!   exclusion, close and subscription hold for all placed executors; pieces are cut from offered resources; an end
//!   frees resources once; ids are new; demand, reconciliation, drain and the expiry of executors and agents follow
//!   their rules;
//! * `check()` succeeds, and the accounts equal the model's: executors, cores, and the number of wanted executors.
//!
//! Periodically and at the end, snapshot and counters are compared with the model. Finally every executor ends; then
//! nothing may be counted, and no executor may be waited for.
//!
//! `cargo run --bin kernel_events -- --print FILE` prints the events of a script.

#![cfg_attr(fuzzing, no_main)]

mod base62;
#[path = "../../tests/kernel"]
#[allow(dead_code)]
mod kernel {
    pub(crate) mod history;
    #[path = "../support/placement/mod.rs"]
    pub(crate) mod placement;
    pub(crate) mod reference;
    pub(crate) mod world;
}
#[path = "kernel_events/script.rs"]
mod script;

use offermill::{TaskState, UpdateReason};

// The modules refer to each other by these names.
use kernel::{history, placement, reference, world};

use history::{Event, Scene, Step, Subject, Whom};
use script::Script;

/// The maximum number of events that are played. Later ones are ignored.
const EVENTS_MAX: usize = 500;
/// The number of events between two full comparisons, which take much longer than an event.
const LOOK_EVERY: u32 = 8;

fn check(data: &[u8]) {
    play(data, |_, _| {});
}

/// Prints each event before it is played. For a script that fails, these are the events up to the failure.
fn show(data: &[u8]) {
    println!("{:?}", Script::new(data).setup);
    let scene = play(data, |scene, step| {
        println!("{}: {:?}", scene.now_after(step), step.event);
    });
    println!("{} executors were placed", scene.model.executors.len());
}

/// Plays a script. Calls `watch` before each step, with the step and the scene.
fn play(data: &[u8], watch: impl Fn(&Scene, &Step)) -> Scene {
    let script = Script::new(data);
    let mut scene = Scene::new(script.setup.clone(), script.plain_ids, u64::MAX);
    let mut subject = Subject::new(&scene);
    let mut taken = 0;
    for line in script.lines().take(EVENTS_MAX) {
        let step = script::step(line, &scene);
        if !scene.admits(&step) {
            continue;
        }
        watch(&scene, &step);
        scene.play(&step);
        subject.apply(&scene, &step.event);
        taken += 1;
        if taken % LOOK_EVERY == 0 {
            subject.expect_like(&scene);
        } else {
            subject.expect_sums_like(&scene);
        }
    }
    subject.expect_like(&scene);
    let killed = |number| Event::Update {
        whom: Whom::Number(number),
        state: TaskState::Killed,
        reason: UpdateReason::Other,
    };
    let living: Vec<u64> = scene.model.living().collect();
    let ends = living.into_iter().map(killed).chain([Event::Drain]);
    for event in ends {
        let step = Step::now(event);
        watch(&scene, &step);
        scene.play(&step);
        subject.apply(&scene, &step.event);
    }
    subject.expect_like(&scene);
    assert_eq!(scene.model.totals(), (0, 0), "and so the kernel's");
    scene
}

offermill_fuzz::harness!(check, show);
