//! Sentences about a stalled run and about declined offers. As in `sentence.rs`, they contain the cluster's text as it
//! is.

use std::time::Duration;

use offermill::{ClusterLack, Declined, Miss, Timestamp};

use crate::model::waiting::{REASONS_MAX, Stall, StartDelays, relevant_miss};
use crate::text::format::{age, count, grouped};

/// The least time without offers that is mentioned.
const NO_OFFERS_MIN: Duration = Duration::from_secs(5);
/// The same if there are misses to mention: refused resources are offered again only after their refusal has expired.
const NO_OFFERS_BESIDE_MISSES_MIN: Duration = Duration::from_secs(30);

/// As in `waiting for 1 more executor: too few cores (agent-1: 0.5 of 64 cores), no agent has 64 cores for executors,
/// the largest has 16 (agent-2)`.
pub(crate) fn stall_sentence(stall: &Stall) -> String {
    let Stall { explanation, no_offers_hint: hint, unconnected, delays } = stall;
    if let Some(why) = unconnected {
        return format!("{}: {why}", explanation.headline());
    }
    let unstarted = unstarted_sentence(delays);
    if explanation.wanted == 0 && !unstarted.is_empty() {
        return unstarted;
    }
    let and = if unstarted.is_empty() { "" } else { "; " };
    if let Some(why) = &delays.denied {
        return format!("{}: {why}{and}{unstarted}", explanation.headline());
    }
    let misses = explanation.declined.iter().filter_map(relevant_miss).take(REASONS_MAX);
    let mut why: Vec<String> =
        misses.map(|(kind, miss)| format!("{} ({})", kind.as_str(), about(miss))).collect();
    why.extend(explanation.lacks.iter().map(lack_sentence));
    let silence = explanation.last_offers.map(|last| explanation.at.since(last));
    let silent = match silence {
        None => Some("no offers came yet".to_owned()),
        Some(silence)
            if silence
                >= if why.is_empty() { NO_OFFERS_MIN } else { NO_OFFERS_BESIDE_MISSES_MIN } =>
        {
            Some(format!("no offers for {}", age(silence)))
        }
        Some(_) => None,
    };
    why.extend(silent.map(|silent| match hint.as_ref().filter(|_| why.is_empty()) {
        Some(hint) => format!("{silent}; {hint}"),
        None => silent,
    }));
    let colon = if why.is_empty() { "" } else { ": " };
    format!("{}{colon}{}{and}{unstarted}", explanation.headline(), why.join(", "))
}

/// As in `2 executors have not started: 0/3 nodes are available: 3 Insufficient cpu`.
fn unstarted_sentence(delays: &StartDelays) -> String {
    let all: u64 = delays.unstarted.iter().map(|(_, executors)| executors).sum();
    let have = if all == 1 { "has" } else { "have" };
    let head = format!("{} {have} not started", count(all, "executor"));
    match &delays.unstarted[..] {
        [] => String::new(),
        [(why, _)] => format!("{head}: {why}"),
        several => {
            let reasons = several.iter().take(REASONS_MAX);
            let reasons: Vec<String> =
                reasons.map(|(why, executors)| format!("{why} ({executors})")).collect();
            format!("{head}: {}", reasons.join(", "))
        }
    }
}

/// As in `no agent has 64 cores for executors, the largest has 16 (agent-2)`.
fn lack_sentence(lack: &ClusterLack) -> String {
    match lack.agent() {
        Some(agent) => match &agent.hostname {
            Some(name) => format!("{} ({name})", lack.why()),
            None => format!("{} (agent {})", lack.why(), agent.agent_id),
        },
        None => lack.why(),
    }
}

/// As in `38 too few cores, nearest agent-1: 0.5 of 1 core, 2 s before the end`.
pub(crate) fn declined_sentence(declined: &Declined, end: Timestamp) -> String {
    let offers = grouped(declined.offers);
    let kind = declined.kind.as_str();
    let nearest = declined.nearest.as_ref().map(|miss| {
        let before = age(end.since(miss.at));
        let which = if miss.reason.is_measured() { "nearest" } else { "the last" };
        format!(", {which} {}, {before} before the end", about(miss))
    });
    format!("{offers} {kind}{}", nearest.unwrap_or_default())
}

/// As in `agent-1: 0.5 of 1 core`.
fn about(miss: &Miss) -> String {
    let why = miss.why();
    let kind = miss.reason.kind().as_str();
    let colon = if why == kind { String::new() } else { format!(": {why}") };
    match (&miss.hostname, &miss.agent_id) {
        (Some(name), _) => format!("{name}{colon}"),
        (None, Some(id)) => format!("agent {id}{colon}"),
        (None, None) => why,
    }
}
