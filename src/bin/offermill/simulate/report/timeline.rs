//! Plots over virtual time, with marks for faults below the axis.

use offermill::Timestamp;
use offermill::cluster::simulated::Mark;
use serde_json::json;

use super::canvas::{Canvas, LEFT, RIGHT, WIDTH};
use super::curves::{Curve, thin};
use super::scale::{Tick, number_ticks, time_ticks};
use crate::simulate::numbers::moment;
use crate::simulate::result::RunResult;

/// The number of marks that fit beside each other.
const MARKS: u64 = 110;
/// The maximum number of faults that the text of a mark names.
const NAMED: usize = 4;
/// The marks that are drawn as vertical lines.
const HEALED: &str = "healed";
const SHUTDOWN: &str = "shutdown";

/// The time axis of a run.
pub(super) struct TimeAxis {
    end: u64,
    healed: Option<u64>,
    closed: Option<u64>,
    /// Marks, each for the faults of one part of the axis: from, to, weight, text.
    marks: Vec<(f64, f64, f64, String)>,
}

impl TimeAxis {
    pub(super) fn of(result: &RunResult<'_>) -> TimeAxis {
        let report = &result.report;
        let end = report.ended_at.as_millis().max(1);
        let healed = Some(result.options.scenario.healed_at.as_millis()).filter(|at| *at < end);
        let closed = report.drained.map(|drained| drained.closed_at.as_millis());
        TimeAxis { end, healed, closed, marks: merge(&report.marks, end) }
    }

    /// Draws curves over time.
    pub(super) fn plot(
        &self,
        label: &str,
        unit: &str,
        mut times: Vec<u64>,
        mut curves: Vec<Curve>,
    ) -> String {
        thin(&mut times, &mut curves);
        let most = curves.iter().flat_map(|curve| &curve.values).copied().fold(0.0, f64::max);
        let hover = self.hover(&times, &curves);
        let mut canvas = Canvas::new(label, unit, &number_ticks(most), &hover);
        let part = |millis: u64| millis as f64 / self.end as f64;
        let points = |curve: &Curve| -> Vec<(f64, f64)> {
            times.iter().map(|at| part(*at)).zip(curve.values.iter().copied()).collect()
        };
        for curve in curves.iter().filter(|curve| curve.is_filled) {
            canvas.area(curve.class, &points(curve));
        }
        for curve in &curves {
            canvas.line(curve.class, &points(curve), curve.is_stepped);
        }
        for (at, label, row) in [(self.healed, HEALED, 1), (self.closed, SHUTDOWN, 0)] {
            if let Some(at) = at {
                canvas.rule(label, part(at), label, row);
            }
        }
        for (from, to, weight, text) in &self.marks {
            canvas.mark(*from, *to, *weight, text);
        }
        let ticks: Vec<Tick> = time_ticks(self.end)
            .into_iter()
            .map(|(at, label)| (at / self.end as f64, label))
            .collect();
        canvas.x_ticks(&ticks);
        canvas.finish()
    }

    /// The data from which the script shows values under the pointer.
    fn hover(&self, times: &[u64], curves: &[Curve]) -> String {
        let round = |value: &f64| (value * 10.0).round() / 10.0;
        let series: Vec<_> = curves
            .iter()
            .map(|curve| {
                // Integers are shorter without a decimal point.
                let values: Vec<_> = curve.values.iter().map(round).collect();
                let values = values.iter().map(|value| match value.fract() {
                    0.0 => json!(*value as u64),
                    _ => json!(value),
                });
                json!({ "name": curve.name, "class": curve.class, "values": values.collect::<Vec<_>>() })
            })
            .collect();
        let plot = [LEFT, WIDTH - RIGHT, WIDTH];
        json!({ "end": self.end, "plot": plot, "times": times, "series": series }).to_string()
    }
}

/// Merges faults that are close to each other into one mark.
fn merge(marks: &[Mark], end: u64) -> Vec<(f64, f64, f64, String)> {
    let mut merged: Vec<(u64, Vec<&Mark>)> = Vec::new();
    for mark in marks.iter().filter(|mark| ![HEALED, SHUTDOWN].contains(&&*mark.what)) {
        let place = (mark.at.as_millis() * MARKS / end).min(MARKS - 1);
        match merged.last_mut() {
            Some((last, marks)) if *last == place => marks.push(mark),
            _ => merged.push((place, vec![mark])),
        }
    }
    let most = merged.iter().map(|(_, marks)| marks.len()).max().unwrap_or(1) as f64;
    merged
        .into_iter()
        .map(|(place, marks)| {
            let from = place as f64 / MARKS as f64;
            let to = (place + 1) as f64 / MARKS as f64;
            (from, to, marks.len() as f64 / most, describe(&marks))
        })
        .collect()
}

fn describe(marks: &[&Mark]) -> String {
    let name = |mark: &&Mark| format!("{} at {}", mark.what, moment(mark.at));
    let mut names: Vec<String> = marks.iter().take(NAMED).map(name).collect();
    if marks.len() > NAMED {
        names.push(format!("and {} more", marks.len() - NAMED));
    }
    names.join("; ")
}

/// The first moment at which a value was greatest, and the value.
pub(super) fn greatest<T, V: PartialOrd + Copy>(
    items: &[T],
    at: impl Fn(&T) -> Timestamp,
    value: impl Fn(&T) -> V,
) -> Option<(Timestamp, V)> {
    let mut best: Option<(Timestamp, V)> = None;
    for item in items {
        if best.is_none_or(|(_, most)| value(item) > most) {
            best = Some((at(item), value(item)));
        }
    }
    best
}
