//! Control of a run by commands from clients, which connect to a socket (`offermill ctl` does) or write to standard
//! input.
//!
//! ```text
//! client ─► socket.rs ─► clients.rs ─► lines.rs ─► command.rs ─► the run: executes ─► reply ─► the client
//! (many)    the file     a thread       bounded     parsed        it (one inbox)                or, for standard
//!                        per client                                                             input, the output
//! parent ─► standard_input.rs ─► lines.rs …  its end ends a run with `--steered`
//! ```
//!
//! Each line that isn't blank gets a reply: a line that begins with `ok:` or `error:`, or a block that ends with an
//! empty line. A client's next line is read after the reply to the one before was sent, so the run's inbox never holds
//! more commands than there are clients. The run waits for no client.

mod clients;
pub(crate) mod command;
pub(crate) mod ctl;
mod lines;
pub(crate) mod request;
mod socket;
mod standard_input;
mod write;

use std::io;
use std::path::Path;

use crate::control::clients::{Clients, accept_clients, ask_run};
use crate::control::request::ControlRequest;
use crate::control::socket::SocketFile;
use crate::control::standard_input::read_standard_input;
use crate::model::reply::ControlReply;

/// The value of `--control` for standard input.
const STANDARD_INPUT: &str = "-";

/// The open sockets; their files are removed when this is dropped.
#[derive(Debug)]
pub(crate) struct ControlSockets {
    _files: Vec<SocketFile>,
    /// The clients of each socket.
    clients: Vec<Clients>,
}

impl ControlSockets {
    /// Whether each client has the replies to all commands that it has given.
    pub(crate) fn are_answered(&self) -> bool {
        self.clients.iter().all(Clients::are_answered)
    }
}

/// Opens the sockets at `paths` and starts to read commands; `-` is standard input. `send` passes a request to the run
/// and returns whether the run still accepts requests.
///
/// # Errors
/// With a sentence about the first path that can't be opened. None is open then.
pub(crate) fn open<S>(
    paths: &[String],
    is_steered: bool,
    send: &S,
) -> Result<ControlSockets, String>
where
    S: Fn(ControlRequest) -> bool + Clone + Send + 'static,
{
    let mut files = Vec::new();
    let mut accepted = Vec::new();
    let no_thread = |error: io::Error| format!("--control: the thread can't be started: {error}");
    for (number, path) in paths.iter().enumerate() {
        // A parent's commands are read by `steer`.
        if path == STANDARD_INPUT && is_steered {
            continue;
        }
        if path == STANDARD_INPUT {
            // Its end doesn't stop the run.
            read_standard_input(send.clone(), |_| {}).map_err(no_thread)?;
            continue;
        }
        if paths[..number].contains(path) {
            return Err(format!(
                "--control is {path:?}, but is given twice: this run listens there already"
            ));
        }
        let (listener, file) = socket::bind(Path::new(path))
            .map_err(|why| format!("--control is {path:?}, but {why}"))?;
        files.push(file);
        let send = send.clone();
        let answer = move |line| ask_run(line, &send);
        accepted.push(accept_clients(listener, answer).map_err(no_thread)?);
    }
    Ok(ControlSockets { _files: files, clients: accepted })
}

/// Opens a socket at a path, whose lines `answer` answers; `None` means that a line is blank.
///
/// # Errors
/// With the rest of a sentence that begins with the path.
pub(crate) fn open_for<A>(path: &Path, answer: A) -> Result<ControlSockets, String>
where
    A: Fn(Result<String, String>) -> Option<ControlReply> + Clone + Send + 'static,
{
    let (listener, file) = socket::bind(path)?;
    let accepted = accept_clients(listener, move |line| Some((answer(line.text())?, false)));
    let clients = accepted.map_err(|error| format!("the thread can't be started: {error}"))?;
    Ok(ControlSockets { _files: vec![file], clients: vec![clients] })
}

/// Starts to read the commands of the program that steers the run, from standard input. Calls `at_end` when it ends or
/// can't be read.
///
/// # Errors
/// With a sentence if no thread can be started.
pub(crate) fn steer<S, E>(send: S, at_end: E) -> Result<(), String>
where
    S: Fn(ControlRequest) -> bool + Send + 'static,
    E: FnOnce(io::Result<()>) + Send + 'static,
{
    read_standard_input(send, at_end)
        .map_err(|error| format!("--steered: the thread can't be started: {error}"))
}
