//! The same work on one thread, on two and on four. Every thread has a handler and sees offers of all agents.
//!
//! `mutex` is the baseline behind one lock, which all threads share; `plain apart` is the baseline on threads that
//! share nothing: the most that this machine gives a further thread. Four threads may be more than the machine has
//! cores: then they take turns, and the figures show no gain but the cost of a thread that is stopped in the middle of
//! its work, with a lock or without.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};

use crate::measure::{AGENTS, BATCH, Part};
use crate::scene::Scene;
use crate::support;
use crate::support::fleet::Fleet;
use crate::support::scheduler::{Ours, Scheduler};
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
            workers(threads, || scene.stream(Ours::new(&kernel), &fleet))
        });
        bench(&mut group, BenchmarkId::new("mutex", threads), part, || {
            let first = scene.stream(scene.locked(), &Fleet::new(AGENTS, BATCH));
            workers(threads, || first.clone())
        });
        bench(&mut group, BenchmarkId::new("plain apart", threads), part, || {
            let fleet = Fleet::new(AGENTS, BATCH);
            workers(threads, || scene.stream(scene.baseline(), &fleet))
        });
    }
    group.finish();
}

/// Streams that are at different places of the round.
fn workers<D: Scheduler>(threads: usize, stream: impl Fn() -> Stream<D>) -> Vec<Stream<D>> {
    (0..threads).map(|thread| stream().ahead(thread, threads)).collect()
}

type Group<'c> = criterion::BenchmarkGroup<'c, criterion::measurement::WallTime>;

/// The workers are created on first use, so that a filtered-out bench creates none.
fn bench<D: Scheduler>(
    group: &mut Group<'_>,
    id: BenchmarkId,
    part: Part,
    make: impl Fn() -> Vec<Stream<D>>,
) {
    let mut workers = None;
    group.bench_function(id, |bencher| {
        let workers = workers.get_or_insert_with(&make);
        bencher.iter_custom(|turns| time(workers, part, turns));
    });
}

/// The time on the wall. All threads accept at the same time, and then all end what they started.
fn time<D: Scheduler>(workers: &mut [Stream<D>], part: Part, mut turns: u64) -> Duration {
    if part == Part::Declines {
        return together(workers, turns, |stream, turns| (0..turns).for_each(|_| stream.answer()));
    }
    let round = (EXECUTORS_LIVE / BATCH * workers.len()) as u64;
    let mut spent = Spent::default();
    while turns > 0 {
        let share = turns.min(round);
        spent.accept += together(workers, share, |stream, turns| stream.start(turns));
        workers.iter_mut().for_each(Stream::name);
        spent.end += together(workers, share, |stream, _| stream.end());
        turns -= share;
    }
    part.of(spent)
}
