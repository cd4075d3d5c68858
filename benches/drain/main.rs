//! Benches of the end: closing, the terminal updates of all executors, the report; `benches/README.md` says more.
#![expect(clippy::expect_used, reason = "a bench that can't be set up must stop")]

#[path = "../support/mod.rs"]
mod support;

mod ends;

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};

use ends::{EXECUTORS, Ends};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    all(&mut criterion);
    criterion.final_summary();
}

fn all(criterion: &mut Criterion) {
    let mut group = support::group(criterion, "drain/executors");
    // A new kernel a turn, which takes longer to fill than to drain.
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(30)).measurement_time(Duration::from_millis(600));
    group.throughput(Throughput::Elements(EXECUTORS as u64));
    let mut ends = Ends::new();
    for threads in [1, 2] {
        group.bench_function(BenchmarkId::new("offermill", threads), |bencher| {
            bencher.iter_custom(|turns| (0..turns).map(|_| ends.ours(threads)).sum());
        });
        group.bench_function(BenchmarkId::new("offermill in batches", threads), |bencher| {
            bencher.iter_custom(|turns| (0..turns).map(|_| ends.ours_in_batches(threads)).sum());
        });
        group.bench_function(BenchmarkId::new("mutex", threads), |bencher| {
            bencher.iter_custom(|turns| (0..turns).map(|_| ends.mutex(threads)).sum());
        });
    }
    group.bench_function(BenchmarkId::new("plain", 1), |bencher| {
        bencher.iter_custom(|turns| (0..turns).map(|_| ends.plain()).sum());
    });
    group.finish();
}
