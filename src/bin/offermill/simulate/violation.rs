//! An invariant was violated: what, where, how to see it again, and the shortest scenario that
//! still shows it.

use std::time::{Duration, Instant};

use console::style;
use offermill::Timestamp;
use offermill::cluster::simulated::{Broken, Checks, Scenario, shorten};

use super::figures::{moment, whole};
use super::interrupt::Interrupt;
use super::order::{Order, quoted};
use super::progress::Meter;
use super::say;
use super::world::Culprit;
use crate::text::format::{grouped, passed, printable};

/// Shortening ends after so many runs …
const RUNS_MAX: u32 = 500;
/// … or so long.
const TIME_MAX: Duration = Duration::from_secs(60);

/// A violation.
pub(super) struct Case<'a> {
    pub(super) broken: &'a Broken,
    /// Where it was found.
    pub(super) scenario: &'a Scenario,
    pub(super) checks: Checks,
    /// Where the scenario is from: seed and severity.
    pub(super) origin: &'a str,
    /// The command that plays it again.
    pub(super) again: &'a str,
    /// When the user asked for an end: that isn't part of the scenario.
    pub(super) asked: Option<Timestamp>,
}

/// The shortest scenario that was found.
pub(super) struct Shortened {
    pub(super) scenario: Scenario,
    pub(super) runs: u32,
    pub(super) took: Duration,
    /// Why it may not be the shortest there is.
    pub(super) stopped_by: Option<&'static str>,
}

/// Tells of a violation, shortens the scenario and prints it.
pub(super) fn pursue(case: &Case<'_>, order: &Order, interrupt: &mut Interrupt) -> Shortened {
    if !order.json {
        say(&description(case));
    }
    let shortened = short(case, order.plain, interrupt);
    if !order.json {
        say(&result(case, &shortened, order));
    }
    shortened
}

/// The invariant by its number in the table; 9 and 29 are liveness.
pub(super) fn invariant(broken: &Broken) -> String {
    format!("invariant {}", broken.invariant)
}

fn description(case: &Case<'_>) -> String {
    let Broken { at, step, what, .. } = case.broken;
    let what = format!("{}: {}", invariant(case.broken), printable(what));
    let (at, step) = (moment(*at), grouped(*step));
    let mut text = String::from("\n");
    let mut note = |name: &str, sentence: &str| {
        text.push_str(&format!("{} {sentence}\n", heading(name)));
    };
    note("violation", &style(what).red().to_string());
    note("when", &format!("{at} of virtual time, step {step}"));
    note("where", case.origin);
    note("again", case.again);
    if let Some(asked) = case.asked {
        let asked = moment(asked);
        note("", &format!("(the shutdown that was asked for at {asked} isn't part of that)"));
    }
    text
}

fn heading(text: &str) -> String {
    style(format!("{text:<12}")).dim().to_string()
}

fn short(case: &Case<'_>, plain: bool, interrupt: &mut Interrupt) -> Shortened {
    let original = || case.scenario.clone();
    if interrupt.asked().is_some() {
        let stopped_by = Some("Ctrl-C before it began");
        return Shortened { scenario: original(), runs: 0, took: Duration::ZERO, stopped_by };
    }
    let started = Instant::now();
    let mut meter = Meter::new(plain);
    let culprit = Culprit(case.again);
    let (mut runs_made, mut stopped_by) = (0, None);
    let scenario = shorten(case.scenario, case.broken, case.checks, &mut |runs, shortest| {
        runs_made = runs;
        let took = started.elapsed();
        stopped_by = match interrupt.asked() {
            Some(name) => Some(name),
            None if runs >= RUNS_MAX => Some("the limit of 500 runs"),
            None if took >= TIME_MAX => Some("the limit of 60 s"),
            None => None,
        };
        let part = (f64::from(runs) / f64::from(RUNS_MAX))
            .max(took.as_secs_f64() / TIME_MAX.as_secs_f64());
        meter.show(part, || format!("shortening, run {runs}: {}", size(shortest)));
        stopped_by.is_none()
    });
    drop(culprit);
    meter.clear();
    Shortened { scenario, runs: runs_made, took: started.elapsed(), stopped_by }
}

fn size(scenario: &Scenario) -> String {
    format!(
        "{}, {}, {}",
        whole(scenario.faults.len() as u64, "fault"),
        whole(scenario.agents.into(), "agent"),
        whole(scenario.executors.into(), "executor")
    )
}

fn result(case: &Case<'_>, shortened: &Shortened, order: &Order) -> String {
    let Shortened { scenario, runs, took, stopped_by } = shortened;
    let stopped = stopped_by.map(|by| format!(", stopped by {by}")).unwrap_or_default();
    let (runs, took) = (whole((*runs).into(), "run"), passed(*took));
    let (file, save) = match &order.scenario_file {
        Some(target) => (quoted(&target.path().display().to_string()), ""),
        None => ("FILE".to_owned(), ", with these lines in FILE"),
    };
    format!(
        "{} from {}\n{} to {}\n{} {runs}{stopped}\n{} {took}\n{} offermill simulate --scenario {file}{save}\n\n{}\n",
        heading("shortened"),
        size(case.scenario),
        heading(""),
        size(scenario),
        heading("in"),
        heading("real time"),
        heading("replay"),
        scenario.to_string().trim_end()
    )
}
