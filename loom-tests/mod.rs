//! Loom models of the kernel: every interleaving that C11 allows, in small scenes with the real words.
//!
//! For each model there is a known mistake in the real code that loom must find with it; a model that misses its
//! mistake proves nothing. The mistake is either planted (a patch in `tests/planted` that names the model; see
//! `.ci/planted`), or it is a mutant: the same scene, in which the real words are misused. `.ci/loom` runs all models
//! and mutants, prints bounds and executions, and fails if a model ran none, a mutant was not caught, or a model has
//! neither.
//!
//! Scenes are bounded: two or three threads, one or two operations each. Mutants that deadlock abort the process, so
//! every mutant runs in its own process (see `.ci/loom`). A mutant is an ignored test that must fail.

#![allow(clippy::unwrap_used)]

mod admission;
mod adoption;
mod agents;
mod binding;
mod budget;
mod capacity;
mod commit;
mod demand;
mod drain;
mod drain_future;
mod ended_counts;
mod executors;
mod expiry;
mod failures;
mod hosts;
mod locality;
mod numbers;
mod policy;
mod queues;
mod scenes;
mod seqlock;
mod slab;
mod snapshot;
mod subscription;
mod tasks;
mod updates;

use std::cell::Cell;
use std::time::Instant;

use loom::thread;

// Loom runs all threads of a model on the thread of its test: models that run at the same time don't meet here.
thread_local! {
    static EXECUTIONS: Cell<usize> = const { Cell::new(0) };
    /// Whether [`race`] was called.
    static RACED: Cell<bool> = const { Cell::new(false) };
    /// Whether [`race`] swaps the threads.
    static SWAPPED: Cell<bool> = const { Cell::new(false) };
}

/// Explores `scene` with a preemption bound of `bound` (none is unbounded) and prints executions and seconds.
/// `LOOM_MAX_PREEMPTIONS` is ignored: the bound is part of the model. If `OFFERMILL_MODEL` names another model, this
/// returns at once.
fn explore(name: &str, bound: Option<usize>, scene: fn()) {
    if !is_explored(name) {
        return;
    }
    let began = Instant::now();
    EXECUTIONS.set(0);
    RACED.set(false);
    for swapped in [false, true] {
        SWAPPED.set(swapped);
        if swapped && !RACED.get() {
            continue;
        }
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = bound;
        builder.max_branches = 20_000;
        builder.check(move || {
            EXECUTIONS.set(EXECUTIONS.get() + 1);
            play(scene);
        });
    }
    let executions = EXECUTIONS.get();
    assert!(executions > 1, "{name} explored nothing");
    let bound = bound.map_or("unbounded".to_owned(), |bound| format!("preemption bound {bound}"));
    let seconds = began.elapsed().as_secs_f64();
    println!("loom model {name}: {bound}, {executions} executions in {seconds:.1} s");
}

/// Whether [`explore`] explores the model of this name.
fn is_explored(name: &str) -> bool {
    std::env::var("OFFERMILL_MODEL").map_or(true, |only| only == name)
}

/// Plays a scene on a stack that is large enough for a kernel and its handlers: that of loom's first thread has 32 KiB.
fn play(scene: fn()) {
    let thread = thread::Builder::new().stack_size(1 << 18).spawn(scene).unwrap();
    thread.join().unwrap();
}

/// Runs both closures at once, in two threads, and returns their results.
///
/// Loom begins with the current thread and decides what to try differently by comparing each access only with the last
/// one of the same word. So it can miss that a thread's write would have mattered to another thread's earlier read.
/// Therefore each scene is explored twice, with each of the two closures in the first thread.
fn race<A: 'static, B: 'static>(
    one: impl FnOnce() -> A + 'static,
    other: impl FnOnce() -> B + 'static,
) -> (A, B) {
    RACED.set(true);
    if SWAPPED.get() {
        let other = thread::spawn(other);
        (one(), other.join().unwrap())
    } else {
        let one = thread::spawn(one);
        let other = other();
        (one.join().unwrap(), other)
    }
}
