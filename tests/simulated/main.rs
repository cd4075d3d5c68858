//! The simulated cluster, judged.

#![allow(clippy::unwrap_used)]

use offermill::cluster::simulated::{Checks, Scenario, Severity, Simulation};

fn run(scenario: Scenario, checks: Checks) -> Result<Simulation, String> {
    let text = scenario.to_string();
    let mut simulation = Simulation::new(scenario, checks).unwrap();
    loop {
        match simulation.advance(10_000) {
            Ok(true) => {}
            Ok(false) => return Ok(simulation),
            Err(broken) => return Err(format!("{broken}\n{text}")),
        }
    }
}

#[test]
fn random_worlds() {
    let first: u64 = std::env::var("FIRST").ok().and_then(|t| t.parse().ok()).unwrap_or(0);
    let count: u64 = std::env::var("COUNT").ok().and_then(|t| t.parse().ok()).unwrap_or(100);
    let severity: Severity = std::env::var("FAULTS").unwrap_or("harsh".into()).parse().unwrap();
    let mut failures = std::collections::BTreeMap::<String, (u64, u64, String)>::new();
    for seed in first..first + count {
        if let Err(why) = run(Scenario::generate(seed, severity), Checks::EachStep) {
            let key: String = why.split(" is broken").next().unwrap().into();
            let e = failures.entry(key).or_insert((0, seed, why.lines().next().unwrap().into()));
            e.0 += 1;
        }
    }
    if let (Some((k, v)), true) = (failures.first_key_value(), std::env::var("SHORT").is_ok()) {
        let _ = k;
        let scenario = Scenario::generate(v.1, severity);
        let mut sim = Simulation::new(scenario.clone(), Checks::EachStep).unwrap();
        let broken = loop {
            match sim.advance(1000) {
                Ok(true) => {}
                Ok(false) => panic!(),
                Err(b) => break b,
            }
        };
        let short = offermill::cluster::simulated::shorten(
            &scenario,
            &broken,
            Checks::EachStep,
            &mut |n, _| n < 300,
        );
        println!("{short}");
    }
    for (k, v) in failures {
        println!("{k}: {} first seed {} {}", v.0, v.1, v.2);
    }
}
