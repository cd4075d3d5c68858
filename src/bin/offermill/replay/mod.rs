//! `offermill replay`: replays the events of a scenario and prints the decisions, or compares them.
//!
//! ```text
//! FILE ─► reader ─► settings ─► player ─┬─► answers, on standard output
//!         (../scenario)          │      └─► compare, with --expect
//!                                ├ spark: as Spark's backend decides
//!                                ├ fine_grained: as Spark's fine-grained backend decides
//!                                └ ../record: as Offermill decides
//! ```
//!
//! The kernel decides, and the player translates, except for Spark's fine-grained backend, which accounts for nothing
//! that the kernel does.
//!
//! # With `--compat spark-3.5`
//! Offermill decides as Spark's backend, except where that throws out of a callback or accepts contradictory input:
//!
//! | event | Spark | here |
//! |---|---|---|
//! | a constraint compares a word with a number | throws, answers no offer of the batch | the word matches nothing |
//! | a constraint's number is hexadecimal (`0x1p3`) | reads it | it matches no number |
//! | an update names an agent that Spark never used | throws, keeps counting what ended | the task is found by its id |
//! | a task's end names another agent | counts the executor for ever | the task is found by its id |
//! | a task ends twice, or never existed | counts a failure, revives | nothing |
//! | a task runs that was never launched, or that ended | nothing | it is killed |
//! | Spark's home isn't set, labels can't be read, secrets have no place | throws, counts what never starts | offers are declined |
//! | a home, an archive, an image, a network or a class path is set but empty | passes it on | counts as not set |
//! | two offers of a batch have the same id | launches the tasks of both twice | each is answered once |
//! | a negative number of executors is requested | throws | nothing changes |
//! | an executor fits exactly into resources of several roles | adds doubles, may miss by 10⁻¹⁶ | it fits |
//! | the cluster reports an error | throws, goes on | later offers are declined |
//! | a setting has a form or a value that isn't allowed | accepts some, throws later for others | the start fails |
//!
//! With `spark.mesos.coarse` false it is the fine-grained backend, with all that was wrong with it, see
//! [`fine_grained`]. Of these rows, those about constraints, settings and Spark's home hold there.
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
mod fine_grained;
mod shell_words;
mod spark;
mod spark_offers;
mod spark_settings;
mod spark_state;
mod task_index;
mod tasks;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow::{self, Break, Continue};
use std::path::Path;
use std::time::{Duration, Instant};

use offermill::{Config, IdScheme, Kernel};

use crate::exit::ExitStatus;
use crate::output::{PrintOutcome, print_json, print_result, remark};
use crate::record;
use crate::scenario::answer::CallLine;
use crate::scenario::reader::{self, LineError, ScenarioFile};
use crate::scenario::{
    AnswerLine, CallKind, ClosingLine, CompatibilityLine, InitLine, ScenarioEvent, ScenarioHead,
    StateAfter, line,
};
use crate::text::format::{count, grouped};
use crate::text::styled::StyledText;

use arguments::{Compat, ReplayArguments};
use compare::{Comparer, ComparisonResult, EndedEarly, Strictness};
use files::ReplayInput;
use fine_grained::{FineGrainedReplay, FineGrainedStart, fine_grained, is_fine_grained};
use spark::SparkReplay;
use spark_settings::SparkStart;

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
    for input in &inputs {
        match replay_one(input, arguments, &mut totals) {
            Ok(PrintOutcome::Written) => {}
            // The exit code still says whether a scenario couldn't be read.
            Ok(PrintOutcome::Closed) if arguments.expect.is_empty() => break,
            // The exit code still depends on the remaining comparisons.
            Ok(PrintOutcome::Closed) => {}
            Ok(PrintOutcome::Failed) => return ExitStatus::OutputClosed,
            Err(error) => {
                remark(&error.to_string());
                totals.unreadable += 1;
            }
        }
    }
    if !arguments.expect.is_empty()
        && print_result(&StyledText::lines(&totals.text())) == PrintOutcome::Failed
    {
        return ExitStatus::OutputClosed;
    }
    match (totals.unreadable, totals.wrong) {
        (0, 0) => ExitStatus::Done,
        (0, _) => ExitStatus::Differs,
        _ => ExitStatus::BadInput,
    }
}

