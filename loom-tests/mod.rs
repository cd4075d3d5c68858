//! Loom models: every interleaving that C11 allows, of the real words, in small scenes.
//!
//! Each model has a mutant: the same scene with a known mistake in it, which loom must find. A model whose mutant
//! passes proves nothing. `.ci/loom` runs all, prints bounds and executions, and fails if a model ran none or a mutant
//! was not caught.
//!
//! Scenes are bounded: two or three threads, one or two operations each. Mutants that deadlock abort the process, and
//! so every mutant runs in a process of its own (see `.ci/loom`); a mutant is an ignored test whose success is failure.

mod admission;
mod agents;
mod demand;
mod drain;
mod executors;
mod slab;

use std::sync::atomic::{AtomicUsize, Ordering};

/// Explores `scene` at a preemption bound of `bound` (none is unbounded) and prints how many executions that took.
/// `LOOM_MAX_PREEMPTIONS` has no say: a model's bound is part of what it claims.
fn explore(name: &str, bound: Option<usize>, scene: impl Fn() + Sync + Send + 'static) {
    static EXECUTIONS: AtomicUsize = AtomicUsize::new(0);
    // Models run one after the other (`--test-threads=1`), so one counter serves.
    EXECUTIONS.store(0, Ordering::Relaxed);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = bound;
    builder.max_branches = 20_000;
    builder.check(move || {
        EXECUTIONS.fetch_add(1, Ordering::Relaxed);
        scene();
    });
    let executions = EXECUTIONS.load(Ordering::Relaxed);
    assert!(executions > 1, "{name} explored nothing");
    let bound = bound.map_or("unbounded".to_owned(), |bound| format!("preemption bound {bound}"));
    println!("loom model {name}: {bound}, {executions} executions");
}
