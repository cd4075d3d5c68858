//! How fast a simulated cluster is; `benches/README.md` says what each bench shows.
#![expect(clippy::expect_used, reason = "a bench that can't be set up must stop")]

use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput};
use offermill::cluster::simulated::{Checks, Scenario, Severity, Simulation};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn simulation(scenario: Scenario) -> Simulation {
    Simulation::new(scenario, Checks::Off).expect("the scenario is possible")
}

/// Plays until `millis` of virtual time.
fn play(simulation: &mut Simulation, millis: u64) {
    while simulation.progress().now.as_millis() < millis {
        let more = simulation.advance(1_000).expect("nobody judges");
        assert!(more, "the simulation is over too early");
    }
}

/// 10 000 agents offer all they have, again and again, and nothing can be placed: for the executor limit's sake, or
/// because no agent meets the constraint.
fn declined(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("simulated offers");
    let limit = "executors=0".to_owned();
    let constraint = "zones=2 executors=100000 executor-millicores=64000 agent-cores=8".to_owned();
    for (name, world) in [("executor limit", limit), ("too small", constraint)] {
        let text = format!("seed=7 agents=10000 {world} healed-at=100s\n1s offer-storm amount=400");
        let scenario: Scenario = text.parse().expect("a scenario");
        let mut trial = simulation(scenario.clone());
        play(&mut trial, 990);
        let before = trial.progress().offers;
        play(&mut trial, 3_000);
        group.throughput(Throughput::Elements(trial.progress().offers - before));
        let at_the_storm = || {
            let mut simulation = simulation(scenario.clone());
            play(&mut simulation, 990);
            simulation
        };
        group.bench_function(name, |bencher| {
            bencher.iter_batched_ref(at_the_storm, |it| play(it, 3_000), BatchSize::PerIteration);
        });
    }
    group.finish();
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
