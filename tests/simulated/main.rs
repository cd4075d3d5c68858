//! The simulated cluster: random worlds, judged after each step.
//!
//! A failure prints the seed, the rule that was broken and a shortened scenario; `offermill simulate --scenario FILE`
//! plays that again. `OFFERMILL_SEEDS` says how many worlds of each severity are tried, `OFFERMILL_SEED` which is the
//! first.

#![allow(clippy::unwrap_used, clippy::panic)]

mod determinism;
mod regressions;
mod size;
mod worlds;

use offermill::cluster::simulated::{Broken, Checks, Scenario, Simulation, shorten};

/// A shortened scenario is looked for in so many runs.
const SHORTENING_RUNS: u32 = 300;

/// Plays a scenario to its end.
fn play(scenario: Scenario, checks: Checks) -> Result<Simulation, Broken> {
    let mut simulation = Simulation::new(scenario, checks).unwrap();
    while simulation.advance(10_000)? {}
    Ok(simulation)
}

/// Plays a scenario in which no rule may be broken.
fn expect_sound(scenario: Scenario) -> Simulation {
    let played = play(scenario.clone(), Checks::EachStep);
    played.unwrap_or_else(|broken| {
        let go_on = &mut |runs, _: &Scenario| runs < SHORTENING_RUNS;
        let short = shorten(&scenario, &broken, Checks::EachStep, go_on);
        panic!("seed {}: {broken}\nshortened:\n{short}\n", scenario.seed)
    })
}

fn number_from_environment(name: &str, otherwise: u64) -> u64 {
    let given = std::env::var(name).ok().and_then(|text| text.parse().ok());
    given.unwrap_or(otherwise)
}
