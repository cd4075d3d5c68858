//! `offermill`: runs a command as executors on a cluster, watches them, replaces executors that fail, and ends cleanly.
//!
//! ```text
//! arguments ─► sources ──► draft ─► RunSettings ─► target ──────► session ◄─ signals, control
//! (cli.rs)     flag, file  table/   checks/        local, Mesos,   │  ▲
//!              --conf, env reads                   Kubernetes:     │  └ notices of the engine
//!                                                  what differs    ▼
//!                                                   run state ─► events ─► renderer: lines, table or JSON
//!                                                       └────────────────► summary
//! ```
//!
//! | room | content |
//! |---|---|
//! | `run/` | `offermill run`: the session between the engine, signals, clients and the renderer |
//! | `worker/` | `offermill worker`: the library's worker, its settings and the sentences about it |
//! | `logs/`, `replay/`, `simulate/`, `constraints.rs`, `control/ctl.rs`, `clean.rs`, `standalone_master/` | the other subcommands |
//! | `record/`, `scenario/` | journals, and the format of their files |
//! | `control/` | the socket and the commands that it accepts |
//! | `http/` | the web page about a run, its metrics and its state |
//! | `output/` | renderers, sentences and the summary |
//! | `target/` | the cluster of a run |
//! | `tasks/` | the tasks of `--tasks`: their file, order, queue and results |
//! | `settings/` | sources, options, checks and values of settings |
//! | `model/` | plain data: executors, agents, events |
//! | `text/` | formats, columns, and the writer of standard output |
//! | `signals.rs`, `exit.rs` | signal handling, exit codes |
//!
//! Rooms import downwards only. A run writes to standard output only through a renderer, and a separate thread does the
//! writing (`text/stdout.rs`), so that a reader that doesn't read can't stall the session.

mod clean;
mod cli;
mod constraints;
mod control;
mod exit;
mod http;
mod logs;
mod model;
mod output;
mod record;
mod replay;
mod run;
mod scenario;
mod settings;
mod signals;
mod simulate;
mod standalone_master;
mod target;
mod tasks;
mod text;
mod worker;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use cli::{Action, Arguments, ConstraintsAction};
use exit::ExitStatus;
use output::{PrintOutcome, print_raw};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::try_parse().unwrap_or_else(|error| with_tip(error).exit());
    let exit = match arguments.action {
        Action::Run(arguments) => run::run(&arguments),
        Action::Simulate(arguments) => simulate::simulate(&arguments),
        Action::Replay(arguments) => replay::replay(&arguments),
        Action::Constraints { action: ConstraintsAction::Check(arguments) } => {
            constraints::check(&arguments)
        }
        Action::Clean(arguments) => clean::clean(&arguments),
        Action::Master(arguments) => standalone_master::run_master(&arguments),
        Action::Logs(arguments) => logs::print_logs(&arguments),
        Action::Ctl(arguments) => control::ctl::send_command(&arguments),
        Action::Worker(arguments) => worker::run_worker(&arguments),
        Action::TaskHost => run_task_host(),
        Action::Completions { shell } => completions(shell),
    };
    ExitCode::from(exit.code())
}

/// Runs tasks until the cluster that has started this process says that they are to end. A signal to all processes of
/// this name, or of the machine, ends no task without its grace: the cluster's program gets it, too.
fn run_task_host() -> ExitStatus {
    let disregarded = signals::disregard().map_err(|error| format!("signals: {error}"));
    match disregarded.and_then(|()| offermill::cluster::run_task_host()) {
        Ok(()) => ExitStatus::Done,
        Err(why) => {
            eprintln!("offermill: {why}");
            ExitStatus::BadInput
        }
    }
}

/// The first value of a flag that begins like a negative number, with the flag. With a unit, as in `-1s`, clap takes it
/// for a flag.
fn negative_value(words: impl Iterator<Item = String>) -> Option<(String, String)> {
    let words: Vec<String> = words.take_while(|word| word != "--").collect();
    let is_negative = |word: &str| {
        let number = word.strip_prefix('-');
        number.is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
            && word.parse::<f64>().is_err()
    };
    words.windows(2).find_map(|pair| match pair {
        [flag, value] if flag.starts_with("--") && is_negative(value) => {
            Some((flag.clone(), value.clone()))
        }
        _ => None,
    })
}

/// The arguments, for messages about them.
fn words() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned())
}

/// Adds a tip to the error about a command of executors that doesn't come after `--`. Says of a negative value that it
/// is one.
fn with_tip(mut error: clap::Error) -> clap::Error {
    let is_about_value =
        matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidValue);
    if let Some((flag, value)) = negative_value(words()).filter(|_| is_about_value) {
        let sentence = format!("{flag} is {value:?}, but must not be negative\n");
        return clap::Error::raw(ErrorKind::InvalidValue, sentence);
    }
    let mut words = words();
    let is_run = words.next().is_some_and(|action| action == "run");
    let has_separator = words.any(|word| word == "--");
    if let (ErrorKind::UnknownArgument, Some(ContextValue::String(word))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
        && is_run
        && !has_separator
        && !word.starts_with('-')
    {
        let tip = "the executors' command comes after `--`, as in `offermill run -- sleep 60`";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

fn completions(shell: clap_complete::Shell) -> ExitStatus {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "offermill", &mut script);
    match print_raw(&String::from_utf8_lossy(&script)) {
        PrintOutcome::Written | PrintOutcome::Closed => ExitStatus::Done,
        PrintOutcome::Failed => ExitStatus::OutputClosed,
    }
}
