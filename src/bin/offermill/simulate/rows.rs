//! The rows of a summary: headings and sentences about one simulation, for the terminal and for the HTML report.

use offermill::cluster::simulated::{Checks, InvariantViolation, Latencies};

use super::numbers::{moment, per_second, percent, span};
use super::result::RunResult;
use crate::text::format::{count, grouped, passed};

/// The interval that the placement latency measures. It includes waiting for an offer that fits.
const WANTED_TO_PLACED: &str = "from being wanted to being placed";
/// The interval that the launch latency measures.
const PLACED_TO_RUNNING: &str = "from being placed to being seen running";

/// A heading and its lines.
pub(super) struct SummaryRow {
    pub(super) heading: &'static str,
    pub(super) lines: Vec<String>,
}

fn row(heading: &'static str, line: String) -> SummaryRow {
    SummaryRow { heading, lines: vec![line] }
}

/// The result of checking the invariants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckResult {
    NoViolation,
    Violation,
    NotChecked,
}

/// Returns whether invariants held, with a sentence.
pub(super) fn check_result(result: &RunResult<'_>) -> (String, CheckResult) {
    match &result.broken {
        Some(broken) => (format!("{} violated", invariant(broken)), CheckResult::Violation),
        None if result.options.checks == Checks::Off => {
            ("not checked".to_owned(), CheckResult::NotChecked)
        }
        None => ("no violation".to_owned(), CheckResult::NoViolation),
    }
}

/// Names the invariant by its number in the table of invariants; 9 and 29 are liveness.
pub(super) fn invariant(broken: &InvariantViolation) -> String {
    format!("invariant {}", broken.invariant)
}

/// The rows that are the same for equal scenarios.
pub(super) fn rows(result: &RunResult<'_>) -> Vec<SummaryRow> {
    let report = &result.report;
    vec![
        row("virtual time", times(result)),
        row("offers", offers(result)),
        SummaryRow { heading: "declined", lines: declines(result) },
        row("executors", executors(result)),
        row("placement", latencies(WANTED_TO_PLACED, &report.placement_latency)),
        row("launch", latencies(PLACED_TO_RUNNING, &report.launch_latency)),
        row("spread", spread(result)),
        row("drain", drain(result)),
        row("checks", checks(result)),
        row("fingerprint", format!("{:016x}", report.fingerprint)),
    ]
}

/// The row that depends on the speed of this machine.
pub(super) fn real_time(result: &RunResult<'_>) -> SummaryRow {
    let RunResult { report, took, .. } = result;
    let virtual_time = report.ended_at.as_millis() as f64 / 1000.0;
    let times = virtual_time / took.as_secs_f64().max(0.001);
    let speed = if times < 10.0 { format!("{times:.1}") } else { grouped(times as u64) };
    let steps = grouped(per_second(report.steps, *took));
    let offers = grouped(per_second(report.offers, *took));
    let took = passed(*took);
    row("real time", format!("{took}, {speed} times as fast: {steps} steps/s, {offers} offers/s"))
}

fn times(result: &RunResult<'_>) -> String {
    let RunResult { report, options, .. } = result;
    let faults = count(options.scenario.faults.len() as u64, "fault");
    let healed = moment(options.scenario.healed_at);
    let stopped = match result.stopped_by {
        Some((name, at)) => format!("; shut down by {name} at {}", moment(at)),
        None => String::new(),
    };
    let ended = moment(report.ended_at);
    let steps = count(report.steps, "step");
    format!("{ended}, {faults} until {healed}{stopped}; {steps}")
}

fn offers(result: &RunResult<'_>) -> String {
    let report = &result.report;
    let accepted = grouped(report.accepted);
    let declined: u64 = report.declines.iter().map(|(_, offers)| offers).sum();
    format!(
        "{} answered: {accepted} accepted, {} declined",
        grouped(report.offers),
        grouped(declined)
    )
}

fn declines(result: &RunResult<'_>) -> Vec<String> {
    let mut reasons = result.report.declines.clone();
    reasons.retain(|(_, offers)| *offers > 0);
    reasons.sort_by_key(|(_, offers)| std::cmp::Reverse(*offers));
    let all = reasons.iter().map(|(_, offers)| offers).sum();
    let widest = reasons.first().map_or(0, |(_, offers)| grouped(*offers).len());
    let line = |(kind, offers): &(offermill::ReasonKind, u64)| {
        let number = grouped(*offers);
        let part = percent(*offers, all);
        format!("{number:>widest$}  {part:>6}  {}", kind.as_str())
    };
    if reasons.is_empty() { vec!["none".to_owned()] } else { reasons.iter().map(line).collect() }
}

fn executors(result: &RunResult<'_>) -> String {
    let [finished, failed, killed, lost] = result.report.ended.map(grouped);
    let placed = grouped(result.report.placed);
    format!("{placed} placed; {finished} finished, {failed} failed, {killed} killed, {lost} lost")
}

fn latencies(interval: &str, latencies: &Latencies) -> String {
    if latencies.count() == 0 {
        return "never".to_owned();
    }
    let p50 = span(latencies.quantile(0.5));
    let p99 = span(latencies.quantile(0.99));
    let longest = span(latencies.longest());
    let executors = count(latencies.count(), "executor");
    format!("{interval}: p50 {p50}, p99 {p99}, longest {longest} ({executors})")
}

/// The range of executors per agent, and the most frequent number.
pub(super) fn spread(result: &RunResult<'_>) -> String {
    let spread = &result.report.spread;
    let most = spread.iter().max_by_key(|(_, agents)| *agents);
    let (Some((least, _)), Some((greatest, _)), Some((usual, agents))) =
        (spread.first(), spread.last(), most)
    else {
        return "no executor ran".to_owned();
    };
    let all: u64 = spread.iter().map(|(_, agents)| u64::from(*agents)).sum();
    let at = moment(result.report.spread_at);
    let agents = grouped((*agents).into());
    let all = count(all, "agent");
    let range = match least == greatest {
        true => format!("{usual} on each agent"),
        false => format!("{least} to {greatest} per agent, {usual} on {agents} of {all}"),
    };
    format!("{range}, when there were most, at {at}")
}

fn drain(result: &RunResult<'_>) -> String {
    let Some(drained) = &result.report.drained else {
        return "not reached".to_owned();
    };
    if result.broken.is_some() && drained.over_at == drained.closed_at {
        return "not finished".to_owned();
    }
    let took = span(drained.over_at.since(drained.closed_at));
    let timeout = passed(result.options.scenario.shutdown_timeout);
    match drained.left {
        0 => format!("{took}, no executor was left"),
        left => format!("{took}, {} had not ended in {timeout}", count(left.into(), "executor")),
    }
}

fn checks(result: &RunResult<'_>) -> String {
    match result.options.checks {
        Checks::Off => "none".to_owned(),
        Checks::EachStep => format!("after each of {}", count(result.report.steps, "step")),
        Checks::EverySecond => {
            let steps = count(result.report.steps, "step");
            let seconds = result.report.ended_at.since(offermill::Timestamp::ORIGIN).as_secs();
            let times = grouped(seconds);
            format!("sums after each of {steps}, everything every virtual second, {times} times")
        }
    }
}
