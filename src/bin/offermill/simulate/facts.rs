//! What there is to say about a run: headings and sentences, for the summary and the report.

use offermill::cluster::simulated::{Checks, Latencies};

use super::figures::{moment, per_second, percent, span, whole};
use super::violation::invariant;
use super::world::Outcome;
use crate::text::format::{grouped, passed};

/// What the placement latency measures. Waiting for an offer that fits is part of it.
const WANTED_TO_PLACED: &str = "from being wanted to being placed";
/// What the launch latency measures.
const PLACED_TO_RUNNING: &str = "from being placed to being seen running";

/// A heading and its lines.
pub(super) struct Fact {
    pub(super) heading: &'static str,
    pub(super) lines: Vec<String>,
}

fn fact(heading: &'static str, line: String) -> Fact {
    Fact { heading, lines: vec![line] }
}

/// What there is to think of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Good,
    Bad,
    /// Nothing was judged.
    Unknown,
}

/// How it ended.
pub(super) fn verdict(outcome: &Outcome<'_>) -> (String, Verdict) {
    match &outcome.broken {
        Some(broken) => (format!("{} violated", invariant(broken)), Verdict::Bad),
        None if outcome.task.checks == Checks::Off => ("not judged".to_owned(), Verdict::Unknown),
        None => ("no violation".to_owned(), Verdict::Good),
    }
}

/// What equal scenarios have in common.
pub(super) fn facts(outcome: &Outcome<'_>) -> Vec<Fact> {
    let report = &outcome.report;
    vec![
        fact("virtual time", times(outcome)),
        fact("offers", offers(outcome)),
        Fact { heading: "declined", lines: declines(outcome) },
        fact("executors", executors(outcome)),
        fact("placement", latencies(WANTED_TO_PLACED, &report.placement_latency)),
        fact("launch", latencies(PLACED_TO_RUNNING, &report.launch_latency)),
        fact("spread", spread(outcome)),
        fact("drain", drain(outcome)),
        fact("checks", checks(outcome)),
        fact("fingerprint", format!("{:016x}", report.fingerprint)),
    ]
}

/// What this machine had to do with it.
pub(super) fn real_time(outcome: &Outcome<'_>) -> Fact {
    let Outcome { report, took, .. } = outcome;
    let virtual_time = report.ended_at.as_millis() as f64 / 1000.0;
    let times = virtual_time / took.as_secs_f64().max(0.001);
    let (steps, offers) = (per_second(report.steps, *took), per_second(report.offers, *took));
    let (steps, offers) = (grouped(steps), grouped(offers));
    let speed = if times < 10.0 { format!("{times:.1}") } else { grouped(times as u64) };
    let took = passed(*took);
    fact("real time", format!("{took}, {speed} times as fast: {steps} steps/s, {offers} offers/s"))
}

fn times(outcome: &Outcome<'_>) -> String {
    let Outcome { report, task, .. } = outcome;
    let faults = whole(task.scenario.faults.len() as u64, "fault");
    let healed = moment(task.scenario.healed_at);
    let asked = match outcome.asked {
        Some((name, at)) => format!("; shut down by {name} at {}", moment(at)),
        None => String::new(),
    };
    let (ended, steps) = (moment(report.ended_at), whole(report.steps, "step"));
    format!("{ended}, {faults} until {healed}{asked}; {steps}")
}

fn offers(outcome: &Outcome<'_>) -> String {
    let report = &outcome.report;
    let accepted = grouped(report.accepted);
    let declined: u64 = report.declines.iter().map(|(_, offers)| offers).sum();
    format!(
        "{} answered: {accepted} accepted, {} declined",
        grouped(report.offers),
        grouped(declined)
    )
}

fn declines(outcome: &Outcome<'_>) -> Vec<String> {
    let mut reasons = outcome.report.declines.clone();
    reasons.retain(|(_, offers)| *offers > 0);
    reasons.sort_by_key(|(_, offers)| std::cmp::Reverse(*offers));
    let all = reasons.iter().map(|(_, offers)| offers).sum();
    let widest = reasons.first().map_or(0, |(_, offers)| grouped(*offers).len());
    let line = |(kind, offers): &(offermill::ReasonKind, u64)| {
        let (number, part) = (grouped(*offers), percent(*offers, all));
        format!("{number:>widest$}  {part:>6}  {}", kind.as_str())
    };
    if reasons.is_empty() { vec!["none".to_owned()] } else { reasons.iter().map(line).collect() }
}

fn executors(outcome: &Outcome<'_>) -> String {
    let [finished, failed, killed, lost] = outcome.report.ended.map(grouped);
    let placed = grouped(outcome.report.placed);
    format!("{placed} placed; {finished} finished, {failed} failed, {killed} killed, {lost} lost")
}

fn latencies(between: &str, latencies: &Latencies) -> String {
    if latencies.count() == 0 {
        return "never".to_owned();
    }
    let (half, most) = (span(latencies.quantile(0.5)), span(latencies.quantile(0.99)));
    let (longest, executors) = (span(latencies.longest()), whole(latencies.count(), "executor"));
    format!("{between}: p50 {half}, p99 {most}, longest {longest} ({executors})")
}

/// Between which numbers of executors agents had, and which was most frequent.
pub(super) fn spread(outcome: &Outcome<'_>) -> String {
    let spread = &outcome.report.spread;
    let most = spread.iter().max_by_key(|(_, agents)| *agents);
    let (Some((least, _)), Some((greatest, _)), Some((usual, agents))) =
        (spread.first(), spread.last(), most)
    else {
        return "no executor ran".to_owned();
    };
    let all: u64 = spread.iter().map(|(_, agents)| u64::from(*agents)).sum();
    let at = moment(outcome.report.spread_at);
    let agents = grouped((*agents).into());
    let all = whole(all, "agent");
    let range = match least == greatest {
        true => format!("{usual} on each agent"),
        false => format!("{least} to {greatest} an agent, {usual} on {agents} of {all}"),
    };
    format!("{range}, when there were most, at {at}")
}

fn drain(outcome: &Outcome<'_>) -> String {
    let Some(drained) = &outcome.report.drained else {
        return "it did not come to that".to_owned();
    };
    if outcome.broken.is_some() && drained.over_at == drained.closed_at {
        return "it was under way".to_owned();
    }
    let took = span(drained.over_at.since(drained.closed_at));
    let timeout = passed(outcome.task.scenario.shutdown_timeout);
    match drained.left {
        0 => format!("{took}, nobody was left"),
        left => format!("{took}, {} had not ended in {timeout}", whole(left.into(), "executor")),
    }
}

fn checks(outcome: &Outcome<'_>) -> String {
    let seconds = outcome.report.ended_at.since(offermill::Timestamp::ORIGIN);
    match outcome.task.checks {
        Checks::Off => "none".to_owned(),
        Checks::EachStep => format!("after each of {}", whole(outcome.report.steps, "step")),
        Checks::EverySecond => {
            let (steps, times) = (whole(outcome.report.steps, "step"), grouped(seconds.as_secs()));
            format!("sums after each of {steps}, everything every virtual second, {times} times")
        }
    }
}
