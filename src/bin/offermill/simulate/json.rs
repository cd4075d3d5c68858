//! The summary for machines.

use std::time::Duration;

use offermill::Timestamp;
use offermill::cluster::simulated::{Broken, Latencies};
use serde_json::{Map, Value, json};

use super::figures::per_second;
use super::order::Order;
use super::search::Findings;
use super::violation::Shortened;
use super::world::Outcome;

/// One scenario.
pub(super) fn world(outcome: &Outcome<'_>, shortened: Option<&Shortened>, order: &Order) -> Value {
    let Outcome { task, report, took, asked, broken } = outcome;
    let [finished, failed, killed, lost] = report.ended;
    let declined: Map<String, Value> = report
        .declines
        .iter()
        .filter(|(_, offers)| *offers > 0)
        .map(|(kind, offers)| (kind.as_str().to_ascii_lowercase().replace(' ', "_"), json!(offers)))
        .collect();
    let drain = report.drained.map(|drained| {
        json!({
            "closed_at_ms": drained.closed_at.as_millis(),
            "over_at_ms": drained.over_at.as_millis(),
            "left": drained.left,
        })
    });
    json!({
        "seed": task.scenario.seed,
        "agents": task.scenario.agents,
        "executor_limit": task.scenario.executors,
        "faults": task.scenario.faults.len(),
        "healed_at_ms": task.scenario.healed_at.as_millis(),
        "ended_at_ms": report.ended_at.as_millis(),
        "stopped_by": asked.map(|(name, _)| name),
        "stopped_at_ms": asked.map(|(_, at)| at.as_millis()),
        "steps": report.steps,
        "offers": report.offers,
        "accepted": report.accepted,
        "declined": declined,
        "executors": {
            "placed": report.placed, "finished": finished, "failed": failed, "killed": killed,
            "lost": lost,
        },
        "placement_latency": latency(&report.placement_latency),
        "launch_latency": latency(&report.launch_latency),
        "spread": report.spread,
        "spread_at_ms": report.spread_at.as_millis(),
        "drain": drain,
        "fingerprint": format!("{:016x}", report.fingerprint),
        "violation": broken.as_ref().map(|broken| violation(broken, shortened)),
        "again": task.again,
        "report": order.report.as_ref().map(|target| target.path().to_string_lossy()),
        "real_ms": millis(*took),
        "steps_per_real_second": per_second(report.steps, *took),
        "offers_per_real_second": per_second(report.offers, *took),
    })
}

/// A search.
pub(super) fn search(
    findings: &Findings<'_>,
    shortened: Option<&Shortened>,
    order: &Order,
) -> Value {
    let Findings { hunt, seeds, steps, offers, took, stopped_by, broken, .. } = findings;
    let broken = broken.as_ref();
    let file = order.scenario_file.as_ref().filter(|_| broken.is_some() || hunt.seeds == 1);
    json!({
        "first_seed": hunt.first,
        "seeds": hunt.seeds,
        "seeds_played": seeds,
        "severity": hunt.severity.to_string(),
        "steps": steps,
        "offers": offers,
        "stopped_by": stopped_by,
        "failed_seed": broken.map(|(seed, _)| seed),
        "violation": broken.map(|(_, broken)| violation(broken, shortened)),
        "again": broken.map(|(seed, _)| hunt.again(*seed)),
        "scenario_file": file.map(|target| target.path().to_string_lossy()),
        "real_ms": millis(*took),
        "seeds_per_real_minute": per_second(60 * seeds, *took),
    })
}

fn violation(broken: &Broken, shortened: Option<&Shortened>) -> Value {
    json!({
        "invariant": broken.invariant,
        "what": broken.what,
        "at_ms": broken.at.as_millis(),
        "step": broken.step,
        "shortened": shortened.map(|shortened| shortened.scenario.to_string()),
        "shortening_runs": shortened.map(|shortened| shortened.runs),
    })
}

fn latency(latencies: &Latencies) -> Value {
    json!({
        "count": latencies.count(),
        "p50_ms": millis(latencies.quantile(0.5)),
        "p99_ms": millis(latencies.quantile(0.99)),
        "max_ms": millis(latencies.longest()),
    })
}

fn millis(duration: Duration) -> u64 {
    Timestamp::ORIGIN.plus(duration).as_millis()
}
