//! `offermill`: runs a command as executors on a cluster, watches them, replaces executors that fail, and ends cleanly.
//!
//! ```text
//! arguments ─► sources ──► draft ─► RunSettings ─► target ──────► session ◄─ signals, control
//! (cli.rs)     flag, file  table/   checks/        local, Mesos:   │  ▲
//!              --conf, env reads                   what differs    │  └ notices of the engine
//!                                                  by cluster      ▼
//!                                                   run state ─► events ─► renderer: lines, table or JSON
//!                                                       └────────────────► summary
//! ```
//!
//! | room | content |
//! |---|---|
//! | `run/` | `offermill run`: the session between the engine, signals, clients and the renderer |
//! | `replay/`, `simulate/`, `constraints.rs`, `control/ctl.rs` | the other subcommands |
//! | `record/`, `scenario/` | journals, and the format of their files |
//! | `control/` | the socket and the commands that it accepts |
//! | `output/` | renderers, sentences and the summary |
//! | `target/` | the cluster of a run |
//! | `settings/` | sources, options, checks and values of settings |
//! | `model/` | plain data: executors, agents, events |
//! | `text/` | formats, columns, and the writer of standard output |
//! | `signals.rs`, `exit.rs` | signal handling, exit codes |
//!
//! Rooms import downwards only. A run writes to standard output only through a renderer, and a separate thread does the
//! writing (`text/stdout.rs`), so that a reader that doesn't read can't stall the session.

mod cli;
mod constraints;
mod control;
mod exit;
mod model;
mod output;
mod record;
mod replay;
mod run;
mod scenario;
mod settings;
mod signals;
mod simulate;
mod target;
mod text;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use cli::{Action, Arguments, ConstraintsAction};
use exit::ExitStatus;
use output::{PrintOutcome, print_raw};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let exit = match Arguments::parse().action {
        Action::Run(arguments) => run::run(&arguments),
        Action::Simulate(arguments) => simulate::simulate(&arguments),
        Action::Replay(arguments) => replay::replay(&arguments),
        Action::Constraints { action: ConstraintsAction::Check(arguments) } => {
            constraints::check(&arguments)
        }
        Action::Ctl(arguments) => control::ctl::send_command(&arguments),
        Action::Completions { shell } => completions(shell),
    };
    ExitCode::from(exit.code())
}

fn completions(shell: clap_complete::Shell) -> ExitStatus {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "offermill", &mut script);
    match print_raw(&String::from_utf8_lossy(&script)) {
        PrintOutcome::Written | PrintOutcome::Closed => ExitStatus::Done,
        PrintOutcome::Failed => ExitStatus::OutputClosed,
    }
}
