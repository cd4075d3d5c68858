//! What the themes share: data, the baseline, the proof that both decide alike, threads.
#![allow(dead_code, reason = "each theme takes what it needs")]

pub(crate) mod agreement;
pub(crate) mod beside;
pub(crate) mod figures;
pub(crate) mod fleet;
pub(crate) mod in_turn;
pub(crate) mod locked;
pub(crate) mod pictured;
pub(crate) mod plain;
pub(crate) mod scheduler;
pub(crate) mod stream;
pub(crate) mod threads;
pub(crate) mod unmatched;

use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion};
use offermill::config::{ExclusionRule, ExecutorCores};
use offermill::resources::MilliCpus;
use offermill::{Config, Constraint, IdScheme, Kernel, Timestamp};

/// The moment of everything: benches measure decisions, and time changes none of theirs.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_000);

/// A cap on cores that is never reached.
pub(crate) const ENOUGH: MilliCpus = MilliCpus::from_cores(1_000_000);

/// What an executor takes; an offer of the [`fleet`] has room for exactly one.
pub(crate) const EXECUTOR_CORES: MilliCpus = MilliCpus::from_cores(4);

/// The constraint that [`fleet`]'s agents meet.
pub(crate) const MET: &str = "zone:east,west;tier:2";
/// One that none of them meets, though they have the attribute.
pub(crate) const UNMET: &str = "zone:north;tier:2";

/// One that every other agent meets.
pub(crate) const HALF: &str = "zone:east;tier:2";

/// One failure excludes an agent.
pub(crate) const EXCLUSION: ExclusionRule = ExclusionRule {
    failures: 1,
    window: Duration::from_secs(3600),
    expiry: Some(Duration::from_secs(3600)),
};

/// Executors of one size, under a constraint and perhaps a cap.
pub(crate) fn config(constraint: &str, core_cap: Option<MilliCpus>) -> Config {
    config_of(EXECUTOR_CORES, constraint, core_cap)
}

/// The same, with executors of `cores` cores.
pub(crate) fn config_of(cores: MilliCpus, constraint: &str, cap: Option<MilliCpus>) -> Config {
    Config::builder()
        .executor_cores(ExecutorCores::Fixed(cores))
        .constraint(Constraint::parse(constraint).expect("a constraint"))
        .core_cap(cap)
        .exclusion(Some(EXCLUSION))
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
    group.sample_size(20);
    group.warm_up_time(Duration::from_millis(200));
    group.measurement_time(Duration::from_millis(800));
    group
}
