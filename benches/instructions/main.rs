//! The main paths, one at a time, for callgrind to count their instructions: `.ci/instructions` runs it.
//!
//! `instructions SCENE` plays a scene and says how many offers, updates and so on it took (`--list` names all).
//! Callgrind counts within [`counted`] alone: agents are met, ids written and executors ended (where that isn't the
//! scene) outside of it. A scene's first lap isn't counted either: what is kept for an agent is then where it stays.
//!
//! Tables are seeded anew in each process, so that a run differs from the next in which keys lie in each other's way.
//! With ten thousand agents that averages out: in five runs no figure moved by a thousandth.
#![expect(clippy::expect_used, reason = "a scene that can't be set up must stop")]

#[path = "../support/mod.rs"]
mod support;

mod capacity;
mod constraints;
mod offers;
#[path = "../tasks/ours.rs"]
#[allow(dead_code)]
mod ours;
#[path = "../tasks/stream.rs"]
#[allow(dead_code)]
mod stream;
mod tasks;
mod updates;
#[cfg(feature = "mesos")]
mod wire;

use std::hint::black_box;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How large a scene is.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) agents: usize,
    /// Laps that are counted.
    pub(crate) laps: usize,
}

/// Large enough that seeds average out.
const COUNTED: Size = Size { agents: 10_000, laps: 2 };
/// Just to see that it runs.
const TRIED: Size = Size { agents: 200, laps: 1 };

/// Plays and returns for how many elements [`counted`] worked.
type Scene = fn(Size) -> u64;

fn scenes() -> Vec<(&'static str, Scene)> {
    let mut scenes = Vec::new();
    scenes.extend(offers::SCENES);
    scenes.extend(tasks::SCENES);
    scenes.extend(updates::SCENES);
    scenes.extend(capacity::SCENES);
    scenes.extend(constraints::SCENES);
    #[cfg(feature = "mesos")]
    scenes.extend(wire::SCENES);
    scenes
}

/// Callgrind counts from the first instruction here to the last, by this function's name.
#[inline(never)]
pub(crate) fn counted<R>(work: impl FnOnce() -> R) -> R {
    black_box(work())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Cargo's own flag, and those of criterion that all benches get.
    let wanted = arguments.iter().find(|argument| !argument.starts_with('-'));
    let scenes = scenes();
    if arguments.iter().any(|argument| argument == "--test") {
        let tried = scenes.iter().filter(|(name, _)| wanted.is_none_or(|part| name.contains(part)));
        for (name, scene) in tried {
            assert!(scene(TRIED) > 0, "{name} did nothing");
            println!("Testing instructions/{name}\nSuccess");
        }
        return ExitCode::SUCCESS;
    }
    if arguments.iter().any(|argument| argument == "--list") {
        scenes.iter().for_each(|(name, _)| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    let for_cargo = arguments.iter().any(|argument| argument == "--bench");
    match scenes.iter().find(|(name, _)| wanted.is_some_and(|wanted| wanted == name)) {
        Some((name, scene)) => println!("instructions: {name} took {}", scene(COUNTED)),
        // A filter for other benches.
        None if wanted.is_none() || for_cargo => {
            println!("instructions: scenes for callgrind to count; run .ci/instructions");
        }
        None => {
            let wanted = wanted.map_or("", String::as_str);
            eprintln!("instructions: there is no scene '{wanted}'; these there are:");
            scenes.iter().for_each(|(name, _)| eprintln!("{name}"));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
