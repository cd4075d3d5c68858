//! A thread per client, which reads lines, sends the commands to the run and writes the replies.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{Builder, sleep};
use std::time::Duration;

use crate::control::command::ControlCommand;
use crate::control::lines::{self, LINE_BYTES_MAX, Line};
use crate::control::request::ControlRequest;
use crate::model::reply::ControlReply;
use crate::text::format::{printable, printable_json};
use crate::text::styled::StyledText;

/// The most clients that may be connected at a time.
const CLIENTS_MAX: usize = 16;
/// The longest that a write to a client may take; then its connection is closed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause after a failed `accept`, for example with too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Starts a thread that accepts clients.
///
/// # Errors
/// If no thread can be started.
pub(super) fn accept_clients<S>(listener: UnixListener, send: S) -> io::Result<()>
where
    S: Fn(ControlRequest) -> bool + Clone + Send + 'static,
{
    let accept = move || {
        // Each client's thread holds a clone, so the reference count is the number of clients.
        let slot = Arc::new(());
        loop {
            let Ok((client, _)) = listener.accept() else {
                sleep(ACCEPT_PAUSE);
                continue;
            };
            if Arc::strong_count(&slot) > CLIENTS_MAX {
                reject_client(&client);
                continue;
            }
            let slot = Arc::clone(&slot);
            let send = send.clone();
            let serve = move || {
                // An error means that the client went away, or doesn't read.
                let _gone = serve_client(&client, &send);
                drop(slot);
            };
            // Without a thread the client finds its connection closed.
            let _no_thread = Builder::new().name("offermill-client".into()).spawn(serve);
        }
    };
    Builder::new().name("offermill-control".into()).spawn(accept)?;
    Ok(())
}

fn reject_client(mut client: &UnixStream) {
    let why = format!("{CLIENTS_MAX} clients are connected already, and no more are accepted");
    // The line fits into any socket buffer.
    let _gone = client
        .set_nonblocking(true)
        .and_then(|()| client.write_all(reply_text(&ControlReply::Refused(why)).as_bytes()));
}

fn serve_client(client: &UnixStream, send: &impl Fn(ControlRequest) -> bool) -> io::Result<()> {
    client.set_write_timeout(Some(WRITE_TIMEOUT))?;
    let mut reader = BufReader::new(client);
    let mut writer = client;
    while let Some(line) = lines::next(&mut reader)? {
        let (reply, is_last) = execute(line, false, send);
        if let Some(reply) = reply {
            writer.write_all(reply_text(&reply).as_bytes())?;
        }
        if is_last {
            break;
        }
    }
    Ok(())
}

/// Starts a thread that reads commands from standard input. The end of the input doesn't stop the run.
///
/// # Errors
/// If no thread can be started.
pub(super) fn read_standard_input<S>(send: S) -> io::Result<()>
where
    S: Fn(ControlRequest) -> bool + Send + 'static,
{
    let read = move || read_commands(&mut io::stdin().lock(), &send);
    Builder::new().name("offermill-control-input".into()).spawn(read)?;
    Ok(())
}

fn read_commands(reader: &mut impl BufRead, send: &impl Fn(ControlRequest) -> bool) {
    while let Ok(Some(line)) = lines::next(reader) {
        let (_shown, is_last) = execute(line, true, send);
        if is_last {
            return;
        }
    }
}

/// Sends the command of a line to the run and waits for the reply. Returns the reply, unless the line is blank, and
/// whether the client is done.
fn execute(
    line: Line,
    is_shown: bool,
    send: &impl Fn(ControlRequest) -> bool,
) -> (Option<ControlReply>, bool) {
    let command = match line {
        Line::Text(text) => ControlCommand::parse(&text),
        Line::TooLong => {
            Err(format!("the line is too long; expected at most {LINE_BYTES_MAX} bytes"))
        }
        Line::NotUtf8 => Err("the line is not UTF-8".to_owned()),
    };
    let Some(command) = command.transpose() else { return (None, false) };
    let is_last = command == Ok(ControlCommand::Quit);
    let (reply_to, reply) = sync_channel(1);
    let is_sent = send(ControlRequest { command, is_shown, reply_to });
    let reply = is_sent.then(|| reply.recv().ok()).flatten();
    let has_ended = reply.is_none();
    let ended = || ControlReply::Refused("the run has ended".to_owned());
    (Some(reply.unwrap_or_else(ended)), is_last || has_ended)
}

/// A reply as it is sent to a client.
fn reply_text(reply: &ControlReply) -> String {
    match reply {
        ControlReply::Done(text) => format!("ok: {}\n", one_line(text)),
        ControlReply::Refused(text) => format!("error: {}\n", one_line(text)),
        ControlReply::Block(text) => format!("{}\n\n", StyledText::lines(text.trim_end())),
        ControlReply::Object(object) => printable_json(&format!("{object}\n")).into_owned(),
    }
}

fn one_line(text: &str) -> String {
    printable(&text.replace('\n', " "))
}
