//! `offermill ctl`: says one command to a run that goes on, and prints the answer.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::exit::Exit;
use crate::output::{Said, remark, say};
use crate::settings::flags::CtlArguments;

/// A run that says nothing for so long doesn't listen.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// Says the command.
pub(crate) fn say_command(arguments: &CtlArguments) -> Exit {
    let CtlArguments { socket, command } = arguments;
    let line = command.join(" ");
    if line.contains('\n') || line.trim().is_empty() {
        remark("the command must be one line; \"help\" is a good one");
        return Exit::BadInput;
    }
    let answer = match ask(socket, &line) {
        Ok(answer) => answer,
        Err(error) => {
            remark(&format!("no run answers at {socket:?}: {error}"));
            return Exit::Cluster;
        }
    };
    let answer = answer.trim_end();
    if let Some(why) = answer.strip_prefix("error: ") {
        remark(why);
        return Exit::CommandRefused;
    }
    let answer = answer.strip_prefix("ok: ").unwrap_or(answer);
    match say(&format!("{answer}\n")) {
        Said::Heard | Said::Unheard => Exit::Done,
        Said::Lost => Exit::OutputClosed,
    }
}

/// The whole answer. The end of what is asked is the end of the connection.
fn ask(socket: &str, line: &str) -> io::Result<String> {
    let mut run = UnixStream::connect(socket)?;
    run.set_read_timeout(Some(ANSWERED_WITHIN))?;
    run.set_write_timeout(Some(ANSWERED_WITHIN))?;
    // A run that has no room for another client answers without having read.
    let told = run.write_all(format!("{line}\n").as_bytes());
    let _gone = run.shutdown(Shutdown::Write);
    let mut answer = String::new();
    let read = run.read_to_string(&mut answer);
    if answer.is_empty() {
        told?;
        read?;
        return Err(io::Error::other("it went away without a word"));
    }
    Ok(answer)
}
