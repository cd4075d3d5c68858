//! The plots of a report, each with a title and a sentence that summarizes it.

use offermill::Timestamp;
use offermill::cluster::simulated::{Latencies, Sample};
use offermill::resources::MilliCpus;

use super::bars;
use super::curves::{Curve, rates, values};
use super::html::{escape, with_no_break_spaces};
use super::timeline::{TimeAxis, greatest};
use crate::simulate::numbers::{moment, percent, span};
use crate::simulate::result::RunResult;
use crate::simulate::rows::spread;
use crate::text::format::{count, grouped};

/// An entry of a legend: CSS class and name.
type LegendEntry = (&'static str, &'static str);

const FAULTS: LegendEntry = ("fault", "faults");

/// Renders all plots, in the order of the page.
pub(super) fn plots(result: &RunResult<'_>) -> Vec<String> {
    let axis = TimeAxis::of(result);
    vec![
        executors(result, &axis),
        cores(result, &axis),
        capacity(result, &axis),
        offers(result, &axis),
        agents(result, &axis),
        declines(result),
        placement(result),
        launch(result),
        agents_by_executors(result),
    ]
}

fn figure(title: &str, sentence: &str, legend: &[LegendEntry], plot: &str) -> String {
    let mut html = format!(
        "<figure>\n<figcaption><h2>{title}</h2><p>{}</p></figcaption>\n",
        escape(&with_no_break_spaces(sentence))
    );
    if !legend.is_empty() {
        html.push_str("<ul class=\"legend\">");
        for (class, name) in legend {
            html.push_str(&format!("<li><span class=\"key {class}\"></span>{name}</li>"));
        }
        html.push_str("</ul>\n");
    }
    html.push_str(plot);
    html.push_str("</figure>\n");
    html
}

fn times(result: &RunResult<'_>) -> Vec<u64> {
    result.report.samples.iter().map(|sample| sample.at.as_millis()).collect()
}

fn at(sample: &Sample) -> Timestamp {
    sample.at
}

/// Renders a plot over time with its legend. The legend contains faults if there are any.
fn over_time(
    result: &RunResult<'_>,
    axis: &TimeAxis,
    title: &str,
    unit: &str,
    sentence: &str,
    (times, curves): (Vec<u64>, Vec<Curve>),
) -> String {
    let mut legend: Vec<LegendEntry> =
        curves.iter().map(|curve| (curve.class, curve.name)).collect();
    if !result.report.marks.is_empty() {
        legend.push(FAULTS);
    }
    let plot = axis.plot(&format!("{title}. {sentence}"), unit, times, curves);
    figure(title, sentence, &legend, &plot)
}

fn executors(result: &RunResult<'_>, axis: &TimeAxis) -> String {
    let samples = &result.report.samples;
    let full = samples.iter().find(|sample| sample.limit > 0 && sample.executors >= sample.limit);
    let most = greatest(samples, at, |sample| sample.executors);
    let sentence = match (full, most) {
        (Some(full), _) => {
            let limit = grouped(full.limit.into());
            format!("The limit of {limit} was reached after {}.", moment(full.at))
        }
        (None, Some((at, most))) => {
            let limit = grouped(result.options.scenario.executors.into());
            format!("{} of {limit} at most, after {}.", grouped(most.into()), moment(at))
        }
        (None, None) => "Nothing was measured.".to_owned(),
    };
    let curves = vec![
        Curve::line("limit", "limit", values(samples, |sample| sample.limit.into())).stepped(),
        Curve::line("running", "running", values(samples, |sample| sample.running.into())).filled(),
        Curve::line(
            "counted by the kernel",
            "counted",
            values(samples, |sample| sample.executors.into()),
        ),
    ];
    let data = (times(result), curves);
    over_time(result, axis, "Executors over time", "executors", &sentence, data)
}

fn cores(result: &RunResult<'_>, axis: &TimeAxis) -> String {
    let samples = &result.report.samples;
    let sentence = match greatest(samples, at, |sample| sample.cores.millis()) {
        Some((at, most)) => {
            format!("{} at most, after {}.", count(most / 1000, "core"), moment(at))
        }
        None => "Nothing was measured.".to_owned(),
    };
    let cores = values(samples, |sample| sample.cores.millis() as f64 / 1000.0);
    let curve = Curve::line("counted by the kernel", "counted", cores).filled();
    let data = (times(result), vec![curve]);
    over_time(result, axis, "Cores over time", "cores", &sentence, data)
}

