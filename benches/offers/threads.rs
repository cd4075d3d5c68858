//! The same work on one thread and on two. Every thread has a handler and sees offers of all agents.
//!
//! `mutex` is the baseline behind one lock, which all threads share; `plain apart` is the baseline on two threads that share nothing: the most that this machine gives a second thread.

use criterion::{BenchmarkId, Criterion, Throughput};

use crate::accepted::{self, BATCH, Part};
use crate::declined::{self, Cause};
use crate::support::crew::together;
use crate::support::desk::{BATCHES_LIVE, Desk, Ours, Spent, Stream};
use crate::support::fleet::Fleet;
use crate::support::{self, MET};

const AGENTS: usize = 10_000;
const THREADS: [usize; 2] = [1, 2];

pub(crate) fn all(criterion: &mut Criterion) {
    let fleet = Fleet::new(AGENTS, BATCH);
    for cause in Cause::ALL {
        let mut group = support::group(criterion, &format!("threads/{}", cause.name()));
        group.throughput(Throughput::Elements(BATCH as u64));
        for threads in THREADS {
            let kernel = support::kernel(&cause.config());
            let ours = || declined::full(Ours::new(&kernel), &fleet);
            answer(&mut group, BenchmarkId::new("offermill", threads), &mut crew(threads, ours));
            let locked = declined::full(cause.locked(), &fleet);
            answer(
                &mut group,
                BenchmarkId::new("mutex", threads),
                &mut crew(threads, || locked.clone()),
            );
            let plain = || declined::full(cause.baseline(), &fleet);
            answer(&mut group, BenchmarkId::new("plain apart", threads), &mut crew(threads, plain));
        }
        group.finish();
    }
    for part in Part::ALL {
        let mut group = support::group(criterion, &format!("threads/{}", part.name()));
        group.throughput(Throughput::Elements(BATCH as u64));
        for threads in THREADS {
            let kernel = support::kernel(&support::config(MET, None));
            let ours = || Stream::new(Ours::new(&kernel), &fleet);
            let mut ours = crew(threads, ours);
            start_and_end(&mut group, BenchmarkId::new("offermill", threads), part, &mut ours);
            let locked = Stream::new(accepted::locked(), &fleet);
            let mut locked = crew(threads, || locked.clone());
            start_and_end(&mut group, BenchmarkId::new("mutex", threads), part, &mut locked);
            let plain = || Stream::new(accepted::baseline(), &fleet);
            let mut plain = crew(threads, plain);
            start_and_end(&mut group, BenchmarkId::new("plain apart", threads), part, &mut plain);
        }
        group.finish();
    }
}

type Group<'c> = criterion::BenchmarkGroup<'c, criterion::measurement::WallTime>;

/// Streams that are at different places of the round.
fn crew<D: Desk>(threads: usize, stream: impl Fn() -> Stream<D>) -> Vec<Stream<D>> {
    (0..threads).map(|thread| stream().ahead(thread, threads)).collect()
}

fn answer<D: Desk>(group: &mut Group<'_>, id: BenchmarkId, crew: &mut [Stream<D>]) {
    let run = |stream: &mut Stream<D>, turns| (0..turns).for_each(|_| stream.answer());
    group.bench_function(id, |bencher| {
        bencher.iter_custom(|turns| together(crew, turns, run));
    });
}

/// All threads accept at the same time, and then all end what they started. What counts is the time on the wall.
fn start_and_end<D: Desk>(
    group: &mut Group<'_>,
    id: BenchmarkId,
    part: Part,
    crew: &mut [Stream<D>],
) {
    let round = (BATCHES_LIVE * crew.len()) as u64;
    group.bench_function(id, |bencher| {
        bencher.iter_custom(|mut turns| {
            let mut spent = Spent::default();
            while turns > 0 {
                let share = turns.min(round);
                spent.accept += together(crew, share, |stream, turns| stream.start(turns));
                crew.iter_mut().for_each(Stream::name);
                spent.end += together(crew, share, |stream, _| stream.end());
                turns -= share;
            }
            part.of(spent)
        });
    });
}
