//! Plays one scenario from its start to the end of its shutdown, and writes the summary, the report and the files.

use std::time::{Duration, Instant};

use console::Term;
use offermill::Timestamp;
use offermill::cluster::simulated::{InvariantViolation, Progress, Simulation, Stage};

use super::interrupt::Interrupt;
use super::numbers::{moment, per_second};
use super::options::{ScenarioOptions, SimulateOptions};
use super::progress::ProgressDisplay;
use super::result::{RunResult, Shortened};
use super::violation::{CommandOnPanic, FoundViolation, report_violation};
use super::{json, report, summary};
use crate::exit::ExitStatus;
use crate::model::rate::Rate;
use crate::output::{PrintOutcome, print_json, print_result, remark};
use crate::text::format::{count, grouped};

/// The real time between two checks for signals, approximately.
const STEPS_WITHIN: Duration = Duration::from_millis(50);
/// The progress, 0 to 1, at which faults end. How long the recovery will take is unknown.
const FAULTS_OVER: f64 = 0.9;
/// The progress at which the shutdown begins.
const DRAINING: f64 = 0.98;
/// The width of the summary, in columns, if standard output is not a terminal.
const WIDTH: usize = 120;

/// Plays a scenario and writes its results.
pub(super) fn run(
    scenario: &ScenarioOptions,
    options: &SimulateOptions,
    interrupt: &mut Interrupt,
) -> ExitStatus {
    remark(&scenario.title);
    let on_panic = CommandOnPanic(&scenario.again);
    let simulation = match Simulation::new(scenario.scenario.clone(), scenario.checks) {
        Ok(simulation) => simulation,
        Err(error) => {
            remark(&format!("the kernel rejects this scenario's settings: {error}"));
            return ExitStatus::BadInput;
        }
    };
    let result = play(scenario, simulation, options.plain, interrupt);
    drop(on_panic);
    let mut written = true;
    if let Some(file) = &options.report {
        written &= file.write(&report::page(&result));
    }
    let mut printed = PrintOutcome::Written;
    if !options.json {
        printed = print_result(&summary::render(&result, options, summary_width()));
    }
    let shortened = shorten_violation(&result, options, interrupt);
    if let Some(file) = &options.scenario_file {
        let saved = shortened.as_ref().map_or(&scenario.scenario, |shortened| &shortened.scenario);
        written &= file.write(&saved.to_string());
    }
    if options.json {
        printed = print_json(&format!("{}\n", json::run(&result, shortened.as_ref(), options)));
    }
    match result.broken {
        Some(_) => ExitStatus::Violation,
        None if !written => ExitStatus::BadInput,
        None if printed == PrintOutcome::Failed => ExitStatus::OutputClosed,
        None => ExitStatus::Done,
    }
}

fn summary_width() -> usize {
    Term::stdout().size_checked().map_or(WIDTH, |(_, columns)| usize::from(columns))
}

/// Reports and shortens the violation, if there is one.
fn shorten_violation(
    result: &RunResult<'_>,
    options: &SimulateOptions,
    interrupt: &mut Interrupt,
) -> Option<Shortened> {
    let violation = FoundViolation {
        broken: result.broken.as_ref()?,
        scenario: &result.options.scenario,
        checks: result.options.checks,
        origin: &result.options.title,
        again: &result.options.again,
        stopped_at: result.stopped_by.map(|(_, at)| at),
    };
    Some(report_violation(&violation, options, interrupt))
}

fn play<'a>(
    options: &'a ScenarioOptions,
    mut simulation: Simulation,
    plain: bool,
    interrupt: &mut Interrupt,
) -> RunResult<'a> {
    let started = Instant::now();
    let mut display = ProgressDisplay::new(plain);
    let mut budget = StepBudget(64);
    let mut rate = Rate::default();
    let mut stopped_by: Option<(&'static str, Timestamp)> = None;
    let broken = loop {
        match budget.advance(&mut simulation) {
            Ok(true) => {}
            Ok(false) => break None,
            Err(broken) => break Some(broken),
        }
        let progress = simulation.progress();
        if let Some(signal) = interrupt.signal()
            && stopped_by.is_none()
        {
            stopped_by = Some((signal, progress.now));
            display.suspend(|| {
                remark(&format!(
                    "{signal}: the simulated framework shuts down; again to end at once"
                ))
            });
            simulation.shut_down();
        }
        rate.record(Instant::now(), progress.offers);
        display.show(part_done(&progress), || sentence(&progress, rate.per_second()));
    };
    display.clear();
    RunResult { options, report: simulation.report(), took: started.elapsed(), stopped_by, broken }
}

fn part_done(progress: &Progress) -> f64 {
    match progress.stage {
        Stage::Faults => {
            let healed_at = progress.healed_at.as_millis().max(1);
            FAULTS_OVER * progress.now.as_millis() as f64 / healed_at as f64
        }
        Stage::Recovering => FAULTS_OVER,
        Stage::Draining => DRAINING,
        _ => 1.0,
    }
}

fn sentence(progress: &Progress, offers_per_second: f64) -> String {
    let now = moment(progress.now);
    let stage = match progress.stage {
        Stage::Faults => format!("{now} of {}, faults", moment(progress.healed_at)),
        Stage::Recovering => format!("{now}, recovering (until kernel and cluster agree)"),
        Stage::Draining => format!("{now}, draining"),
        _ => format!("{now}, over"),
    };
    let executors = grouped(progress.executors.into());
    let limit = count(progress.limit.into(), "executor");
    let offers = grouped(offers_per_second as u64);
    format!("{stage}  {executors} of {limit}  {offers} offers/s")
}

/// The number of steps to simulate at once, adapted so that they take about [`STEPS_WITHIN`].
struct StepBudget(u64);

impl StepBudget {
    fn advance(&mut self, simulation: &mut Simulation) -> Result<bool, InvariantViolation> {
        let began = Instant::now();
        let result = simulation.advance(self.0);
        let rate = per_second(self.0, began.elapsed()) as f64;
        let fitting = (rate * STEPS_WITHIN.as_secs_f64()) as u64;
        self.0 = fitting.clamp(self.0 / 4, self.0 * 2).clamp(1, 1 << 22);
        result
    }
}
