//! How fast a simulated cluster is; `benches/README.md` says what each bench shows.
#![expect(clippy::expect_used, reason = "a bench that can't be set up must stop")]

#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput};
use offermill::cluster::simulated::{Checks, Scenario, Severity, Simulation};
use offermill::resources::MilliCpus;

use support::fleet::Fleet;
use support::scheduler::Baseline;
use support::stream::Stream;
use support::{ENOUGH, MET};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn simulation(scenario: Scenario) -> Simulation {
    Simulation::new(scenario, Checks::Off).expect("the scenario is possible")
}

/// Plays until `millis` of virtual time.
fn play(simulation: &mut Simulation, millis: u64) {
    while simulation.progress().now.as_millis() < millis {
        let more = simulation.advance(1_000).expect("no checker runs");
        assert!(more, "the simulation is over too early");
    }
}

const AGENTS: usize = 10_000;
/// Offers that are answered at once, at most.
const BATCH: usize = 100;

/// 10 000 agents offer all they have, again and again, and nothing can be placed: for the executor limit's sake, or
/// because executors are larger than agents. `plain` answers as many offers of as many agents, in batches of that size:
/// what the decisions alone cost.
fn declined(criterion: &mut Criterion) {
    let limit = "executors=0";
    let size = "zones=2 executors=100000 executor-millicores=64000 agent-cores=8";
    for (name, world) in [("executor limit", limit), ("too small", size)] {
        let text = format!(
            "seed=7 agents={AGENTS} batch={BATCH} {world} healed-at=100s\n1s offer-storm amount=400"
        );
        let scenario: Scenario = text.parse().expect("a scenario");
        let mut trial = simulation(scenario.clone());
        play(&mut trial, 990);
        let before = trial.progress().offers;
        play(&mut trial, 3_000);
        let offers = trial.progress().offers - before;
        let mut group = criterion.benchmark_group(format!("simulated offers/{name}"));
        group.throughput(Throughput::Elements(offers));
        let at_the_storm = || {
            let mut simulation = simulation(scenario.clone());
            play(&mut simulation, 990);
            simulation
        };
        group.bench_function("offermill", |bencher| {
            bencher.iter_batched_ref(at_the_storm, |it| play(it, 3_000), BatchSize::PerIteration);
        });
        let mut plain = plain(world == limit);
        group.bench_function("plain", |bencher| {
            bencher.iter(|| (0..offers / BATCH as u64).for_each(|_| plain.answer()));
        });
        group.finish();
    }
}

/// Declines everything, at the door or for each offer's size.
fn plain(capped: bool) -> Stream<Baseline> {
    let config = support::config_of(MilliCpus::from_cores(64), MET, None);
    let cap = if capped { MilliCpus::ZERO } else { ENOUGH };
    Stream::new(Baseline::new(&config, MET, cap), &Fleet::new(AGENTS, BATCH))
}

/// A minute of 1000 agents with 10 000 executors that come and go, by severity and by how closely it is judged.
fn lives(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("simulated minute");
    group.sample_size(10);
    for (name, checks) in [("unjudged", Checks::Off), ("judged each second", Checks::EverySecond)] {
        let minute = Duration::from_secs(60);
        let scenario = Scenario::sized(7, Severity::Mild, 1_000, 10_000, minute);
        let world = || Simulation::new(scenario.clone(), checks).expect("the scenario is possible");
        group.bench_function(name, |bencher| {
            bencher.iter_batched_ref(world, |it| play(it, 60_000), BatchSize::PerIteration);
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    declined(&mut criterion);
    lives(&mut criterion);
    criterion.final_summary();
}
