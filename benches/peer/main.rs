//! Spark's own backend for Mesos beside Offermill, on the same offers. `benches/peer/run` is the command that does all:
//!
//! 1. `peer write DIR ONLY` writes each scene as a file: settings, offers, and what happens before the clock runs.
//! 2. `TimeSpark.scala` plays them to Spark's class, and writes how long it took.
//! 3. `peer compare ANSWERS SECONDS ONLY` plays them to the kernel, checks that both launched as many executors, and
//!    prints the table.
//!
//! Without arguments, as `cargo bench` and `cargo test` start it, it plays a small scene of each kind once, to the
//! kernel alone.
#![expect(clippy::expect_used, reason = "a bench that can't be set up must stop")]

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod play;
mod scene;

use std::path::Path;
use std::time::Duration;
use std::{env, process};

use answers::Answers;
use scene::{Kind, Scene};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let arguments = arguments.strip_suffix(&["--bench"]).unwrap_or(&arguments);
    match arguments {
        ["write", folder, only] => Scene::all()
            .filter(|scene| scene.name().contains(only))
            .for_each(|scene| scene.write(Path::new(folder))),
        ["compare", answers, seconds, only] => match compare(Path::new(answers), seconds, only) {
            Ok(table) => print!("{table}"),
            Err(error) => {
                eprintln!("peer: {error}");
                process::exit(1);
            }
        },
        _ => {
            for scene in Scene::small() {
                let launched = play::to_kernel(&scene, Duration::ZERO).launched;
                assert_eq!(launched > 0, scene.kind == Kind::Accepted, "{}", scene.name());
            }
            println!("peer: benches/peer/run compares with Spark's own backend");
        }
    }
}

/// The table of the scenes whose names contain `only`.
fn compare(answers: &Path, seconds: &str, only: &str) -> Result<String, String> {
    let seconds = seconds.parse().ok().and_then(|it| Duration::try_from_secs_f64(it).ok());
    let each = seconds.ok_or("the time a scene must be a number of seconds")?;
    let answers = Answers::read(answers)?;
    let mut rows = vec![answers::HEAD.map(String::from).to_vec()];
    for scene in Scene::all().filter(|scene| scene.name().contains(only)) {
        rows.push(answers.row(&scene, &play::to_kernel(&scene, each))?);
    }
    Ok(support::figures::table(&rows))
}
