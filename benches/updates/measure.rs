//! How a kind of update is measured: on one thread and on two, ten thousand executors each, in random order.

use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput};

use crate::kind::Kind;
use crate::live_executors::{Apply, BATCH, LiveExecutors, in_batches, one_by_one};
use crate::support;
use crate::support::in_turn::{Compared, in_turn};
use crate::support::scheduler::{Ours, Scheduler};
use crate::support::stream::EXECUTORS_LIVE;
use crate::support::threads::together_once;

const THREADS: [usize; 2] = [1, 2];

pub(crate) fn all(criterion: &mut Criterion, kind: Kind) {
    let name = format!("updates/{}", kind.name());
    let mut group = support::group(criterion, &name);
    // Samples of one length: in short ones the threads' start would show.
    group.sampling_mode(SamplingMode::Flat);
    group.throughput(Throughput::Elements(BATCH as u64));
    for threads in THREADS {
        let ours = || {
            kind.prove();
            let kernel = kind.kernel();
            (0..threads).map(|_| Ours::new(&kernel)).collect()
        };
        let mut one_by_one_ours = timed((kind, one_by_one), ours);
        let mut batched = timed((kind, in_batches), ours);
        let mut plain = timed((kind, one_by_one), || vec![kind.baseline()]);
        let mut mutex = timed((kind, one_by_one), || vec![kind.locked(); threads]);
        let mut compared: Vec<Compared<'_>> =
            vec![("offermill", &mut one_by_one_ours), ("offermill in batches", &mut batched)];
        if threads == 1 {
            compared.push(("plain", &mut plain));
        }
        compared.push(("mutex", &mut mutex));
        in_turn(&mut group, (&name, threads), &mut compared);
    }
    group.finish();
}

/// Times updates of schedulers, which are made when they are wanted first: a bench that isn't run needs none.
fn timed<D: Scheduler>(
    (kind, apply): (Kind, Apply<D>),
    schedulers: impl Fn() -> Vec<D>,
) -> impl FnMut(u64) -> Duration {
    let mut workers: Option<Vec<LiveExecutors<D>>> = None;
    move |turns| {
        let workers = workers
            .get_or_insert_with(|| schedulers().into_iter().map(LiveExecutors::new).collect());
        time(workers, kind, apply, turns)
    }
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
