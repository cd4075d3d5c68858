//! How a kind of update is measured: on one thread and on two, ten thousand executors each, in random order.

use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput};

use crate::kind::Kind;
use crate::live_executors::{Apply, BATCH, LiveExecutors, in_batches, one_by_one};
use crate::support;
use crate::support::scheduler::{Ours, Scheduler};
use crate::support::stream::EXECUTORS_LIVE;
use crate::support::threads::together_once;

const THREADS: [usize; 2] = [1, 2];

pub(crate) fn all(criterion: &mut Criterion, kind: Kind) {
    let mut group = support::group(criterion, &format!("updates/{}", kind.name()));
    // Samples of one length: in short ones the threads' start would show.
    group.sampling_mode(SamplingMode::Flat);
    group.throughput(Throughput::Elements(BATCH as u64));
    for threads in THREADS {
        bench(&mut group, BenchmarkId::new("offermill", threads), (kind, one_by_one), || {
            kind.prove();
            let kernel = kind.kernel();
            (0..threads).map(|_| Ours::new(&kernel)).collect()
        });
        bench(
            &mut group,
            BenchmarkId::new("offermill in batches", threads),
            (kind, in_batches),
            || {
                let kernel = kind.kernel();
                (0..threads).map(|_| Ours::new(&kernel)).collect()
            },
        );
        if threads == 1 {
            bench(&mut group, BenchmarkId::new("plain", threads), (kind, one_by_one), || {
                vec![kind.baseline()]
            });
        }
        bench(&mut group, BenchmarkId::new("mutex", threads), (kind, one_by_one), || {
            vec![kind.locked(); threads]
        });
    }
    group.finish();
}

/// The schedulers are made when they are wanted first: a bench that isn't run needs none.
fn bench<D: Scheduler>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    id: BenchmarkId,
    (kind, apply): (Kind, Apply<D>),
    schedulers: impl Fn() -> Vec<D>,
) {
    let mut workers: Option<Vec<LiveExecutors<D>>> = None;
    group.bench_function(id, |bencher| {
        let workers = workers
            .get_or_insert_with(|| schedulers().into_iter().map(LiveExecutors::new).collect());
        bencher.iter_custom(|turns| time(workers, kind, apply, turns));
    });
}

/// The wall-clock time of `turns` turns, without their preparation. Each thread prepares its own.
fn time<D: Scheduler>(
    workers: &mut [LiveExecutors<D>],
    kind: Kind,
    apply: Apply<D>,
    mut turns: u64,
) -> Duration {
    let round = (EXECUTORS_LIVE / BATCH * workers.len()) as u64;
    let mut spent = Duration::ZERO;
    while turns > 0 {
        let share = turns.min(round);
        let prepare = |executors: &mut LiveExecutors<D>| kind.prepare(executors);
        let run = |executors: &mut LiveExecutors<D>, turns| {
            executors.apply_next(kind.state(), apply, turns)
        };
        spent += together_once(workers, share, prepare, run);
        turns -= share;
    }
    spent
}
