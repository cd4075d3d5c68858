//! The results of `offermill simulate --json`: one JSON object per run or search.

use std::time::Duration;

use offermill::Timestamp;
use offermill::cluster::simulated::{InvariantViolation, Latencies};
use serde_json::{Map, Value, json};

use super::numbers::per_second;
use super::options::{ScenarioOptions, SimulateOptions};
use super::result::{RunResult, SearchResult, Shortened};

/// The object for one scenario.
pub(super) fn run(
    result: &RunResult<'_>,
    shortened: Option<&Shortened>,
    options: &SimulateOptions,
) -> Value {
    let RunResult {
        options: ScenarioOptions { scenario, again, .. },
        report,
        took,
        stopped_by,
        broken,
    } = result;
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
        "seed": scenario.seed,
        "agents": scenario.agents,
        "executor_limit": scenario.executors,
        "faults": scenario.faults.len(),
        "healed_at_ms": scenario.healed_at.as_millis(),
        "ended_at_ms": report.ended_at.as_millis(),
        "stopped_by": stopped_by.map(|(name, _)| name),
        "stopped_at_ms": stopped_by.map(|(_, at)| at.as_millis()),
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
        "again": again,
        "report": options.report.as_ref().map(|file| file.path().to_string_lossy()),
        "real_ms": millis(*took),
        "steps_per_real_second": per_second(report.steps, *took),
        "offers_per_real_second": per_second(report.offers, *took),
    })
}

/// The object for a search.
pub(super) fn search(
    result: &SearchResult<'_>,
    shortened: Option<&Shortened>,
    options: &SimulateOptions,
) -> Value {
    let SearchResult { options: search, seeds, steps, offers, took, stopped_by, broken, .. } =
        result;
    let broken = broken.as_ref();
    let file = options.scenario_file.as_ref().filter(|_| broken.is_some() || search.seeds == 1);
    json!({
        "first_seed": search.first,
        "seeds": search.seeds,
        "seeds_played": seeds,
        "severity": search.severity.to_string(),
        "steps": steps,
        "offers": offers,
        "stopped_by": stopped_by,
        "failed_seed": broken.map(|(seed, _)| seed),
        "violation": broken.map(|(_, broken)| violation(broken, shortened)),
        "again": broken.map(|(seed, _)| search.again(*seed)),
        "scenario_file": file.map(|file| file.path().to_string_lossy()),
        "real_ms": millis(*took),
        "seeds_per_real_minute": per_second(60 * seeds, *took),
    })
}

fn violation(broken: &InvariantViolation, shortened: Option<&Shortened>) -> Value {
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
