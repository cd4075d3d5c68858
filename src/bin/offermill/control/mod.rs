//! The doors through which a run is steered while it goes on: a socket for `offermill ctl` and the like, or standard
//! input.
//!
//! ```text
//! client ─► socket.rs ─► clients.rs ─► lines.rs ─► command.rs ─► session: does it ─► answer ─► the client
//! (many)    the file     a thread       bounded     what a        (one inbox)                  or, from standard
//!                        each                       line says                                  input, the face
//! ```
//!
//! Each line that isn't blank is answered: by a line that begins with `ok:` or `error:`, or by a block that ends with
//! an empty line. A client waits for its answer before its next line is read, so that there are never more commands in
//! the session's inbox than clients; the session waits for no client.

mod clients;
mod command;
pub(crate) mod ctl;
mod lines;
mod socket;

use std::io;
use std::path::Path;
use std::sync::mpsc::SyncSender;

pub(crate) use command::{Activity, Command, HELP, Registered};

use serde_json::Value;

use crate::run::Message;
use crate::run::inbox::Sender;
use socket::Claim;

/// Stands for standard input where a socket's path could be.
const STANDARD_INPUT: &str = "-";

/// What a client asks for.
#[derive(Debug)]
pub(crate) struct Request {
    /// The command, or why there is none in the line.
    pub(crate) what: Result<Command, String>,
    /// Whether the answer is shown with the run's events: there is no other place for it.
    pub(crate) is_shown: bool,
    reply: SyncSender<Answer>,
}

/// What a client is told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// It was done.
    Done(String),
    /// It wasn't, and nothing else was.
    Refused(String),
    /// Several lines.
    Block(String),
    /// A line that is to be read by programs.
    Object(Value),
}

impl Request {
    /// Answers. Whoever doesn't wait any more isn't waited for.
    pub(crate) fn answer(self, answer: Answer) {
        let _gone = self.reply.try_send(answer);
    }
}

impl Answer {
    /// As it goes to a client.
    fn line(&self) -> String {
        match self {
            Answer::Done(text) => format!("ok: {}\n", text.replace('\n', " ")),
            Answer::Refused(text) => format!("error: {}\n", text.replace('\n', " ")),
            Answer::Block(text) => format!("{}\n\n", text.trim_end()),
            Answer::Object(text) => format!("{text}\n"),
        }
    }
}

/// Doors that are open; closed when this is dropped.
#[derive(Debug)]
pub(crate) struct Doors {
    _claims: Vec<Claim>,
}

/// Opens the doors that were asked for: paths of sockets, or `-`.
///
/// # Errors
/// A sentence about the first that can't be opened; none is open then.
pub(crate) fn open(doors: &[String], session: &Sender<Message>) -> Result<Doors, String> {
    let mut claims = Vec::new();
    let no_thread = |error: io::Error| format!("--control needs a thread more: {error}");
    for door in doors {
        if door == STANDARD_INPUT {
            clients::listen_to_standard_input(session.clone()).map_err(no_thread)?;
            continue;
        }
        let (listener, claim) = socket::bind(Path::new(door))
            .map_err(|why| format!("--control is {door:?}, but {why}"))?;
        claims.push(claim);
        clients::serve(listener, session.clone()).map_err(no_thread)?;
    }
    Ok(Doors { _claims: claims })
}
