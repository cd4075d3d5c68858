//! The HTML report of `offermill simulate --report`: one self-contained file with plots as inline SVG. Its script only
//! shows values under the pointer.
//!
//! The plots are not drawn by a plotting crate: their colours must follow the reader's light or dark scheme, so lines
//! and areas have CSS classes, and the script needs the values.

mod bars;
mod canvas;
mod curves;
mod html;
mod plots;
mod scale;
mod timeline;

use offermill::cluster::simulated::Mark;

use super::numbers::{moment, per_second, rough, span};
use super::result::RunResult;
use super::rows::{CheckResult, check_result, real_time, rows};
use crate::text::format::{count, grouped, passed};

use html::{escape, truncate, with_no_break_spaces};

/// The maximum number of cluster events that are listed.
const MARKS_MAX: usize = 2000;
/// The maximum length of an event's description, in bytes.
const MARK_BYTES_MAX: usize = 160;
/// The maximum length of the scenario's text in the report, in bytes.
const SCENARIO_BYTES_MAX: usize = 300_000;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("hover.js");

/// Renders the report.
pub(super) fn page(result: &RunResult<'_>) -> String {
    let title = escape(&result.options.title);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>{title}: offermill simulate</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
    );
    html.push_str(&header(result));
    html.push_str(&tiles(result));
    html.push_str("<section class=\"plots\" aria-label=\"Plots\">\n");
    for plot in plots::plots(result) {
        html.push_str(&plot);
    }
    html.push_str("</section>\n");
    html.push_str(&summary(result));
    html.push_str(&cluster_events(&result.report.marks));
    html.push_str(&reproduction(result));
    html.push_str(&format!(
        "<footer>Written by offermill {}. Times on axes are virtual.</footer>\n</main>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    ));
    html
}

fn header(result: &RunResult<'_>) -> String {
    let (size, rest) = result.options.title.split_once(" executors, ").unwrap_or_default();
    let (heading, lead) = match size {
        "" => (result.options.title.clone(), String::new()),
        size => (format!("{size} executors"), rest.to_owned()),
    };
    let (mut sentence, checked) = check_result(result);
    if let Some(broken) = &result.broken {
        let at = moment(broken.at);
        let step = grouped(broken.step);
        sentence = format!("{sentence}: {}, at {at}, step {step}", broken.what);
    }
    let class = match checked {
        CheckResult::NoViolation => "good",
        CheckResult::Violation => "bad",
        CheckResult::NotChecked => "unknown",
    };
    format!(
        "<header>\n<p class=\"kicker\">offermill simulate</p>\n<h1>{}</h1>\n<p class=\"lead\">{}</p>\n\
         <p class=\"verdict {class}\">{}</p>\n</header>\n",
        escape(&heading),
        escape(&lead),
        escape(&sentence)
    )
}

fn tiles(result: &RunResult<'_>) -> String {
    let report = &result.report;
    let tile = |name: &str, value: String, note: String| {
        format!(
            "<div class=\"tile\"><span class=\"name\">{name}</span>\
             <span class=\"value\">{}</span><span class=\"note\">{}</span></div>\n",
            escape(&value),
            escape(&note)
        )
    };
    let ended: u64 = report.ended.iter().sum();
    let p99 = |latencies: &offermill::cluster::simulated::Latencies| match latencies.count() {
        0 => ("never".to_owned(), String::new()),
        _ => (span(latencies.quantile(0.99)), format!("p50 {}", span(latencies.quantile(0.5)))),
    };
    let placement = p99(&report.placement_latency);
    let launch = p99(&report.launch_latency);
    let drain = match &report.drained {
        Some(drained) => {
            let left = match drained.left {
                0 => "no executor was left".to_owned(),
                left => format!("{} left", count(left.into(), "executor")),
            };
            (span(drained.over_at.since(drained.closed_at)), left)
        }
        None => ("none".to_owned(), "not reached".to_owned()),
    };
    let speed = rough(per_second(report.offers, result.took));
    let mut html = String::from("<section class=\"tiles\" aria-label=\"Figures\">\n");
    html.push_str(&tile(
        "Executors placed",
        grouped(report.placed),
        format!("{} ended", grouped(ended)),
    ));
    html.push_str(&tile(
        "Offers answered",
        grouped(report.offers),
        format!("{speed} per real second"),
    ));
    html.push_str(&tile("Placement, p99", placement.0, placement.1));
    html.push_str(&tile("Launch, p99", launch.0, launch.1));
    html.push_str(&tile("Drain", drain.0, drain.1));
    let real = format!("{} of real time", passed(result.took));
    html.push_str(&tile("Virtual time", moment(report.ended_at), real));
    html.push_str("</section>\n");
    html
}

fn summary(result: &RunResult<'_>) -> String {
    let mut html = String::from(
        "<section class=\"card\">\n<h2>Summary</h2>\n<table class=\"facts\"><tbody>\n",
    );
    for row in rows(result).into_iter().chain([real_time(result)]) {
        // Remove the spaces that align columns on a terminal.
        let words = row.lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let lines: Vec<String> = words.map(|words| words.join(" ")).collect();
        let text = escape(&with_no_break_spaces(&lines.join("; ")));
        html.push_str(&format!("<tr><th scope=\"row\">{}</th><td>{text}</td></tr>\n", row.heading));
    }
    html.push_str("</tbody></table>\n</section>\n");
    html
}

/// The events of the cluster, as a list that can be expanded.
fn cluster_events(marks: &[Mark]) -> String {
    if marks.is_empty() {
        return String::new();
    }
    let mut html = format!(
        "<details class=\"card\">\n<summary>Events of the cluster: {}</summary>\n\
         <div class=\"scroll\"><table><tbody>\n",
        count(marks.len() as u64, "event")
    );
    for mark in marks.iter().take(MARKS_MAX) {
        let (what, is_cut) = truncate(&mark.what, MARK_BYTES_MAX);
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

/// The command that reproduces the run, and the scenario.
fn reproduction(result: &RunResult<'_>) -> String {
    let scenario = result.options.scenario.to_string();
    let (shown, is_cut) = truncate(scenario.trim_end(), SCENARIO_BYTES_MAX);
    let more = match is_cut {
        true => {
            "<p class=\"nothing\">Too long to be shown in full; --write-scenario saves it.</p>\n"
        }
        false => "",
    };
    format!(
        "<section class=\"card\">\n<h2>Run it again</h2>\n<pre>{}</pre>\n</section>\n\
         <details class=\"card\">\n<summary>The scenario</summary>\n<pre>{}</pre>\n{more}</details>\n",
        escape(&result.options.again),
        escape(shown)
    )
}
