//! The plots of a report, each with a title and a sentence that says what one sees.

use offermill::Timestamp;
use offermill::cluster::simulated::{Latencies, Sample};

use super::super::facts::spread;
use super::super::figures::{moment, percent, span, whole};
use super::super::world::Outcome;
use super::bars;
use super::over_time::{TimeAxis, greatest};
use super::text::{escape, tied};
use super::tracks::{Track, rates, values};
use crate::text::format::grouped;

/// A line of a legend: class and name.
type Key = (&'static str, &'static str);

const FAULTS: Key = ("fault", "faults");

/// All plots, in the order of reading.
pub(super) fn figures(outcome: &Outcome<'_>) -> Vec<String> {
    let axis = TimeAxis::of(outcome);
    vec![
        executors(outcome, &axis),
        cores(outcome, &axis),
        offers(outcome, &axis),
        agents(outcome, &axis),
        declines(outcome),
        placement(outcome),
        launch(outcome),
        agents_by_executors(outcome),
    ]
}

fn figure(title: &str, sentence: &str, keys: &[Key], plot: &str) -> String {
    let mut html = format!(
        "<figure>\n<figcaption><h2>{title}</h2><p>{}</p></figcaption>\n",
        escape(&tied(sentence))
    );
    if !keys.is_empty() {
        html.push_str("<ul class=\"legend\">");
        for (class, name) in keys {
            html.push_str(&format!("<li><span class=\"key {class}\"></span>{name}</li>"));
        }
        html.push_str("</ul>\n");
    }
    html.push_str(plot);
    html.push_str("</figure>\n");
    html
}

fn times(outcome: &Outcome<'_>) -> Vec<u64> {
    outcome.report.samples.iter().map(|sample| sample.at.as_millis()).collect()
}

fn at(sample: &Sample) -> Timestamp {
    sample.at
}

/// A plot over time with its legend, to which faults belong if there are any.
fn over_time(
    outcome: &Outcome<'_>,
    axis: &TimeAxis,
    title: &str,
    unit: &str,
    sentence: &str,
    (times, tracks): (Vec<u64>, Vec<Track>),
) -> String {
    let mut keys: Vec<Key> = tracks.iter().map(|track| (track.class, track.name)).collect();
    if !outcome.report.marks.is_empty() {
        keys.push(FAULTS);
    }
    let plot = axis.plot(&format!("{title}. {sentence}"), unit, times, tracks);
    figure(title, sentence, &keys, &plot)
}

fn executors(outcome: &Outcome<'_>, axis: &TimeAxis) -> String {
    let samples = &outcome.report.samples;
    let full = samples.iter().find(|sample| sample.limit > 0 && sample.executors >= sample.limit);
    let most = greatest(samples, at, |sample| sample.executors);
    let sentence = match (full, most) {
        (Some(full), _) => {
            let limit = grouped(full.limit.into());
            format!("The limit of {limit} was reached after {}.", moment(full.at))
        }
        (None, Some((at, most))) => {
            let limit = grouped(outcome.task.scenario.executors.into());
            format!("{} of {limit} at most, after {}.", grouped(most.into()), moment(at))
        }
        (None, None) => "Nothing was measured.".to_owned(),
    };
    let tracks = vec![
        Track::line("limit", "limit", values(samples, |sample| sample.limit.into())).stepped(),
        Track::line("running", "running", values(samples, |sample| sample.running.into())).filled(),
        Track::line(
            "counted by the kernel",
            "counted",
            values(samples, |sample| sample.executors.into()),
        ),
    ];
    let data = (times(outcome), tracks);
    over_time(outcome, axis, "Executors over time", "executors", &sentence, data)
}

