//! What the themes share: data, the baseline, the proof that both decide alike, threads.

pub(crate) mod agreement;
pub(crate) mod crew;
pub(crate) mod desk;
pub(crate) mod fleet;
pub(crate) mod locked;
pub(crate) mod plain;

use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion};
use offermill::config::ExecutorCores;
use offermill::resources::MilliCpus;
use offermill::{Config, Constraint, IdScheme, Kernel, Timestamp};

/// The moment of everything: benches measure decisions, and time changes none of theirs.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_000);

/// What an executor takes; an offer of the [`fleet`] has room for exactly one.
pub(crate) const EXECUTOR_CORES: MilliCpus = MilliCpus::from_cores(4);

/// The constraint that [`fleet`]'s agents meet.
pub(crate) const MET: &str = "zone:east,west;tier:2";
/// One that none of them meets, though they have the attribute.
pub(crate) const UNMET: &str = "zone:north;tier:2";

/// Executors of one size, under a constraint and perhaps a cap.
pub(crate) fn config(constraint: &str, core_cap: Option<MilliCpus>) -> Config {
    Config::builder()
        .executor_cores(ExecutorCores::Fixed(EXECUTOR_CORES))
        .constraint(Constraint::parse(constraint).expect("a constraint"))
        .core_cap(core_cap)
        .build()
        .expect("settings")
}

/// A kernel that follows `config`.
pub(crate) fn kernel(config: &Config) -> Kernel {
    Kernel::new(config.clone(), IdScheme::unique("bench", 1_700_000_000).expect("a prefix"))
}

/// A group whose measurements are short: there are many, and shared machines wobble anyway.
pub(crate) fn group<'c>(criterion: &'c mut Criterion, name: &str) -> BenchmarkGroup<'c, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.sample_size(30);
    group.warm_up_time(Duration::from_millis(300));
    group.measurement_time(Duration::from_millis(1500));
    group
}
