//! `offermill replay`: plays what a scheduler was told, and says what is decided.
//!
//! ```text
//! FILE ─► scenario reader ─► start ─► player ─┬─► answers, on standard output
//!         (../scenario)      settings  │      └─► compare, with --expect
//!                            as of a   ├ spark: as Spark's backend decides
//!                            run       └ ../journal: in our own way
//! ```
//!
//! Either way it is the kernel that decides. A player translates.
//!
//! # Spark's way
//! Where Spark's backend throws out of a callback or believes nonsense, Offermill does the right thing in its place:
//!
//! | what happens | Spark | here |
//! |---|---|---|
//! | a constraint compares a word with a number | throws, answers no offer of the batch | it isn't met |
//! | an update names an agent that Spark never used | throws, what ended stays counted | the task's id counts |
//! | a task's end names another agent | counts the executor for ever | the task's id counts |
//! | an end is told twice, or of no known task | counts a failure, revives | nothing |
//! | a task runs that nobody started, or that ended | nothing | it is killed |
//! | it isn't said where Spark is, or labels can't be read | throws, counts what never starts | offers are declined |
//! | an image, a network or a class path is given, but empty | passes that on | as if not given |
//! | an executor fits exactly into amounts of several roles | adds doubles, may miss by 10⁻¹⁶ | it fits |
//! | the cluster tells an error | throws, goes on | later offers are declined |
//! | a setting can't work | takes it, or throws later | the start fails |
//!
//! `deviations.rs` says the same to people, in `--help`.
//!
//! # Our own way
//! Time is that of the events' `at_ms` and `advance_ms`. Demand is polled each 50 ms of it, and the kernel's time
//! passes each second. Calls that come of that belong to the event that comes next. No commands are shown: they are
//! no decisions.

pub(crate) mod arguments;
mod argv;
mod books;
mod compare;
mod deviations;
mod differences;
mod files;
mod spark;
mod start;
mod tasks;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow::{self, Break, Continue};
use std::path::Path;
use std::time::{Duration, Instant};

use offermill::Kernel;

use crate::exit::Exit;
use crate::output::{Said, remark, say};
use crate::record;
use crate::scenario::reader::{self, Fault, Scenario};
use crate::scenario::{Answer, Call, Closing, Conducts, answer::CallLine, line};
use crate::text::format::count;

use arguments::{Compat, ReplayArguments};
use compare::{Comparer, Comparison, Cut};
use spark::Spark;

/// So much is printed at once, in bytes.
const CHUNK: usize = 64 * 1024;
/// Answers don't wait longer to be said, so that it is seen when nobody reads them any more.
const PATIENCE: Duration = Duration::from_millis(100);

/// `offermill replay`.
pub(crate) fn replay(arguments: &ReplayArguments) -> Exit {
    let pairs = match files::pairs(&arguments.scenarios, &arguments.expect) {
        Ok(pairs) => pairs,
        Err(problem) => {
            remark(&problem);
            return Exit::BadInput;
        }
    };
    let (mut sums, mut unreadable) = (Sums::default(), false);
    for pair in &pairs {
        let outcome = read(&pair.scenario, arguments.compat).and_then(|(scenario, compat)| {
            let Some(expected) = &pair.expected else {
                return Ok(print(&scenario, compat));
            };
            let expected = compare::read(expected)?;
            let comparison = compared(&scenario, compat, &expected);
            Ok(sums.tell(&pair.scenario, &comparison, arguments.show))
        });
        match outcome {
            Ok(Said::Heard) => {}
            Ok(Said::Unheard) if arguments.expect.is_empty() => return Exit::Done,
            // Whether anything differs is still to be found out.
            Ok(Said::Unheard) => {}
            Ok(Said::Lost) => return Exit::OutputClosed,
            Err(fault) => {
                remark(&fault.to_string());
                unreadable = true;
            }
        }
    }
    if !arguments.expect.is_empty() && say(&sums.told()) == Said::Lost {
        return Exit::OutputClosed;
    }
    match (unreadable, sums.wrong) {
        (true, _) => Exit::BadInput,
        (false, 0) => Exit::Done,
        (false, _) => Exit::Differs,
    }
}

/// Reads a scenario, and says whose way of deciding is taken for it.
fn read(path: &Path, compat: Option<Compat>) -> Result<(Scenario, bool), Fault> {
    let scenario = reader::scenario(path)?;
    if let Some(number) = scenario.cut {
        let path = path.display();
        remark(&format!(
            "{path}:{number}: the file ends in the middle of this line, which is left out"
        ));
    }
    scenario.check_moments(path)?;
    let is_spark = compat.is_some() || scenario.head.conduct == Some(Conducts::Spark35);
    Ok((scenario, is_spark))
}