fn cores(outcome: &Outcome<'_>, axis: &TimeAxis) -> String {
    let samples = &outcome.report.samples;
    let sentence = match greatest(samples, at, |sample| sample.cores.millis()) {
        Some((at, most)) => {
            format!("{} at most, after {}.", whole(most / 1000, "core"), moment(at))
        }
        None => "Nothing was measured.".to_owned(),
    };
    let cores = values(samples, |sample| sample.cores.millis() as f64 / 1000.0);
    let track = Track::line("counted by the kernel", "counted", cores).filled();
    let data = (times(outcome), vec![track]);
    over_time(outcome, axis, "Cores over time", "cores", &sentence, data)
}

fn offers(outcome: &Outcome<'_>, axis: &TimeAxis) -> String {
    let report = &outcome.report;
    let (times, rates) = rates(&report.samples, |sample| sample.offers);
    let seconds = report.ended_at.as_millis() as f64 / 1000.0;
    let mean = grouped((report.offers as f64 / seconds.max(0.001)) as u64);
    let most = grouped(rates.iter().copied().fold(0.0, f64::max) as u64);
    let sentence = format!("{mean} a virtual second on average, {most} at most.");
    let tracks = vec![Track::line("offers a second", "counted", rates).filled()];
    over_time(outcome, axis, "Offers per second", "offers/s", &sentence, (times, tracks))
}

fn agents(outcome: &Outcome<'_>, axis: &TimeAxis) -> String {
    let samples = &outcome.report.samples;
    let all = grouped(outcome.task.scenario.agents.into());
    let sentence = match greatest(samples, at, |sample| std::cmp::Reverse(sample.agents_up)) {
        Some((at, least)) if least.0 < outcome.task.scenario.agents => {
            format!("{} of {all} at worst, at {}.", grouped(least.0.into()), moment(at))
        }
        Some(_) => format!("All {all}, all the time."),
        None => "Nothing was measured.".to_owned(),
    };
    let up = values(samples, |sample| sample.agents_up.into());
    let track = Track::line("up and in reach", "running", up).filled();
    let data = (times(outcome), vec![track]);
    over_time(outcome, axis, "Agents up over time", "agents", &sentence, data)
}

fn declines(outcome: &Outcome<'_>) -> String {
    let declines = &outcome.report.declines;
    let all: u64 = declines.iter().map(|(_, offers)| offers).sum();
    let sentence = match declines.iter().max_by_key(|(_, offers)| *offers) {
        Some((kind, most)) if *most > 0 => {
            let (share, kind) = (percent(*most, all), kind.as_str());
            format!("Of {}, {share}: {kind}.", whole(all, "declined offer"))
        }
        _ => "None was declined.".to_owned(),
    };
    figure("Declined offers by reason", &sentence, &[], &bars::declines(declines))
}

fn placement(outcome: &Outcome<'_>) -> String {
    let latencies = &outcome.report.placement_latency;
    let sentence = match parts(latencies) {
        Some((half, most)) => {
            format!("From being wanted to being placed: half within {half}, 99 % within {most}.")
        }
        None => "No executor was placed.".to_owned(),
    };
    let plot = bars::latencies(&format!("Placement latency. {sentence}"), latencies);
    figure("Placement latency", &sentence, &[], &plot)
}

fn launch(outcome: &Outcome<'_>) -> String {
    let latencies = &outcome.report.launch_latency;
    let sentence = match parts(latencies) {
        Some((half, most)) => {
            format!(
                "From being placed to being seen running: half within {half}, 99 % within {most}."
            )
        }
        None => "No executor was seen running.".to_owned(),
    };
    let plot = bars::latencies(&format!("Launch latency. {sentence}"), latencies);
    figure("Launch latency", &sentence, &[], &plot)
}

fn parts(latencies: &Latencies) -> Option<(String, String)> {
    let part = |part| span(latencies.quantile(part));
    (latencies.count() > 0).then(|| (part(0.5), part(0.99)))
}

fn agents_by_executors(outcome: &Outcome<'_>) -> String {
    let mut sentence = spread(outcome);
    sentence.push('.');
    if let Some(first) = sentence.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    let label = format!("Executors an agent. {sentence}");
    let plot = bars::spread(&label, &outcome.report.spread);
    figure("Spread: executors an agent", &sentence, &[], &plot)
}
