//! Scenes of the whole kernel under shuttle, with five to eight threads, which loom can't search. Each is run in
//! thousands of chosen schedules. Without `--cfg shuttle` this is empty.
//!
//! Shuttle runs all threads as one and switches at each access to shared memory, as the schedule says. It sees every
//! atomic, lock and map of the kernel through the mocks in `src/sync`. Each access counts as `SeqCst`, so it finds
//! races between steps, but no mistakes in orderings; loom finds those.
//!
//! `.ci/shuttle` runs all scenes. For each there is a mistake that is planted in the real code (`tests/planted`), and
//! `.ci/planted` checks that the scene catches it.
//!
//! # Schedules
//!
//! Each scene is run under two schedulers. The random one switches threads anywhere. PCT runs threads by priority and
//! changes the priorities at a few points; its depth (that number of points, plus one) must reach the number of threads
//! that have to be delayed at once, so it is five unless the scene says otherwise. Both follow from a seed:
//! `OFFERMILL_SEED` sets another one, `OFFERMILL_SHUTTLE_TIMES` multiplies the number of schedules,
//! `OFFERMILL_SHUTTLE_SCHEDULES` sets it, and `OFFERMILL_SCENE` selects one scene.
//!
//! # Replaying a failure
//!
//! A failure prints `failing schedule:` and a string of letters and digits in quotes. Pass it to the same test, which
//! then runs that one schedule again, step by step:
//!
//! ```text
//! OFFERMILL_SHUTTLE_REPLAY=910102… .ci/shuttle NAME_OF_THE_TEST
//! ```
#![cfg(shuttle)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agents;
mod capacity;
mod caps;
mod drain;
mod engine;
mod flapping;
mod harness;
mod maps;
mod numbers;
mod policy;
mod snapshots;
mod unreachable;
#[allow(dead_code)]
#[path = "../kernel/world.rs"]
mod world;

use std::panic::catch_unwind;
use std::time::Instant;

use shuttle::scheduler::{PctScheduler, RandomScheduler, ReplayScheduler, Scheduler};
use shuttle::{Config, Runner};

const DEPTH: usize = 5;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn run(name: &str, scheduler: impl Scheduler + 'static, by: &str, scene: fn()) {
    let mut config = Config::new();
    config.stack_size = 1 << 18;
    // Shuttle would warn of orderings that it treats as SeqCst.
    config.silence_warnings = true;
    let started = Instant::now();
    let played = Runner::new(scheduler, config).run(scene);
    let seconds = started.elapsed().as_secs_f64();
    println!("shuttle scene {name}: {by}, {played} schedules in {seconds:.1} s");
}

/// Whether the scene is to be run.
fn is_wanted(name: &str) -> bool {
    std::env::var("OFFERMILL_SCENE").map_or(true, |only| only == name)
}

/// Runs `scene` in `schedules` random schedules and as many of PCT.
fn play(name: &str, schedules: usize, scene: fn()) {
    play_to_depth(name, schedules, DEPTH, scene);
}

fn play_to_depth(name: &str, schedules: usize, depth: usize, scene: fn()) {
    if !is_wanted(name) {
        return;
    }
    if let Ok(schedule) = std::env::var("OFFERMILL_SHUTTLE_REPLAY") {
        return run(name, ReplayScheduler::new_from_encoded(&schedule), "replay", scene);
    }
    let times = number("OFFERMILL_SHUTTLE_TIMES").unwrap_or(1) as usize;
    let schedules = number("OFFERMILL_SHUTTLE_SCHEDULES").map_or(schedules * times, |n| n as usize);
    let seed = number("OFFERMILL_SEED").unwrap_or(20_260_101);
    let random = || {
        let scheduler = RandomScheduler::new_from_seed(seed, schedules);
        run(name, scheduler, &format!("random from seed {seed}"), scene);
    };
    let pct = || {
        let scheduler = PctScheduler::new_from_seed(seed, depth, schedules);
        run(name, scheduler, &format!("PCT of depth {depth} from seed {seed}"), scene);
    };
    if std::env::var("OFFERMILL_PLANTED").is_err() {
        random();
        return pct();
    }
    // With a planted mistake, try which scheduler finds it.
    let caught = [catch_unwind(random).is_err(), catch_unwind(pct).is_err()];
    println!("{name}: caught by random: {}, by PCT: {}", caught[0], caught[1]);
    assert!(caught == [false, false], "caught");
}
