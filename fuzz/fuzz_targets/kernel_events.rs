//! Histories of events through the whole kernel: whatever happens, in whatever order, it answers as its documentation
//! says, and its accounts agree.
//!
//! The input is a script, read in full whatever it holds: see [`script`]. After each event
//! * the answer is what the reference model of `tests/kernel/reference` worked out beforehand, from its own memory and
//!   without a look at the kernel. So: each offer is answered once; caps, limit, constraint, exclusion, close and
//!   subscription hold for what is placed; pieces are cut from what was offered; ends free once; ids are new; demand,
//!   reconciliation, drain and the ageing of executors and agents follow their rules;
//! * `check()` succeeds, and the accounts equal the model's: executors, cores, and how many are wanted.
//!
//! Now and then, and at the end, snapshot and counters are the model's. At last every executor ends, and then nothing
//! must be counted and no executor be waited for.
//!
//! `cargo run --bin kernel_events -- --print FILE` shows a script as the events that it stands for.

#![cfg_attr(fuzzing, no_main)]

#[path = "../../tests/kernel"]
#[allow(dead_code)]
mod kernel {
    pub(crate) mod history;
    pub(crate) mod reference;
    pub(crate) mod world;
}
#[path = "kernel_events/script.rs"]
mod script;

use offermill::{TaskState, UpdateReason};

// Where these modules look for each other.
use kernel::{history, reference, world};

use history::{Event, Scene, Step, Subject, Whom};
use script::Script;

/// Later events are left aside.
const EVENTS_MAX: usize = 500;
/// The number of events between two full comparisons, which take much longer than an event.
const LOOK_EVERY: u32 = 8;

fn check(data: &[u8]) {
    play(data, |_, _| {});
}

/// Prints each event before it is played: of a script that fails, those up to the failure.
fn show(data: &[u8]) {
    println!("{:?}", Script::new(data).setup);
    let scene = play(data, |scene, step| {
        println!("{}: {:?}", scene.now_after(step), step.event);
    });
    println!("{} executors were placed", scene.model.executors.len());
}

/// Plays a script; `watch` sees each step before it is taken, and the scene before it.
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
