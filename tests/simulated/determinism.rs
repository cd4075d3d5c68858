//! One seed, one run.

use offermill::cluster::simulated::{Checks, Scenario, Severity};

use crate::play;

/// Everything that a run shows, as text.
fn traces(scenario: Scenario, checks: Checks) -> String {
    format!("{:?}", play(scenario, checks).unwrap().report())
}

/// Goal: the same scenario gives the same run, bit for bit, and judging it changes nothing. Method: harsh worlds, twice
/// unjudged and once judged, and once more from their text.
#[test]
fn a_scenario_has_one_run() {
    for seed in 0..12 {
        let scenario = Scenario::generate(seed, Severity::Harsh);
        // Unjudged, a run doesn't look whether it has recovered by every rule; what comes before must be the same.
        let judged = traces(scenario.clone(), Checks::EachStep);
        assert_eq!(traces(scenario.clone(), Checks::EachStep), judged);
        assert_eq!(traces(scenario.clone(), Checks::EverySecond), judged);
        assert_eq!(traces(scenario.clone(), Checks::Off), judged);
        let again: Scenario = scenario.to_string().parse().unwrap();
        assert_eq!(traces(again, Checks::EachStep), judged);
    }
}

/// Goal: the seed matters. Method: one world under two seeds.
#[test]
fn another_seed_is_another_run() {
    let scenario = |seed: u64| -> Scenario {
        format!("seed={seed} agents=5 executors=20 lifetime=10s").parse().unwrap()
    };
    let fingerprint = |seed| play(scenario(seed), Checks::Off).unwrap().report().fingerprint;
    assert_eq!(fingerprint(1), fingerprint(1));
    assert_ne!(fingerprint(1), fingerprint(2));
}
