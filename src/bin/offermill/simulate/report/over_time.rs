//! Plots over virtual time, with the faults below.

use offermill::Timestamp;
use offermill::cluster::simulated::Mark;
use serde_json::json;

use super::super::figures::moment;
use super::super::world::Outcome;
use super::canvas::{Canvas, LEFT, RIGHT, WIDTH};
use super::scale::{Tick, number_ticks, time_ticks};
use super::tracks::{Track, thin};

/// So many marks fit beside each other.
const MARKS: u64 = 110;
/// So many faults of a mark are named.
const NAMED: usize = 4;
/// What has a line of its own.
const HEALED: &str = "healed";
const SHUTDOWN: &str = "shutdown";

/// The time axis of a run.
pub(super) struct TimeAxis {
    end: u64,
    healed: Option<u64>,
    closed: Option<u64>,
    /// Faults that are close to each other, as one: from, to, weight, text.
    marks: Vec<(f64, f64, f64, String)>,
}

impl TimeAxis {
    pub(super) fn of(outcome: &Outcome<'_>) -> TimeAxis {
        let report = &outcome.report;
        let end = report.ended_at.as_millis().max(1);
        let healed = Some(outcome.task.scenario.healed_at.as_millis()).filter(|at| *at < end);
        let closed = report.drained.map(|drained| drained.closed_at.as_millis());
        TimeAxis { end, healed, closed, marks: gather(&report.marks, end) }
    }

    /// Draws tracks over time.
    pub(super) fn plot(
        &self,
        label: &str,
        unit: &str,
        mut times: Vec<u64>,
        mut tracks: Vec<Track>,
    ) -> String {
        thin(&mut times, &mut tracks);
        let most = tracks.iter().flat_map(|track| &track.values).copied().fold(0.0, f64::max);
        let hover = self.hover(&times, &tracks);
        let mut canvas = Canvas::new(label, unit, &number_ticks(most), &hover);
        let part = |millis: u64| millis as f64 / self.end as f64;
        let points = |track: &Track| -> Vec<(f64, f64)> {
            times.iter().map(|at| part(*at)).zip(track.values.iter().copied()).collect()
        };
        for track in tracks.iter().filter(|track| track.is_filled) {
            canvas.area(track.class, &points(track));
        }
        for track in &tracks {
            canvas.line(track.class, &points(track), track.is_stepped);
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

    /// What the script needs to show values where the pointer is.
    fn hover(&self, times: &[u64], tracks: &[Track]) -> String {
        let round = |value: &f64| (value * 10.0).round() / 10.0;
        let series: Vec<_> = tracks
            .iter()
            .map(|track| {
                // Whole numbers are shorter without a point.
                let values: Vec<_> = track.values.iter().map(round).collect();
                let values = values.iter().map(|value| match value.fract() {
                    0.0 => json!(*value as u64),
                    _ => json!(value),
                });
                json!({ "name": track.name, "class": track.class, "values": values.collect::<Vec<_>>() })
            })
            .collect();
        let plot = [LEFT, WIDTH - RIGHT, WIDTH];
        json!({ "end": self.end, "plot": plot, "times": times, "series": series }).to_string()
    }
}

fn gather(marks: &[Mark], end: u64) -> Vec<(f64, f64, f64, String)> {
    let mut gathered: Vec<(u64, Vec<&Mark>)> = Vec::new();
    for mark in marks.iter().filter(|mark| ![HEALED, SHUTDOWN].contains(&&*mark.what)) {
        let place = (mark.at.as_millis() * MARKS / end).min(MARKS - 1);
        match gathered.last_mut() {
            Some((last, marks)) if *last == place => marks.push(mark),
            _ => gathered.push((place, vec![mark])),
        }
    }
    let most = gathered.iter().map(|(_, marks)| marks.len()).max().unwrap_or(1) as f64;
    gathered
        .into_iter()
        .map(|(place, marks)| {
            let (from, to) = (place as f64 / MARKS as f64, (place + 1) as f64 / MARKS as f64);
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

/// The moment when something was greatest, and how great.
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
