//! Scenarios that must not violate an invariant.

use std::collections::BTreeMap;
use std::time::Duration;

use offermill::cluster::simulated::{Checks, Scenario, Severity};

use crate::{expect_sound, number_from_environment, play, seeds};

/// The number of scenarios of each severity in CI: enough to reach each corner case.
const CI_SEEDS: u64 = 200;

/// Goal: CI plays as many scenarios as the corner cases need. Method: what its script says.
#[test]
fn ci_plays_enough_worlds() {
    let script = include_str!("../../.ci/run");
    let default = format!("simulated_seeds=\"${{SIMULATED_SEEDS:-{CI_SEEDS}}}\"\n");
    assert!(script.contains(&default), "{default}");
}

/// Goal: whatever fails, no invariant is violated, and afterwards the framework recovers. Method: random scenarios of
/// each severity, checked completely after each step; each of them once more on a cluster that chooses the agents of
/// executors itself. With as many scenarios as in CI each corner case must be reached.
#[test]
fn random_worlds_are_sound() {
    let first = number_from_environment("OFFERMILL_SEED", 1);
    let count = seeds();
    let (mut steps, mut offers, mut placed) = (0, 0, 0);
    let mut corners = BTreeMap::new();
    for severity in [Severity::None, Severity::Mild, Severity::Harsh] {
        for seed in first..first + count {
            let scenario = Scenario::generate(seed, severity);
            for scenario in [scenario.clone().with_late_binding(), scenario] {
                let report = expect_sound(scenario).report();
                steps += report.steps;
                offers += report.offers;
                placed += report.placed;
                for (corner, times) in report.corners {
                    *corners.entry(corner).or_insert(0) += times;
                }
            }
        }
    }
    println!(
        "simulator: {count} seeds from {first} of each severity, {steps} steps, {offers} offers, {placed} executors, \
         no rule broken"
    );
    assert!(offers > count && placed > count, "the worlds have to be worth something");
    for (corner, times) in &corners {
        println!("corner: {times:>8} times {corner}");
    }
    let missed: Vec<_> = corners.iter().filter(|(_, times)| **times == 0).collect();
    assert!(count < CI_SEEDS || missed.is_empty(), "never reached: {missed:?}");
}

/// Goal: the same with tasks of several sizes: caps hold, each task is placed once and as it is, or comes back, and
/// gangs are placed whole or not at all; an agent has one host at most, whose tasks end with it, and none is placed in
/// one that is to end or gone; queues keep to their maxima and leave others what is guaranteed to them, while their
/// bounds change. Method: random scenarios of each severity, with frameworks that place tasks: alone, in hosts, in
/// queues, and in both, in turn. With as many scenarios as in CI each corner case of hosts must be reached.
#[test]
fn random_worlds_of_tasks_are_sound() {
    let corners = play_tasks(Scenario::with_tasks);
    let missed: Vec<_> = corners.iter().filter(|(_, times)| **times == 0).collect();
    assert!(seeds() < CI_SEEDS || missed.is_empty(), "never reached: {missed:?}");
}

/// Goal: the same with tasks in a work queue: each attempt has one end, which is told once, and a task waits again only
/// if nothing of it has begun. Method: random scenarios of each severity; tasks run alone, in hosts, in queues, and in
/// both, in turn. (That corner cases are reached is seen by other tests.)
#[test]
fn random_worlds_of_work_queues_are_sound() {
    play_tasks(Scenario::with_work_queue);
}

/// Plays random scenarios of each severity, made ones of tasks by `with_tasks`, with hosts, queues and both in turn.
/// Returns how often each corner case was reached in those with hosts.
fn play_tasks(with_tasks: fn(Scenario) -> Scenario) -> BTreeMap<&'static str, u64> {
    let first = number_from_environment("OFFERMILL_SEED", 1);
    let mut placed = 0;
    let mut corners = BTreeMap::new();
    for severity in [Severity::None, Severity::Mild, Severity::Harsh] {
        for seed in first..first + seeds() {
            let scenario = with_tasks(Scenario::generate(seed, severity));
            let scenario = match seed % 4 {
                0 => scenario,
                1 => scenario.with_hosts(),
                2 => scenario.with_queues(),
                _ => scenario.with_hosts().with_queues(),
            };
            let has_hosts = scenario.hosts;
            let report = expect_sound(scenario).report();
            placed += report.placed;
            for (corner, times) in report.corners.into_iter().filter(|_| has_hosts) {
                *corners.entry(corner).or_insert(0) += times;
            }
        }
    }
    println!("simulator: {} seeds from {first} of each severity, {placed} tasks", seeds());
    assert!(placed > seeds(), "the worlds have to be worth something");
    for (corner, times) in &corners {
        println!("corner: {times:>8} times {corner}");
    }
    corners
}

/// Goal: a shutdown is orderly at any time. Method: one harsh scenario, shut down at each of 60 times (by default, of
/// 20).
#[test]
fn any_moment_is_good_for_a_shutdown() {
    let harsh = Scenario::generate(number_from_environment("OFFERMILL_SEED", 5), Severity::Harsh);
    let end = harsh.healed_at.as_millis();
    let count = if seeds() >= 60 { 60 } else { 20 };
    for part in 0..count {
        let at = end * part / count;
        let text = format!("{harsh}\n{}.{:03}s shutdown", at / 1000, at % 1000);
        let report = expect_sound(text.parse().unwrap()).report();
        let drained = report.drained.unwrap();
        let took = drained.over_at.since(drained.closed_at);
        assert!(took <= harsh.shutdown_timeout, "{took:?}");
    }
}

/// Goal: a larger cluster fills, loses some of its agents, and fills again. Method: a scenario of a given size (by
/// default, a third of it), and all measurements of its report.
#[test]
fn a_larger_world_recovers() {
    let agents = if seeds() >= 60 { 300 } else { 100 };
    let duration = Duration::from_secs(300);
    let scenario = Scenario::sized(3, Severity::Harsh, agents, agents * 10, duration);
    let report = play(scenario, Checks::EverySecond).unwrap().report();
    let most = report.samples.iter().map(|sample| sample.running).max();
    assert_eq!(most, Some(agents * 10));
    let present: u32 = report.spread.iter().map(|(_, agents)| agents).sum();
    let executors: u32 = report.spread.iter().map(|(executors, agents)| executors * agents).sum();
    assert!(present == agents && executors <= agents * 10);
    let declined: u64 = report.declines.iter().map(|(_, count)| count).sum();
    assert_eq!(report.accepted + declined, report.offers, "each offer is answered once");
    assert_eq!(report.placed, report.ended.iter().sum::<u64>(), "each executor ends once");
    assert_eq!(report.placement_latency.count(), report.placed);
    assert_eq!(report.drained.map(|drained| drained.left), Some(0));
}

/// Goal: settings that no kernel accepts are rejected. Method: an executor without memory.
#[test]
fn impossible_settings_are_named() {
    let error = "seed=1 executor-mib=0".parse::<Scenario>().unwrap_err();
    assert!(error.to_string().contains("executor-mib"), "{error}");
}