/// Replays one scenario, and prints its answers or how they differ.
fn replay_one(
    input: &ReplayInput,
    arguments: &ReplayArguments,
    totals: &mut ComparisonTotals,
) -> Result<PrintOutcome, LineError> {
    let (scenario, is_spark) = read(&input.scenario, arguments.compat)?;
    let expected = input.expected.as_deref().map(read_expected).transpose()?;
    let start = ReplayStart::of(&scenario.head, is_spark);
    if let Some(why) = start.no_launcher() {
        let path = input.scenario.display();
        remark(&format!(
            "{path}: Spark couldn't launch an executor with these settings, so all offers are declined: {why}"
        ));
    }
    let Some(expected) = expected else {
        return Ok(print(&scenario, start));
    };
    let strictness = match (is_spark, arguments.any_order) {
        (false, _) => Strictness::Exact,
        (true, false) => Strictness::Ordered,
        (true, true) => Strictness::AnyOrder,
    };
    let result = compare(&scenario, start, &expected, strictness);
    totals.add(&result);
    Ok(print_differences(&input.scenario, &result, arguments.show))
}

/// Reads a file of expected answers. A remark tells if its last line is incomplete.
fn read_expected(path: &Path) -> Result<Vec<AnswerLine>, LineError> {
    let (answers, incomplete_line) = compare::read(path)?;
    remark_incomplete(path, incomplete_line);
    Ok(answers)
}

fn remark_incomplete(path: &Path, line: Option<u64>) {
    if let Some(number) = line {
        let path = path.display();
        remark(&format!(
            "{path}:{number}: the file ends in the middle of this line, which is ignored"
        ));
    }
}

/// Reads a scenario, and returns whether it is decided as by Spark.
fn read(path: &Path, compat: Option<Compat>) -> Result<(ScenarioFile, bool), LineError> {
    let scenario = reader::scenario(path)?;
    remark_incomplete(path, scenario.incomplete_line);
    scenario.check_times(path)?;
    let is_spark =
        compat.is_some() || scenario.head.compatibility == Some(CompatibilityLine::Spark35);
    Ok((scenario, is_spark))
}

/// What a scenario's settings lead to.
enum ReplayStart {
    /// The settings are invalid; the first line of the answers says why.
    Rejected(Box<InitLine>),
    Offermill(Box<(Config, IdScheme)>),
    Spark(Box<SparkStart>),
    SparkFineGrained(Box<FineGrainedStart>),
}

impl ReplayStart {
    fn of(head: &ScenarioHead, is_spark: bool) -> ReplayStart {
        let start = match is_spark {
            true if is_fine_grained(head) => {
                fine_grained(head).map(|start| ReplayStart::SparkFineGrained(Box::new(start)))
            }
            true => spark_settings::spark(head).map(|start| ReplayStart::Spark(Box::new(start))),
            false => spark_settings::own(head).map(|own| ReplayStart::Offermill(Box::new(own))),
        };
        start.unwrap_or_else(ReplayStart::Rejected)
    }

    /// Why Spark could launch no executor, if it couldn't.
    fn no_launcher(&self) -> Option<&str> {
        match self {
            ReplayStart::Spark(start) => start.launcher.as_ref().err().map(String::as_str),
            ReplayStart::SparkFineGrained(start) => {
                start.executor.as_ref().err().map(String::as_str)
            }
            ReplayStart::Rejected(_) | ReplayStart::Offermill(_) => None,
        }
    }
}

/// Replays a scenario and passes each answer to `send`, until that breaks.
fn play(
    scenario: &ScenarioFile,
    start: ReplayStart,
    mut send: impl FnMut(AnswerLine) -> ControlFlow<()>,
) {
    match start {
        ReplayStart::Rejected(init) => drop(send(AnswerLine::Init(*init))),
        ReplayStart::Spark(start) => {
            let init = start.init.clone();
            let _is_over = play_as_spark(scenario, init, SparkReplay::new(*start), send);
        }
        ReplayStart::SparkFineGrained(start) => {
            let init = start.init.clone();
            let _is_over = play_as_spark(scenario, init, FineGrainedReplay::new(*start), send);
        }
        ReplayStart::Offermill(own) => {
            let (config, ids) = *own;
            // Times were checked when the scenario was read, so this can't fail.
            let _in_order = record::play(&scenario.events, Kernel::new(config, ids), send);
        }
    }
}

