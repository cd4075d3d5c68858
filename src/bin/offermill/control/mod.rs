//! Control of a run by commands from clients, which connect to a socket (`offermill ctl` does) or write to standard
//! input.
//!
//! ```text
//! client ─► socket.rs ─► clients.rs ─► lines.rs ─► command.rs ─► the run: executes ─► reply ─► the client
//! (many)    the file     a thread       bounded     parsed        it (one inbox)                or, for standard
//!                        per client                                                             input, the output
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

use std::io;
use std::path::Path;

use crate::control::clients::Clients;
use crate::control::request::ControlRequest;
use crate::control::socket::SocketFile;

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
pub(crate) fn open<S>(paths: &[String], send: &S) -> Result<ControlSockets, String>
where
    S: Fn(ControlRequest) -> bool + Clone + Send + 'static,
{
    let mut files = Vec::new();
    let mut accepted = Vec::new();
    let no_thread = |error: io::Error| format!("--control: the thread can't be started: {error}");
    for path in paths {
        if path == STANDARD_INPUT {
            clients::read_standard_input(send.clone()).map_err(no_thread)?;
            continue;
        }
        let (listener, file) = socket::bind(Path::new(path))
            .map_err(|why| format!("--control is {path:?}, but {why}"))?;
        files.push(file);
        accepted.push(clients::accept_clients(listener, send.clone()).map_err(no_thread)?);
    }
    Ok(ControlSockets { _files: files, clients: accepted })
}
