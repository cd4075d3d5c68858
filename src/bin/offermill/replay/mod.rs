//! `offermill replay`: replays the events of a scenario and prints the decisions, or compares them.
//!
//! ```text
//! FILE ─► reader ─► settings ─► player ─┬─► answers, on standard output
//!         (../scenario)          │      └─► compare, with --expect
//!                                ├ spark: as Spark's backend decides
//!                                └ ../record: as Offermill decides
//! ```
//!
//! In both cases the kernel decides, and the player translates.
//!
//! # With `--compat spark-3.5`
//! Offermill decides as Spark's backend, except where that throws out of a callback or accepts contradictory input:
//!
//! | event | Spark | here |
//! |---|---|---|
//! | a constraint compares a word with a number | throws, answers no offer of the batch | it isn't met |
//! | an update names an agent that Spark never used | throws, keeps counting what ended | the task is found by its id |
//! | a task's end names another agent | counts the executor for ever | the task is found by its id |
//! | a task ends twice, or never existed | counts a failure, revives | nothing |
//! | a task runs that was never launched, or that ended | nothing | it is killed |
//! | Spark's home isn't set, or labels can't be read | throws, counts what never starts | offers are declined |
//! | an image, a network or a class path is set but empty | passes it on | counts as not set |
//! | an executor fits exactly into resources of several roles | adds doubles, may miss by 10⁻¹⁶ | it fits |
//! | the cluster reports an error | throws, goes on | later offers are declined |
//! | a setting can't work | accepts it, or throws later | the start fails |
//!
//! `deviations.rs` contains the same list for `--help`.
//!
//! # Without
//! The events' `at_ms` and `advance_ms` are the time. Demand is polled every 50 ms of it, and the kernel's timers run
//! every second. Calls that result belong to the next event. Commands are not shown, as they are no decisions.

pub(crate) mod arguments;
mod compare;
mod deviations;
mod differences;
mod files;
mod shell_words;
mod spark;
mod spark_settings;
mod task_index;
mod tasks;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow::{self, Break, Continue};
use std::path::Path;
use std::time::{Duration, Instant};

use offermill::Kernel;

use crate::exit::ExitStatus;
use crate::output::{PrintOutcome, print_result, remark};
use crate::record;
use crate::scenario::answer::CallLine;
use crate::scenario::reader::{self, LineError, ScenarioFile};
use crate::scenario::{AnswerLine, CallKind, ClosingLine, ConductLine, line};
use crate::text::format::count;

use arguments::{Compat, ReplayArguments};
use compare::{Comparer, ComparisonResult, EndedEarly};
use spark::SparkReplay;

/// The size of output that is written at once, in bytes.
const CHUNK: usize = 64 * 1024;
/// The maximum time between two writes, so that a closed pipe is noticed soon.
const WRITE_WITHIN: Duration = Duration::from_millis(100);

/// Runs `offermill replay`.
pub(crate) fn replay(arguments: &ReplayArguments) -> ExitStatus {
    let inputs = match files::inputs(&arguments.scenarios, &arguments.expect) {
        Ok(inputs) => inputs,
        Err(problem) => {
            remark(&problem);
            return ExitStatus::BadInput;
        }
    };
    let mut totals = ComparisonTotals::default();
    let mut unreadable = false;
    for input in &inputs {
        let said = read(&input.scenario, arguments.compat).and_then(|(scenario, is_spark)| {
            let Some(expected) = &input.expected else {
                return Ok(print(&scenario, is_spark));
            };
            let expected = compare::read(expected)?;
            let result = compare(&scenario, is_spark, &expected);
            totals.add(&result);
            Ok(print_differences(&input.scenario, &result, arguments.show))
        });
        match said {
            Ok(PrintOutcome::Written) => {}
            Ok(PrintOutcome::Closed) if arguments.expect.is_empty() => return ExitStatus::Done,
            // The exit code still depends on the remaining comparisons.
            Ok(PrintOutcome::Closed) => {}
            Ok(PrintOutcome::Failed) => return ExitStatus::OutputClosed,
            Err(error) => {
                remark(&error.to_string());
                unreadable = true;
            }
        }
    }
    if !arguments.expect.is_empty() && print_result(&totals.text()) == PrintOutcome::Failed {
        return ExitStatus::OutputClosed;
    }
    match (unreadable, totals.wrong) {
        (true, _) => ExitStatus::BadInput,
        (false, 0) => ExitStatus::Done,
        (false, _) => ExitStatus::Differs,
    }
}

/// Reads a scenario, and returns whether it is decided as by Spark.
fn read(path: &Path, compat: Option<Compat>) -> Result<(ScenarioFile, bool), LineError> {
    let scenario = reader::scenario(path)?;
    if let Some(number) = scenario.incomplete_line {
        let path = path.display();
        remark(&format!(
            "{path}:{number}: the file ends in the middle of this line, which is ignored"
        ));
    }
    scenario.check_times(path)?;
    let is_spark = compat.is_some() || scenario.head.conduct == Some(ConductLine::Spark35);
    Ok((scenario, is_spark))
}

