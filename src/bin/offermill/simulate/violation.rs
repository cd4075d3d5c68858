//! Reports a violated invariant, shortens the scenario that shows it, and prints how to reproduce it.

use std::time::{Duration, Instant};

use console::Style;
use offermill::Timestamp;
use offermill::cluster::simulated::{Checks, InvariantViolation, Scenario, shorten};

use super::interrupt::Interrupt;
use super::numbers::moment;
use super::options::{SimulateOptions, quoted};
use super::progress::ProgressDisplay;
use super::result::Shortened;
use super::rows::invariant;
use crate::output::{print_result, remark};
use crate::text::format::{count, grouped, passed};
use crate::text::styled::{StyledText, padded};

/// The maximum number of simulations that shortening may take.
const RUNS_MAX: u32 = 500;
/// The width of headings, in columns.
const HEADING_COLUMNS: usize = 12;
/// The maximum real time that shortening may take.
const TIME_MAX: Duration = Duration::from_secs(60);

/// A violated invariant and the scenario that shows it.
pub(super) struct FoundViolation<'a> {
    pub(super) broken: &'a InvariantViolation,
    pub(super) scenario: &'a Scenario,
    pub(super) checks: Checks,
    /// The seed and severity that the scenario was generated from.
    pub(super) origin: &'a str,
    /// The command that reproduces it.
    pub(super) again: &'a str,
    /// The virtual time at which the user stopped the simulation. The scenario doesn't contain that.
    pub(super) stopped_at: Option<Timestamp>,
}

/// Prints a violation, shortens the scenario and prints the result.
pub(super) fn report_violation(
    violation: &FoundViolation<'_>,
    options: &SimulateOptions,
    interrupt: &mut Interrupt,
) -> Shortened {
    if !options.json {
        print_result(&description(violation));
    }
    let shortened = shorten_scenario(violation, options.plain, interrupt);
    if !options.json {
        print_result(&shortened_text(violation, &shortened, options));
    }
    shortened
}

fn description(violation: &FoundViolation<'_>) -> StyledText {
    let InvariantViolation { at, step, what, .. } = violation.broken;
    let what = format!("{}: {what}", invariant(violation.broken));
    let mut text = StyledText::lines("\n");
    text.push_line(&heading("violation").and_styled(&what, &Style::new().red()));
    let mut add = |name: &str, sentence: &str| text.push_line(&heading(name).and(sentence));
    add("when", &format!("{} of virtual time, step {}", moment(*at), grouped(*step)));
    add("where", violation.origin);
    add("again", violation.again);
    if let Some(stopped_at) = violation.stopped_at {
        let at = moment(stopped_at);
        add("", &format!("(the shutdown that was asked for at {at} isn't part of that)"));
    }
    text
}

/// A heading and the blank after it.
fn heading(text: &str) -> StyledText {
    StyledText::styled(&padded(text, HEADING_COLUMNS), &Style::new().dim()).and(" ")
}

fn shorten_scenario(
    violation: &FoundViolation<'_>,
    plain: bool,
    interrupt: &mut Interrupt,
) -> Shortened {
    if interrupt.signal().is_some() {
        return Shortened {
            scenario: violation.scenario.clone(),
            runs: 0,
            took: Duration::ZERO,
            stopped_by: Some("Ctrl-C before it began"),
        };
    }
    let started = Instant::now();
    let mut display = ProgressDisplay::new(plain);
    let on_panic = CommandOnPanic(violation.again);
    let mut runs_made = 0;
    let mut stopped_by = None;
    let mut may_continue = |runs: u32, shortest: &Scenario| {
        runs_made = runs;
        let took = started.elapsed();
        stopped_by = match interrupt.signal() {
            Some(name) => Some(name),
            None if runs >= RUNS_MAX => Some("the limit of 500 runs"),
            None if took >= TIME_MAX => Some("the limit of 60 s"),
            None => None,
        };
        let part_of_runs = f64::from(runs) / f64::from(RUNS_MAX);
        let part_of_time = took.as_secs_f64() / TIME_MAX.as_secs_f64();
        let sentence = || format!("shortening, run {runs}: {}", size(shortest));
        display.show(part_of_runs.max(part_of_time), sentence);
        stopped_by.is_none()
    };
    let scenario =
        shorten(violation.scenario, violation.broken, violation.checks, &mut may_continue);
    drop(on_panic);
    display.clear();
    Shortened { scenario, runs: runs_made, took: started.elapsed(), stopped_by }
}

fn size(scenario: &Scenario) -> String {
    format!(
        "{}, {}, {}",
        count(scenario.faults.len() as u64, "fault"),
        count(scenario.agents.into(), "agent"),
        count(scenario.executors.into(), "executor")
    )
}

fn shortened_text(
    violation: &FoundViolation<'_>,
    shortened: &Shortened,
    options: &SimulateOptions,
) -> StyledText {
    let Shortened { scenario, runs, took, stopped_by } = shortened;
    let stopped = stopped_by.map(|by| format!(", stopped by {by}")).unwrap_or_default();
    let runs = count((*runs).into(), "run");
    let (file, save) = match &options.scenario_file {
        Some(file) => (quoted(&file.path().display().to_string()), ""),
        None => ("FILE".to_owned(), ", with these lines in FILE"),
    };
    let replay = format!("offermill simulate --scenario {file}{save}");
    let mut text = StyledText::new();
    let mut add = |name: &str, sentence: &str| text.push_line(&heading(name).and(sentence));
    add("shortened", &format!("from {}", size(violation.scenario)));
    add("", &format!("to {}", size(scenario)));
    add("in", &format!("{runs}{stopped}"));
    add("real time", &passed(*took));
    add("replay", &replay);
    text.append(&StyledText::lines(&format!("\n{}\n", scenario.to_string().trim_end())));
    text
}

/// If the simulation panics, prints the command that reproduces the panic.
pub(super) struct CommandOnPanic<'a>(pub(super) &'a str);

impl Drop for CommandOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            remark(&format!("this panic can be reproduced with: {}", self.0));
        }
    }
}
