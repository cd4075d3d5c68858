//! The cost of reports for a thread that accepts and ends executors: alone, and while another thread takes snapshots
//! all the time.

use criterion::{BenchmarkId, Criterion, Throughput};

use crate::scene::{self, BATCH, Scene};
use crate::support;
use crate::support::beside::beside;
use crate::support::pictured::Pictured;
use crate::support::scheduler::Scheduler;

pub(crate) fn all(criterion: &mut Criterion) {
    let mut group = support::group(criterion, "reports/offers while snapshots");
    group.throughput(Throughput::Elements(BATCH as u64));
    bench(&mut group, "offermill", &mut scene::ours());
    bench(&mut group, "mutex", &mut scene::mutex());
    group.finish();
}

type Group<'c> = criterion::BenchmarkGroup<'c, criterion::measurement::WallTime>;

fn bench<D: Scheduler, P: Pictured>(
    group: &mut Group<'_>,
    name: &str,
    Scene { stream, pictured }: &mut Scene<D, P>,
) {
    let mut work = |turns| {
        let spent = stream.start_and_end(turns);
        spent.accept + spent.end
    };
    group.bench_function(BenchmarkId::new(name, "alone"), |bencher| {
        bencher.iter_custom(&mut work);
    });
    group.bench_function(BenchmarkId::new(name, "snapshots"), |bencher| {
        beside(pictured, |it| it.picture(), || bencher.iter_custom(&mut work));
    });
}