/// Replays a scenario and passes each answer to `send`, until that breaks.
fn play(scenario: &ScenarioFile, is_spark: bool, send: impl FnMut(AnswerLine) -> ControlFlow<()>) {
    match is_spark {
        true => drop(play_as_spark(scenario, send)),
        false => play_as_offermill(scenario, send),
    }
}

fn play_as_offermill(scenario: &ScenarioFile, mut send: impl FnMut(AnswerLine) -> ControlFlow<()>) {
    match spark_settings::own(&scenario.head) {
        Err(init) => drop(send(AnswerLine::Init(*init))),
        Ok((config, ids)) => {
            // Times were checked when the scenario was read, so this can't fail.
            let _in_order = record::play(&scenario.events, Kernel::new(config, ids), send);
        }
    }
}

fn play_as_spark(
    scenario: &ScenarioFile,
    mut send: impl FnMut(AnswerLine) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let start = match spark_settings::spark(&scenario.head) {
        Err(init) => return send(AnswerLine::Init(*init)),
        Ok(start) => start,
    };
    send(AnswerLine::Init(start.init.clone()))?;
    let mut player = SparkReplay::new(start);
    let mut calls: Vec<CallKind> = Vec::new();
    for (ev, event) in (0..).zip(&scenario.events) {
        let result = player.play(event.at_ms, &event.kind, &mut calls);
        for call in calls.drain(..) {
            send(AnswerLine::Call(CallLine { ev, at_ms: None, call }))?;
        }
        send(AnswerLine::Closing(ClosingLine { ev, result, error: None, after: player.after() }))?;
    }
    Continue(())
}

fn print(scenario: &ScenarioFile, is_spark: bool) -> PrintOutcome {
    let mut text = String::new();
    let mut said = PrintOutcome::Written;
    let mut said_at = Instant::now();
    play(scenario, is_spark, |answer| {
        text.push_str(&line(&answer));
        if text.len() >= CHUNK || said_at.elapsed() >= WRITE_WITHIN {
            said = print_result(&text);
            said_at = Instant::now();
            text.clear();
        }
        if said == PrintOutcome::Written { Continue(()) } else { Break(()) }
    });
    match said {
        PrintOutcome::Written => print_result(&text),
        other => other,
    }
}

fn compare(scenario: &ScenarioFile, is_spark: bool, expected: &[AnswerLine]) -> ComparisonResult {
    let mut comparer = Comparer::new(scenario, expected, !is_spark);
    play(scenario, is_spark, |answer| {
        comparer.compare(answer);
        Continue(())
    });
    comparer.finish()
}

/// The sums over all comparisons.
#[derive(Debug, Default)]
struct ComparisonTotals {
    scenarios: u64,
    answers: u64,
    /// Scenarios with differences.
    wrong: u64,
    /// Scenarios that were compared up to a defect of Spark.
    defects: u64,
    /// Scenarios that were compared up to the end of the expected answers.
    short: u64,
    identical: u64,
}

impl ComparisonTotals {
    fn add(&mut self, result: &ComparisonResult) {
        let ComparisonResult { answers, differences, ended_early, identical } = result;
        self.scenarios += 1;
        self.answers += answers;
        self.identical += identical;
        self.wrong += u64::from(!differences.is_empty());
        self.defects += u64::from(*ended_early == Some(EndedEarly::SparkDefect));
        self.short += u64::from(*ended_early == Some(EndedEarly::AnswersEnd));
    }

    fn text(&self) -> String {
        let ComparisonTotals { scenarios, answers, wrong, defects, short, identical } = self;
        let differ = match wrong {
            0 => "no difference".to_owned(),
            wrong => format!("{} with differences", count(*wrong, "scenario")),
        };
        let scenarios = count(*scenarios, "scenario");
        let answers = count(*answers, "answer");
        let mut text =
            format!("{scenarios}, {answers} compared ({identical} to the byte), {differ}\n");
        if *defects > 0 {
            text.push_str(&format!(
                "{} compared only up to where Spark threw an exception or received an update for a task that \
                 wasn't on that agent\n",
                count(*defects, "scenario"),
            ));
        }
        if *short > 0 {
            let short = count(*short, "scenario");
            text.push_str(&format!("{short} compared only up to where the expected answers end\n"));
        }
        text
    }
}

/// Prints at most `show` differences.
fn print_differences(path: &Path, result: &ComparisonResult, show: usize) -> PrintOutcome {
    let differences = &result.differences;
    let path = path.display();
    let mut text = String::new();
    for difference in differences.iter().take(show) {
        text.push_str(&format!("{path}: {difference}\n"));
    }
    if differences.len() > show {
        text.push_str(&format!("{path}: and {} more\n", differences.len() - show));
    }
    if text.is_empty() { PrintOutcome::Written } else { print_result(&text) }
}