/// The cores of the agents that the kernel knows, as its picture of the capacity has them.
fn capacity(result: &RunResult<'_>, axis: &TimeAxis) -> String {
    let samples = &result.report.samples;
    let whole = |cores: MilliCpus| cores.millis() as f64 / 1000.0;
    let sentence = match greatest(samples, at, |sample| sample.capacity.offered.cores) {
        Some((when, most)) => {
            let offered = count(most.whole_cores(), "core");
            format!("Agents offered {offered} at most, after {}.", moment(when))
        }
        None => "Nothing was measured.".to_owned(),
    };
    let curves = vec![
        Curve::line("used", "counted", values(samples, |it| whole(it.capacity.used.cores)))
            .filled(),
        Curve::line("free", "running", values(samples, |it| whole(it.capacity.free.cores))),
        Curve::line(
            "free on excluded or suspect agents",
            "limit",
            values(samples, |it| whole(it.capacity.withheld.cores)),
        ),
    ];
    let data = (times(result), curves);
    over_time(result, axis, "Used and free cores over time", "cores", &sentence, data)
}

fn offers(result: &RunResult<'_>, axis: &TimeAxis) -> String {
    let report = &result.report;
    let (times, rates) = rates(&report.samples, |sample| sample.offers);
    let seconds = report.ended_at.as_millis() as f64 / 1000.0;
    let mean = grouped((report.offers as f64 / seconds.max(0.001)) as u64);
    let most = grouped(rates.iter().copied().fold(0.0, f64::max) as u64);
    let sentence = format!("{mean} per virtual second on average, {most} at most.");
    let curves = vec![Curve::line("offers per second", "counted", rates).filled()];
    over_time(result, axis, "Offers per second", "offers/s", &sentence, (times, curves))
}

fn agents(result: &RunResult<'_>, axis: &TimeAxis) -> String {
    let samples = &result.report.samples;
    let all = grouped(result.options.scenario.agents.into());
    let sentence = match greatest(samples, at, |sample| std::cmp::Reverse(sample.agents_up)) {
        Some((at, least)) if least.0 < result.options.scenario.agents => {
            format!("{} of {all} at worst, at {}.", grouped(least.0.into()), moment(at))
        }
        Some(_) => format!("All {all}, all the time."),
        None => "Nothing was measured.".to_owned(),
    };
    let up = values(samples, |sample| sample.agents_up.into());
    let curve = Curve::line("up and in reach", "running", up).filled();
    let data = (times(result), vec![curve]);
    over_time(result, axis, "Agents up over time", "agents", &sentence, data)
}

fn declines(result: &RunResult<'_>) -> String {
    let declines = &result.report.declines;
    let all: u64 = declines.iter().map(|(_, offers)| offers).sum();
    let sentence = match declines.iter().max_by_key(|(_, offers)| *offers) {
        Some((kind, most)) if *most > 0 => {
            let share = percent(*most, all);
            format!("Of {}, {share}: {}.", count(all, "declined offer"), kind.as_str())
        }
        _ => "None was declined.".to_owned(),
    };
    figure("Declined offers by reason", &sentence, &[], &bars::declines(declines))
}

fn placement(result: &RunResult<'_>) -> String {
    let latencies = &result.report.placement_latency;
    let sentence = match quantiles(latencies) {
        Some((half, most)) => {
            format!("From being wanted to being placed: half within {half}, 99 % within {most}.")
        }
        None => "No executor was placed.".to_owned(),
    };
    let plot = bars::latencies(&format!("Placement latency. {sentence}"), latencies);
    figure("Placement latency", &sentence, &[], &plot)
}

fn launch(result: &RunResult<'_>) -> String {
    let latencies = &result.report.launch_latency;
    let sentence = match quantiles(latencies) {
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

/// The latencies within which half and 99 % of executors stay, if there are any.
fn quantiles(latencies: &Latencies) -> Option<(String, String)> {
    let quantile = |part| span(latencies.quantile(part));
    (latencies.count() > 0).then(|| (quantile(0.5), quantile(0.99)))
}

fn agents_by_executors(result: &RunResult<'_>) -> String {
    let mut sentence = spread(result);
    sentence.push('.');
    if let Some(first) = sentence.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    let label = format!("Executors per agent. {sentence}");
    let plot = bars::spread(&label, &result.report.spread);
    figure("Spread: executors per agent", &sentence, &[], &plot)
}
