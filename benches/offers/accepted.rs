//! Offers that are accepted, one executor each, and the updates that end the executors again.
//!
//! Both are done in turn, always with the executors of a hundred batches alive, and timed apart: `accept` is a batch of
//! offers, `end` the terminal updates of as many executors, `both` the sum.

use criterion::{BenchmarkId, Criterion, Throughput};
use offermill::resources::MilliCpus;

use crate::support::desk::{Baseline, Desk, Ours, Spent, Stream};
use crate::support::fleet::Fleet;
use crate::support::locked::Locked;
use crate::support::{self, MET, agreement};

pub(crate) const BATCH: usize = 100;

/// More than is ever used.
const ENOUGH: MilliCpus = MilliCpus::from_cores(1_000_000);

pub(crate) fn baseline() -> Baseline {
    Baseline::new(&support::config(MET, None), MET, ENOUGH)
}

pub(crate) fn locked() -> Locked {
    Locked::new(&support::config(MET, None), MET, ENOUGH)
}

pub(crate) fn all(criterion: &mut Criterion) {
    for agents in [100, 1_000, 10_000, 100_000] {
        let fleet = Fleet::new(agents, BATCH);
        let kernel = support::kernel(&support::config(MET, None));
        let (mut ours, mut plain) = (Ours::new(&kernel), baseline());
        agreement::check(&mut ours, &mut plain, &fleet);
        let mut ours = Stream::new(ours, &fleet);
        let mut plain = Stream::new(plain, &fleet);
        for part in Part::ALL {
            let mut group = support::group(criterion, &format!("accepted/{}", part.name()));
            group.throughput(Throughput::Elements(BATCH as u64));
            bench(&mut group, BenchmarkId::new("offermill", agents), part, &mut ours);
            bench(&mut group, BenchmarkId::new("plain", agents), part, &mut plain);
            group.finish();
        }
    }
}

type Group<'c> = criterion::BenchmarkGroup<'c, criterion::measurement::WallTime>;

fn bench<D: Desk>(group: &mut Group<'_>, id: BenchmarkId, part: Part, stream: &mut Stream<D>) {
    group.bench_function(id, |bencher| {
        bencher.iter_custom(|turns| part.of(stream.start_and_end(turns)));
    });
}

/// What of an executor's life is reported.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Accept,
    End,
    Both,
}

impl Part {
    pub(crate) const ALL: [Part; 3] = [Part::Accept, Part::End, Part::Both];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::Accept => "accept",
            Part::End => "end",
            Part::Both => "both",
        }
    }

    pub(crate) fn of(self, spent: Spent) -> std::time::Duration {
        match self {
            Part::Accept => spent.accept,
            Part::End => spent.end,
            Part::Both => spent.accept + spent.end,
        }
    }
}
