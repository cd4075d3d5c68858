//! Tests on the simulated cluster: random scenarios, checked after each step.
//!
//! A failure prints the seed, the violated invariant and a shortened scenario; `offermill simulate --scenario FILE`
//! replays it. `OFFERMILL_SEEDS` sets the number of scenarios of each severity, `OFFERMILL_SEED` the first seed.

#![allow(clippy::unwrap_used, clippy::panic)]

mod determinism;
mod late;
mod regressions;
mod size;
mod work_queues;
mod worlds;

use offermill::cluster::simulated::{Checks, InvariantViolation, Scenario, Simulation, shorten};

/// The maximum number of runs in search of a shortened scenario.
const SHORTENING_RUNS: u32 = 300;

/// Runs a scenario to its end.
fn play(scenario: Scenario, checks: Checks) -> Result<Simulation, InvariantViolation> {
    let mut simulation = Simulation::new(scenario, checks).unwrap();
    while simulation.advance(10_000)? {}
    Ok(simulation)
}

/// Runs a scenario that must not violate an invariant.
fn expect_sound(scenario: Scenario) -> Simulation {
    let played = play(scenario.clone(), Checks::EachStep);
    played.unwrap_or_else(|broken| {
        let go_on = &mut |runs, _: &Scenario| runs < SHORTENING_RUNS;
        let short = shorten(&scenario, &broken, Checks::EachStep, go_on);
        panic!("seed {}: {broken}\nshortened:\n{short}\n", scenario.seed)
    })
}

/// Returns the number of scenarios of each severity. It is low by default, for builds that are not optimised; `.ci/run`
/// sets a high one. With 60 or more, the other tests have their full size.
fn seeds() -> u64 {
    number_from_environment("OFFERMILL_SEEDS", 6)
}

fn number_from_environment(name: &str, otherwise: u64) -> u64 {
    let given = std::env::var(name).ok().and_then(|text| text.parse().ok());
    given.unwrap_or(otherwise)
}
