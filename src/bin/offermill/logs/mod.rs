//! `offermill logs`: prints the output of an executor or a task on a local agent, from its sandbox.

mod find;
mod follow;
mod printer;

use std::io;
use std::path::PathBuf;

use clap::Args;

use crate::exit::ExitStatus;
use crate::logs::find::find_sandbox;
use crate::logs::follow::{LogFile, follow};
use crate::logs::printer::LogPrinter;
use crate::output::remark;

const NOTES: &str = "\
What an executor printed stays in its sandbox, the folder that the summary of a run names in
\"output in\". Of executors on Mesos it is on their agents; of tasks there, the results file
has the place.

ID is an executor's whole name; or the id of a task, whose last attempt it is; or a short
form of an executor's name: its end after the last \"-\", or its number. In a run of tasks
a number alone is always the id of a task.

Without --stdout or --stderr, standard output goes to standard output and standard error to
standard error; which of their lines came first isn't known. On a terminal, control
characters are escaped.

Examples:
    offermill logs demo-mwsr3noe-0.0
    offermill logs --follow 3               the executor with this number, of the latest run
    offermill logs lint                     the task with this id
    offermill logs --work-dir /var/lib/etl --stderr 3.1 | tail

Exit codes:
    0  the output was printed; with --follow, the executor has ended
    2  there is no such executor or task, or its output can't be read
    5  standard output can't be written (a closed pipe is fine)";

/// The arguments of `offermill logs`.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct LogsArguments {
    /// The executor's name or a short form of it, or the task's id; of the latest run that has such a one
    #[arg(value_name = "ID")]
    id: String,

    /// Go on until the executor has ended, or Ctrl-C
    #[arg(long, short = 'f')]
    follow: bool,

    /// Print its standard output alone
    #[arg(long, conflicts_with = "stderr")]
    stdout: bool,

    /// Print its standard error alone, to standard output
    #[arg(long)]
    stderr: bool,

    /// The folder that was given to the run with --work-dir
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    work_dir: PathBuf,

    /// The run, by the id as which it was registered; else the latest that has such an executor
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

/// Prints the output.
pub(crate) fn print_logs(arguments: &LogsArguments) -> ExitStatus {
    let LogsArguments { id, work_dir, run, .. } = arguments;
    let sandbox = match find_sandbox(work_dir, run.as_deref(), id) {
        Ok(sandbox) => sandbox,
        Err(why) => {
            remark(&why);
            return ExitStatus::BadInput;
        }
    };
    let stderr = match arguments.stderr {
        true => LogPrinter::to_stdout(),
        false => LogPrinter::to_stderr(),
    };
    let mut files = Vec::new();
    for (name, printer, is_left_out) in [
        ("stdout", LogPrinter::to_stdout(), arguments.stderr),
        ("stderr", stderr, arguments.stdout),
    ] {
        if is_left_out {
            continue;
        }
        match sandbox.open_file(name) {
            Ok(file) => files.push(LogFile::new(file, printer)),
            Err(error) => {
                let path = sandbox.path().join(name);
                remark(&format!("{} can't be read: {error}", path.display()));
                return ExitStatus::BadInput;
            }
        }
    }
    match follow(&mut files, arguments.follow.then_some(&sandbox)) {
        Ok(()) => ExitStatus::Done,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitStatus::Done,
        Err(error) => {
            remark(&format!("the output can't be read, or can't be written: {error}"));
            ExitStatus::OutputClosed
        }
    }
}
