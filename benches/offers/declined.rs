//! Offers that are declined: by the constraint, which takes a look at the agent, or by the cap, which doesn't.

use criterion::{BenchmarkId, Criterion, Throughput};
use offermill::Config;
use offermill::resources::MilliCpus;

use crate::support::desk::{Baseline, Desk, Ours, Stream};
use crate::support::fleet::Fleet;
use crate::support::locked::Locked;
use crate::support::{self, EXECUTOR_CORES, MET, UNMET, agreement};

const AGENTS: usize = 10_000;

/// Why the offers of a group are declined.
#[derive(Clone, Copy)]
pub(crate) enum Cause {
    Constraint,
    Cap,
}

impl Cause {
    pub(crate) const ALL: [Cause; 2] = [Cause::Constraint, Cause::Cap];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Cause::Constraint => "constraint unmet",
            Cause::Cap => "cap reached",
        }
    }

    fn constraint(self) -> &'static str {
        match self {
            Cause::Constraint => UNMET,
            Cause::Cap => MET,
        }
    }

    /// Room for one executor, which is taken before anything is measured.
    fn cap(self) -> MilliCpus {
        EXECUTOR_CORES
    }

    pub(crate) fn config(self) -> Config {
        support::config(self.constraint(), Some(self.cap()))
    }

    pub(crate) fn baseline(self) -> Baseline {
        Baseline::new(&self.config(), self.constraint(), self.cap())
    }

    pub(crate) fn locked(self) -> Locked {
        Locked::new(&self.config(), self.constraint(), self.cap())
    }
}

pub(crate) fn all(criterion: &mut Criterion) {
    for cause in Cause::ALL {
        for batch in [10, 100, 1000] {
            let fleet = Fleet::new(AGENTS, batch);
            let kernel = support::kernel(&cause.config());
            let (mut ours, mut baseline) = (Ours::new(&kernel), cause.baseline());
            agreement::check(&mut ours, &mut baseline, &fleet);
            let mut group = support::group(criterion, &format!("declined/{}", cause.name()));
            group.throughput(Throughput::Elements(batch as u64));
            bench(&mut group, BenchmarkId::new("offermill", batch), full(ours, &fleet));
            bench(&mut group, BenchmarkId::new("plain", batch), full(baseline, &fleet));
            group.finish();
        }
    }
}

type Group<'c> = criterion::BenchmarkGroup<'c, criterion::measurement::WallTime>;

fn bench<D: Desk>(group: &mut Group<'_>, id: BenchmarkId, mut stream: Stream<D>) {
    group.bench_function(id, |bencher| bencher.iter(|| stream.answer()));
}

/// A stream to a desk whose cap, if offers can reach it, is reached.
pub(crate) fn full<D: Desk>(mut desk: D, fleet: &Fleet) -> Stream<D> {
    if let Some(first) = fleet.met.first() {
        desk.answer(first);
    }
    Stream::new(desk, fleet)
}
