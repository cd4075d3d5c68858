//! The cost of a report for its caller: alone, and while another thread accepts and ends executors.

use std::cell::Cell;

use criterion::{BenchmarkId, Criterion, Throughput};

use crate::scene::{self, Scene};
use crate::support;
use crate::support::beside::beside;
use crate::support::pictured::Pictured;
use crate::support::scheduler::Scheduler;
use crate::support::stream::{EXECUTORS_LIVE, Stream};

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Report {
    Totals,
    Snapshot,
    Explain,
}

impl Report {
    const ALL: [Report; 3] = [Report::Totals, Report::Snapshot, Report::Explain];

    fn name(self) -> &'static str {
        match self {
            Report::Totals => "totals",
            Report::Snapshot => "snapshot",
            Report::Explain => "explain",
        }
    }

    fn elements(self) -> u64 {
        match self {
            Report::Totals | Report::Explain => 1,
            Report::Snapshot => EXECUTORS_LIVE as u64,
        }
    }
}

pub(crate) fn all(criterion: &mut Criterion) {
    let (mut ours, mut mutex) = (scene::ours(), scene::mutex());
    for report in Report::ALL {
        let mut group = support::group(criterion, &format!("reports/{}", report.name()));
        group.throughput(Throughput::Elements(report.elements()));
        bench(&mut group, "offermill", report, &mut ours);
        bench(&mut group, "mutex", report, &mut mutex);
        group.finish();
    }
}

type Group<'c> = criterion::BenchmarkGroup<'c, criterion::measurement::WallTime>;

fn bench<D: Scheduler, P: Pictured>(
    group: &mut Group<'_>,
    name: &str,
    report: Report,
    Scene { stream, pictured }: &mut Scene<D, P>,
) {
    let tally = Tally::default();
    let ask = || match report {
        Report::Totals => pictured.totals(),
        Report::Snapshot => tally.count(pictured.picture()),
        Report::Explain => pictured.explain(),
    };
    group.bench_function(BenchmarkId::new(name, "alone"), |bencher| bencher.iter(ask));
    tally.print(name, "alone");
    let id = BenchmarkId::new(name, "under load");
    group.bench_function(id, |bencher| {
        let work = |stream: &mut Stream<D>| stream.start_and_end(1);
        beside(stream, work, || bencher.iter(ask));
    });
    tally.print(name, "under load");
}

/// How many snapshots were exact.
#[derive(Default)]
struct Tally {
    all: Cell<u64>,
    exact: Cell<u64>,
}

impl Tally {
    fn count(&self, exact: bool) {
        self.all.set(self.all.get() + 1);
        self.exact.set(self.exact.get() + u64::from(exact));
    }

    /// Tells, if anything was counted, and begins anew.
    fn print(&self, name: &str, when: &str) {
        let (all, exact) = (self.all.take(), self.exact.take());
        if all > 0 {
            println!("reports/snapshot/{name}/{when}: {exact} of {all} were exact");
        }
    }
}
