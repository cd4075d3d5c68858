//! `offermill`: runs a command as executors on a cluster, watches them, replaces those that fail,
//! and ends cleanly.
//!
//! ```text
//! arguments ─► layers ─► draft ─► settings ─► site ───────► session ◄─ signals, control
//!  (clap)     flag, file  keys.rs  checked     local, Mesos: │  ▲
//!             --conf, env reads                what differs  │  └ notices of the engine
//!                                              by cluster    ▼
//!                                               roster ─► happenings ─► face: lines, table or JSON
//!                                                  └───────────────────► summary
//! ```
//!
//! Commands come in through the doors of `control/` while a run goes on, and `session/` does what they say.
//!
//! `offermill simulate` and `offermill replay` are programs of their own, in `simulate/` and `replay/`, and `offermill
//! constraints` a small one in `constraints.rs`.
//!
//! What is known of executors is in `roster.rs`; how it looks is in the faces. Nothing else writes
//! to standard output. A thread of its own does that (`writer.rs`), so that whoever doesn't read it
//! holds up no session.

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

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use exit::Exit;
use settings::flags::{Action, Arguments, ConstraintsAction};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let exit = match Arguments::parse().action {
        Action::Run(arguments) if arguments.print_config => {
            settings::print::print_config(&arguments)
        }
        Action::Run(arguments) => run::run(&arguments),
        Action::Simulate(arguments) => simulate::simulate(&arguments),
        Action::Replay(arguments) => replay::replay(&arguments),
        Action::Constraints { action: ConstraintsAction::Check(arguments) } => {
            constraints::check(&arguments)
        }
        Action::Ctl(arguments) => control::ctl::say_command(&arguments),
        Action::Completions { shell } => completions(shell),
    };
    ExitCode::from(exit.code())
}

fn completions(shell: clap_complete::Shell) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "offermill", &mut script);
    // Whoever closed the pipe has seen enough.
    let _closed = std::io::stdout().write_all(&script);
    Exit::Done
}