/// Plays a scenario; `take` gets each answer, until it breaks.
fn play(scenario: &Scenario, is_spark: bool, take: impl FnMut(Answer) -> ControlFlow<()>) {
    match is_spark {
        true => drop(play_as_spark(scenario, take)),
        false => play_as_ourselves(scenario, take),
    }
}

fn play_as_ourselves(scenario: &Scenario, mut take: impl FnMut(Answer) -> ControlFlow<()>) {
    match start::own(&scenario.head) {
        Err(init) => drop(take(Answer::Init(*init))),
        Ok((config, ids)) => {
            // Moments were looked at when the scenario was read.
            let _in_order = record::play(&scenario.events, Kernel::new(config, ids), take);
        }
    }
}

fn play_as_spark(
    scenario: &Scenario,
    mut take: impl FnMut(Answer) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let start = match start::spark(&scenario.head) {
        Err(init) => return take(Answer::Init(*init)),
        Ok(start) => start,
    };
    take(Answer::Init(start.init.clone()))?;
    let mut player = Spark::new(start);
    let mut calls: Vec<Call> = Vec::new();
    for (ev, event) in (0..).zip(&scenario.events) {
        let result = player.play(event.at_ms, &event.what, &mut calls);
        for call in calls.drain(..) {
            take(Answer::Call(CallLine { ev, at_ms: None, call }))?;
        }
        take(Answer::Closing(Closing { ev, result, error: None, after: player.after() }))?;
    }
    Continue(())
}

fn print(scenario: &Scenario, is_spark: bool) -> Said {
    let (mut text, mut said, mut said_at) = (String::new(), Said::Heard, Instant::now());
    play(scenario, is_spark, |answer| {
        text.push_str(&line(&answer));
        if text.len() >= CHUNK || said_at.elapsed() >= PATIENCE {
            said = say(&text);
            said_at = Instant::now();
            text.clear();
        }
        if said == Said::Heard { Continue(()) } else { Break(()) }
    });
    match said {
        Said::Heard => say(&text),
        other => other,
    }
}

fn compared(scenario: &Scenario, is_spark: bool, expected: &[Answer]) -> Comparison {
    let mut comparer = Comparer::new(scenario, expected, !is_spark);
    play(scenario, is_spark, |answer| {
        comparer.take(answer);
        Continue(())
    });
    comparer.end()
}

/// What came of all comparisons.
#[derive(Debug, Default)]
struct Sums {
    scenarios: u64,
    answers: u64,
    wrong: u64,
    cut: u64,
    short: u64,
    alike: u64,
}

impl Sums {
    /// Counts a comparison and tells what differs.
    fn tell(&mut self, path: &Path, comparison: &Comparison, show: usize) -> Said {
        let Comparison { answers, differences, cut, alike } = comparison;
        self.scenarios += 1;
        self.answers += answers;
        self.alike += alike;
        self.wrong += u64::from(!differences.is_empty());
        self.cut += u64::from(*cut == Some(Cut::Nonsense));
        self.short += u64::from(*cut == Some(Cut::NoMore));
        let path = path.display();
        let mut text = String::new();
        for difference in differences.iter().take(show) {
            text.push_str(&format!("{path}: {difference}\n"));
        }
        if differences.len() > show {
            text.push_str(&format!("{path}: and {} more\n", differences.len() - show));
        }
        if text.is_empty() { Said::Heard } else { say(&text) }
    }

    fn told(&self) -> String {
        let Sums { scenarios, answers, wrong, cut, short, alike } = self;
        let differ = match wrong {
            0 => "no difference".to_owned(),
            wrong => format!("{} with differences", count(*wrong, "scenario")),
        };
        let (scenarios, answers) = (count(*scenarios, "scenario"), count(*answers, "answer"));
        let mut text = format!("{scenarios}, {answers} compared ({alike} to the byte), {differ}\n");
        if *cut > 0 {
            text.push_str(&format!(
                "{} compared only up to where Spark threw an exception or was told of a task that didn't live there\n",
                count(*cut, "scenario"),
            ));
        }
        if *short > 0 {
            let short = count(*short, "scenario");
            text.push_str(&format!("{short} compared only up to where the expected answers end\n"));
        }
        text
    }
}
