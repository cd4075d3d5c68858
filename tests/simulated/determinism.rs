//! Equal scenarios give equal simulations.

use offermill::cluster::simulated::{Checks, Scenario, Severity};

use crate::{play, seeds};

/// The complete report of a simulation, as text.
fn traces(scenario: Scenario, checks: Checks) -> String {
    format!("{:?}", play(scenario, checks).unwrap().report())
}

/// Goal: equal scenarios give equal simulations, bit for bit, and checks don't change them. Method: harsh scenarios,
/// of executors and of tasks in hosts, twice with all checks, with fewer, without, and once more from their text; by
/// default three scenarios of each, otherwise twelve.
#[test]
fn a_scenario_has_one_run() {
    let count = if seeds() >= 60 { 12 } else { 3 };
    let of_tasks = |seed| {
        let scenario = Scenario::generate(seed, Severity::Harsh).with_hosts();
        if seed % 2 == 0 { scenario } else { scenario.with_work_queue() }
    };
    let plain = (0..count).map(|seed| Scenario::generate(seed, Severity::Harsh));
    for scenario in plain.chain((0..count).map(of_tasks)) {
        // Without checks a simulation doesn't verify all conditions of recovery; its course must be the same.
        let checked = traces(scenario.clone(), Checks::EachStep);
        assert_eq!(traces(scenario.clone(), Checks::EachStep), checked);
        assert_eq!(traces(scenario.clone(), Checks::EverySecond), checked);
        assert_eq!(traces(scenario.clone(), Checks::Off), checked);
        let again: Scenario = scenario.to_string().parse().unwrap();
        assert_eq!(traces(again, Checks::EachStep), checked);
    }
}

/// Goal: the seed matters. Method: one scenario with two seeds.
#[test]
fn another_seed_is_another_run() {
    let scenario = |seed: u64| -> Scenario {
        format!("seed={seed} agents=5 executors=20 lifetime=10s").parse().unwrap()
    };
    let fingerprint = |seed| play(scenario(seed), Checks::Off).unwrap().report().fingerprint;
    assert_eq!(fingerprint(1), fingerprint(1));
    assert_ne!(fingerprint(1), fingerprint(2));
}