/// One of Spark's backends, replayed.
trait SparkBackend {
    /// Applies an event and adds the calls that follow, in order. Returns the result, for events that have one.
    fn play(
        &mut self,
        event: &ScenarioEvent,
        calls: &mut Vec<CallKind>,
    ) -> Option<serde_json::Value>;
    /// Returns the state after the last event.
    fn after(&self) -> StateAfter;
}

impl SparkBackend for SparkReplay {
    fn play(
        &mut self,
        event: &ScenarioEvent,
        calls: &mut Vec<CallKind>,
    ) -> Option<serde_json::Value> {
        self.play(event.at_ms, &event.kind, calls)
    }

    fn after(&self) -> StateAfter {
        self.after()
    }
}

impl SparkBackend for FineGrainedReplay {
    fn play(
        &mut self,
        event: &ScenarioEvent,
        calls: &mut Vec<CallKind>,
    ) -> Option<serde_json::Value> {
        self.play(&event.kind, calls)
    }

    fn after(&self) -> StateAfter {
        self.after()
    }
}

fn play_as_spark(
    scenario: &ScenarioFile,
    init: InitLine,
    mut player: impl SparkBackend,
    mut send: impl FnMut(AnswerLine) -> ControlFlow<()>,
) -> ControlFlow<()> {
    send(AnswerLine::Init(init))?;
    let mut calls: Vec<CallKind> = Vec::new();
    for (ev, event) in (0..).zip(&scenario.events) {
        let result = player.play(event, &mut calls);
        for call in calls.drain(..) {
            send(AnswerLine::Call(CallLine { ev, at_ms: None, call }))?;
        }
        send(AnswerLine::Closing(ClosingLine { ev, result, error: None, after: player.after() }))?;
    }
    Continue(())
}

fn print(scenario: &ScenarioFile, start: ReplayStart) -> PrintOutcome {
    let mut text = String::new();
    let mut said = PrintOutcome::Written;
    let mut said_at = Instant::now();
    play(scenario, start, |answer| {
        text.push_str(&line(&answer));
        if text.len() >= CHUNK || said_at.elapsed() >= WRITE_WITHIN {
            said = print_json(&text);
            said_at = Instant::now();
            text.clear();
        }
        if said == PrintOutcome::Written { Continue(()) } else { Break(()) }
    });
    match said {
        PrintOutcome::Written => print_json(&text),
        other => other,
    }
}

fn compare(
    scenario: &ScenarioFile,
    start: ReplayStart,
    expected: &[AnswerLine],
    strictness: Strictness,
) -> ComparisonResult {
    let mut comparer = Comparer::new(scenario, expected, strictness);
    play(scenario, start, |answer| {
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
    /// Scenarios that were not replayed, because they or their expected answers can't be read.
    unreadable: u64,
    /// Scenarios with differences.
    wrong: u64,
    /// Scenarios that were compared up to a defect of Spark.
    defects: u64,
    /// Scenarios that were compared up to the end of the expected answers.
    short: u64,
    /// Scenarios that end in the middle of a line, before their expected answers do.
    cut: u64,
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
        self.cut += u64::from(*ended_early == Some(EndedEarly::ScenarioCut));
    }

    fn text(&self) -> String {
        let ComparisonTotals {
            scenarios,
            answers,
            unreadable,
            wrong,
            defects,
            short,
            cut,
            identical,
        } = self;
        let whose = if *unreadable == 1 { "it or its" } else { "they or their" };
        let left_out = match unreadable {
            0 => String::new(),
            number => {
                let scenarios = count(*number, "scenario");
                format!("{scenarios} not compared: {whose} expected answers can't be read\n")
            }
        };
        if *scenarios == 0 {
            return left_out;
        }
        let differ = match (wrong, unreadable) {
            (0, 0) => "no difference".to_owned(),
            (0, _) => "no difference in these".to_owned(),
            (wrong, _) => format!("{} with differences", count(*wrong, "scenario")),
        };
        let scenarios = count(*scenarios, "scenario");
        let answers = count(*answers, "answer");
        let identical = grouped(*identical);
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
        if *cut > 0 {
            let cut = count(*cut, "scenario");
            text.push_str(&format!(
                "{cut} compared only up to where the scenario ends in the middle of a line\n"
            ));
        }
        text + &left_out
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
    match text.is_empty() {
        true => PrintOutcome::Written,
        false => print_result(&StyledText::lines(&text)),
    }
}
