//! From a cluster's event to the calls that answer it, threads included; `benches/README.md` says what each shows.
//!
//! A cluster in memory sends what it has ready, and swallows calls. Between the two stands the engine, with its offer
//! queue, handlers and control thread, or a baseline: threads that take the same events from a channel and make the
//! same calls, by the plain loop (`plain`), or by one loop that they share behind a lock (`mutex`).
#![expect(clippy::expect_used, reason = "a bench that can't be set up must stop")]

#[path = "../support/mod.rs"]
mod support;

mod cluster;
mod gate;
mod schedulers;
mod traffic;

use criterion::{BenchmarkId, Criterion, Throughput};
use offermill::Config;

use schedulers::{Engined, System, Threads};
use support::fleet::Fleet;
use support::{MET, UNMET};
use traffic::{Ends, Traffic};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const AGENTS: usize = 10_000;
pub(crate) const BATCH: usize = 100;

/// Handler threads of the engine, and as many of the baseline.
const HANDLERS: [usize; 2] = [1, 2];

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let fleet = Fleet::new(AGENTS, BATCH);
    all(&mut criterion, &fleet, "constraint unmet", UNMET, traffic::WINDOW);
    all(&mut criterion, &fleet, "one batch at a time", UNMET, 0);
    all(&mut criterion, &fleet, "lives", MET, traffic::WINDOW);
    criterion.final_summary();
}

/// One group. `window`: the maximum number of unanswered offers when a further batch is sent.
fn all(criterion: &mut Criterion, fleet: &Fleet, what: &str, constraint: &str, window: u64) {
    let config = support::config(constraint, None);
    let ends = if constraint == MET { Ends::AllAccepted } else { Ends::AllDeclined };
    let mut group = support::group(criterion, &format!("engine/{what}"));
    group.throughput(Throughput::Elements(BATCH as u64));
    for handlers in HANDLERS {
        let id = BenchmarkId::new("offermill", handlers);
        bench(&mut group, id, Traffic::new(fleet, ends, window, engined(&config, handlers)));
    }
    let id = BenchmarkId::new("plain", 1);
    let plain = |cluster| Threads::plain(cluster, &config, constraint);
    bench(&mut group, id, Traffic::new(fleet, ends, window, plain));
    for threads in HANDLERS {
        let id = BenchmarkId::new("mutex", threads);
        let locked = |cluster| Threads::locked(cluster, &config, constraint, threads);
        bench(&mut group, id, Traffic::new(fleet, ends, window, locked));
    }
    group.finish();
}

fn engined(config: &Config, handlers: usize) -> impl FnOnce(schedulers::Shared) -> Engined {
    move |cluster| Engined::new(cluster, config, handlers)
}

type Group<'c> = criterion::BenchmarkGroup<'c, criterion::measurement::WallTime>;

fn bench<H: System>(group: &mut Group<'_>, id: BenchmarkId, mut traffic: Traffic<H>) {
    group.bench_function(id, |bencher| {
        bencher.iter_custom(|turns| traffic.run(turns));
    });
}
