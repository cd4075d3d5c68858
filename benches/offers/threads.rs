//! The same work on one thread, on two and on four. Every thread has a handler and sees offers of all agents.
//!
//! `mutex` is the baseline behind one lock, which all threads share; `plain apart` is the baseline on threads that
//! share nothing: the most that this machine gives a further thread. Four threads may be more than the machine has
//! cores: then they take turns, and what they show is no gain but what it costs when a thread is stopped amid its work,
//! with a lock or without.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};

use crate::measure::{AGENTS, BATCH, Part};
use crate::scene::Scene;
use crate::support;
use crate::support::desk::{Desk, Ours};
use crate::support::fleet::Fleet;
use crate::support::stream::{EXECUTORS_LIVE, Spent, Stream};
use crate::support::threads::together;

const THREADS: [usize; 3] = [1, 2, 4];

pub(crate) fn all(criterion: &mut Criterion) {
    for scene in [Scene::Unmet, Scene::CapReached] {
        group(criterion, scene.name(), scene, Part::Declines);
    }
    group(criterion, "mixed", Scene::Mixed, Part::Accepts);
    group(criterion, "accept", Scene::Accepted, Part::Accepts);
    group(criterion, "end", Scene::Accepted, Part::Ends);
}

fn group(criterion: &mut Criterion, name: &str, scene: Scene, part: Part) {
    let mut group = support::group(criterion, &format!("threads/{name}"));
    // Samples of one length: in short ones the threads' start would show.
    group.sampling_mode(SamplingMode::Flat);
    group.throughput(Throughput::Elements(BATCH as u64));
    for threads in THREADS {
        bench(&mut group, BenchmarkId::new("offermill", threads), part, || {
            let fleet = Fleet::new(AGENTS, BATCH);
            // The proof; what is measured is another kernel.
            scene.pair(&fleet);
            let kernel = scene.kernel();
            crew(threads, || scene.stream(Ours::new(&kernel), &fleet))
        });
        bench(&mut group, BenchmarkId::new("mutex", threads), part, || {
            let first = scene.stream(scene.locked(), &Fleet::new(AGENTS, BATCH));
            crew(threads, || first.clone())
        });
        bench(&mut group, BenchmarkId::new("plain apart", threads), part, || {
            let fleet = Fleet::new(AGENTS, BATCH);
            crew(threads, || scene.stream(scene.baseline(), &fleet))
        });
    }
    group.finish();
}

/// Streams that are at different places of the round.
fn crew<D: Desk>(threads: usize, stream: impl Fn() -> Stream<D>) -> Vec<Stream<D>> {
    (0..threads).map(|thread| stream().ahead(thread, threads)).collect()
}

type Group<'c> = criterion::BenchmarkGroup<'c, criterion::measurement::WallTime>;

/// The crew is made when it is wanted first: a bench that isn't run needs none.
fn bench<D: Desk>(
    group: &mut Group<'_>,
    id: BenchmarkId,
    part: Part,
    make: impl Fn() -> Vec<Stream<D>>,
) {
    let mut crew = None;
    group.bench_function(id, |bencher| {
        let crew = crew.get_or_insert_with(&make);
        bencher.iter_custom(|turns| time(crew, part, turns));
    });
}

/// The time on the wall. All threads accept at the same time, and then all end what they started.
fn time<D: Desk>(crew: &mut [Stream<D>], part: Part, mut turns: u64) -> Duration {
    if part == Part::Declines {
        return together(crew, turns, |stream, turns| (0..turns).for_each(|_| stream.answer()));
    }
    let round = (EXECUTORS_LIVE / BATCH * crew.len()) as u64;
    let mut spent = Spent::default();
    while turns > 0 {
        let share = turns.min(round);
        spent.accept += together(crew, share, |stream, turns| stream.start(turns));
        crew.iter_mut().for_each(Stream::name);
        spent.end += together(crew, share, |stream, _| stream.end());
        turns -= share;
    }
    part.of(spent)
}
