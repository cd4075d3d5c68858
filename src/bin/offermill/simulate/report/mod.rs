//! The report: one HTML file with plots, that needs nothing else and is complete without its script.
//!
//! The plots are drawn here and not by a plotting crate: their colours have to follow the reader's
//! light or dark scheme, so they are classes that a style sheet colours, and their values have to be
//! there for hovering.

mod bars;
mod canvas;
mod figures;
mod over_time;
mod scale;
mod text;
mod tracks;

use offermill::cluster::simulated::Mark;

use super::facts::{Verdict, facts, real_time, verdict};
use super::figures::{moment, per_second, rough, span, whole};
use super::world::Outcome;
use crate::text::format::grouped;

use text::{cut, escape, tied};

/// So many things that happened are listed.
const MARKS_MAX: usize = 2000;
/// So much of a thing's description.
const MARK_BYTES_MAX: usize = 160;
/// So much of a scenario's text is shown; the command makes the rest again.
const SCENARIO_BYTES_MAX: usize = 300_000;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("hover.js");

/// The page.
pub(super) fn page(outcome: &Outcome<'_>) -> String {
    let title = escape(&outcome.task.title);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>{title}: offermill simulate</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
    );
    html.push_str(&header(outcome));
    html.push_str(&tiles(outcome));
    html.push_str("<section class=\"plots\" aria-label=\"Plots\">\n");
    for figure in figures::figures(outcome) {
        html.push_str(&figure);
    }
    html.push_str("</section>\n");
    html.push_str(&summary(outcome));
    html.push_str(&happenings(&outcome.report.marks));
    html.push_str(&again(outcome));
    html.push_str(&format!(
        "<footer>Written by offermill {}. Times on axes are virtual.</footer>\n</main>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    ));
    html
}

fn header(outcome: &Outcome<'_>) -> String {
    let (size, rest) = outcome.task.title.split_once(" executors, ").unwrap_or_default();
    let (heading, lead) = match size {
        "" => (outcome.task.title.clone(), String::new()),
        size => (format!("{size} executors"), rest.to_owned()),
    };
    let (sentence, verdict) = verdict(outcome);
    let sentence = match &outcome.broken {
        Some(broken) => {
            let (at, step) = (moment(broken.at), grouped(broken.step));
            format!("{sentence}: {}, at {at}, step {step}", broken.what)
        }
        None => sentence,
    };
    let class = match verdict {
        Verdict::Good => "good",
        Verdict::Bad => "bad",
        Verdict::Unknown => "unknown",
    };
    format!(
        "<header>\n<p class=\"kicker\">offermill simulate</p>\n<h1>{}</h1>\n<p class=\"lead\">{}</p>\n\
         <p class=\"verdict {class}\">{}</p>\n</header>\n",
        escape(&heading),
        escape(&lead),
        escape(&sentence)
    )
}

fn tiles(outcome: &Outcome<'_>) -> String {
    let report = &outcome.report;
    let tile = |name: &str, value: String, note: String| {
        let (value, note) = (escape(&value), escape(&note));
        format!(
            "<div class=\"tile\"><span class=\"name\">{name}</span>\
             <span class=\"value\">{value}</span><span class=\"note\">{note}</span></div>\n"
        )
    };
    let ended: u64 = report.ended.iter().sum();
    let p99 = |latencies: &offermill::cluster::simulated::Latencies| match latencies.count() {
        0 => ("never".to_owned(), String::new()),
        _ => (span(latencies.quantile(0.99)), format!("p50 {}", span(latencies.quantile(0.5)))),
    };
    let (placement, launch) = (p99(&report.placement_latency), p99(&report.launch_latency));
    let drain = match &report.drained {
        Some(drained) => {
            let left = match drained.left {
                0 => "nobody was left".to_owned(),
                left => format!("{} left", whole(left.into(), "executor")),
            };
            (span(drained.over_at.since(drained.closed_at)), left)
        }
        None => ("none".to_owned(), "it did not come to that".to_owned()),
    };
    let speed = rough(per_second(report.offers, outcome.took));
    let mut html = String::from("<section class=\"tiles\" aria-label=\"Figures\">\n");
    html.push_str(&tile(
        "Executors placed",
        grouped(report.placed),
        format!("{} ended", grouped(ended)),
    ));
    html.push_str(&tile(
        "Offers answered",
        grouped(report.offers),
        format!("{speed} a real second"),
    ));
    html.push_str(&tile("Placement, p99", placement.0, placement.1));
    html.push_str(&tile("Launch, p99", launch.0, launch.1));
    html.push_str(&tile("Drain", drain.0, drain.1));
    let real = format!("{} of real time", crate::text::format::passed(outcome.took));
    html.push_str(&tile("Virtual time", moment(report.ended_at), real));
    html.push_str("</section>\n");
    html
}

fn summary(outcome: &Outcome<'_>) -> String {
    let mut html = String::from(
        "<section class=\"card\">\n<h2>Summary</h2>\n<table class=\"facts\"><tbody>\n",
    );
    for fact in facts(outcome).into_iter().chain([real_time(outcome)]) {
        // Columns are for a terminal.
        let words = fact.lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let lines: Vec<String> = words.map(|words| words.join(" ")).collect();
        let text = escape(&tied(&lines.join("; ")));
        html.push_str(&format!(
            "<tr><th scope=\"row\">{}</th><td>{text}</td></tr>\n",
            fact.heading
        ));
    }
    html.push_str("</tbody></table>\n</section>\n");
    html
}

/// What happened to the cluster, as a list that can be opened.
fn happenings(marks: &[Mark]) -> String {
    if marks.is_empty() {
        return String::new();
    }
    let mut html = format!(
        "<details class=\"card\">\n<summary>What happened to the cluster: {}</summary>\n\
         <div class=\"scroll\"><table><tbody>\n",
        whole(marks.len() as u64, "event")
    );
    for mark in marks.iter().take(MARKS_MAX) {
        let (what, is_cut) = cut(&mark.what, MARK_BYTES_MAX);
        let more = if is_cut { "…" } else { "" };
        html.push_str(&format!(
            "<tr><td class=\"when\">{}</td><td>{}{more}</td></tr>\n",
            moment(mark.at),
            escape(what)
        ));
    }
    if marks.len() > MARKS_MAX {
        let more = grouped((marks.len() - MARKS_MAX) as u64);
        html.push_str(&format!("<tr><td class=\"when\">…</td><td>and {more} more</td></tr>\n"));
    }
    html.push_str("</tbody></table></div>\n</details>\n");
    html
}

fn again(outcome: &Outcome<'_>) -> String {
    let scenario = outcome.task.scenario.to_string();
    let (shown, is_cut) = cut(scenario.trim_end(), SCENARIO_BYTES_MAX);
    let more = match is_cut {
        true => {
            "<p class=\"nothing\">Too long to be shown in full; --write-scenario saves it.</p>\n"
        }
        false => "",
    };
    format!(
        "<section class=\"card\">\n<h2>Run it again</h2>\n<pre>{}</pre>\n</section>\n\
         <details class=\"card\">\n<summary>The scenario</summary>\n<pre>{}</pre>\n{more}</details>\n",
        escape(&outcome.task.again),
        escape(shown)
    )
}
