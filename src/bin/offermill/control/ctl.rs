//! `offermill ctl`: sends a command to a running `offermill run` and prints the reply.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use clap::Args;

use crate::control::command::HELP;
use crate::exit::ExitStatus;
use crate::output::{PrintOutcome, print_result, remark};
use crate::text::styled::StyledText;

/// The longest wait for a reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

const EXAMPLES: &str = "\
Examples:
    offermill ctl /run/etl.sock status
    offermill ctl /run/etl.sock limit 20
    offermill ctl /run/etl.sock kill 17 18

Exit codes:
    0  the run executed the command; the reply is on standard output
    1  the run refused the command; the reason is on standard error
    2  the command is not one line of text
    4  no run replies at the socket
    5  standard output can't be written (a closed pipe is fine)";

/// The arguments of `offermill ctl`.
#[derive(Debug, Args)]
#[command(after_help = format!("Commands:\n{HELP}\n\n{EXAMPLES}"))]
pub(crate) struct CtlArguments {
    /// The socket that was given to the run with --control
    #[arg(value_name = "SOCKET")]
    pub(crate) socket: String,

    /// The command and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
}

/// Sends the command and prints the reply.
pub(crate) fn send_command(arguments: &CtlArguments) -> ExitStatus {
    let CtlArguments { socket, command } = arguments;
    let line = command.join(" ");
    if line.contains('\n') || line.trim().is_empty() {
        remark("the command must be one line; \"help\" lists the commands");
        return ExitStatus::BadInput;
    }
    let reply = match exchange(socket, &line) {
        Ok(reply) => reply,
        Err(error) => {
            remark(&format!("no run answers at {socket:?}: {error}"));
            return ExitStatus::Cluster;
        }
    };
    let reply = reply.trim_end();
    if let Some(why) = reply.strip_prefix("error: ") {
        remark(why);
        return ExitStatus::CommandRefused;
    }
    let reply = reply.strip_prefix("ok: ").unwrap_or(reply);
    match print_result(&StyledText::lines(&format!("{reply}\n"))) {
        PrintOutcome::Written | PrintOutcome::Closed => ExitStatus::Done,
        PrintOutcome::Failed => ExitStatus::OutputClosed,
    }
}

/// Sends the line and returns the whole reply. Closing the sending side tells the run that no other command follows.
fn exchange(socket: &str, line: &str) -> io::Result<String> {
    let mut run = UnixStream::connect(socket)?;
    run.set_read_timeout(Some(REPLY_TIMEOUT))?;
    run.set_write_timeout(Some(REPLY_TIMEOUT))?;
    // A run with too many clients replies without reading, so a failed write is reported only without a reply.
    let written = run.write_all(format!("{line}\n").as_bytes());
    let _gone = run.shutdown(Shutdown::Write);
    let mut reply = String::new();
    let read = run.read_to_string(&mut reply);
    if reply.is_empty() {
        written?;
        read?;
        return Err(io::Error::other("it closed the connection without a reply"));
    }
    Ok(reply)
}
