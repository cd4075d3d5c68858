//! A thread for each client: reads its lines, has them answered, and writes the answers.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{Builder, sleep};
use std::time::Duration;

use super::command::Command;
use super::lines::{self, LINE_BYTES_MAX, Line};
use super::{Answer, Request};
use crate::run::Message;
use crate::run::inbox::Sender;

/// So many clients may be connected at a time.
const CLIENTS_MAX: usize = 16;
/// A client that takes up nothing of an answer for so long is given up.
const WRITTEN_WITHIN: Duration = Duration::from_secs(5);
/// How long to wait when the system can't accept a client, as when there are too many open files.
const ACCEPTED_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Starts a thread that lets clients in.
///
/// # Errors
/// When there is no thread to be had.
pub(super) fn serve(listener: UnixListener, session: Sender<Message>) -> io::Result<()> {
    let accept = move || {
        // Each client holds one of these.
        let seat = Arc::new(());
        loop {
            let Ok((client, _)) = listener.accept() else {
                sleep(ACCEPTED_AGAIN_AFTER);
                continue;
            };
            if Arc::strong_count(&seat) > CLIENTS_MAX {
                turn_away(&client);
                continue;
            }
            let (seat, session) = (Arc::clone(&seat), session.clone());
            let talk = move || {
                // A client that went away, or doesn't listen.
                let _gone = talk(&client, &session);
                drop(seat);
            };
            // Without a thread the client finds its connection closed.
            let _no_thread = Builder::new().name("offermill-client".into()).spawn(talk);
        }
    };
    Builder::new().name("offermill-control-door".into()).spawn(accept)?;
    Ok(())
}

fn turn_away(mut client: &UnixStream) {
    let why = format!("{CLIENTS_MAX} clients are connected already, and no more are let in");
    // It fits into any buffer, or the client is none.
    let _gone = client
        .set_nonblocking(true)
        .and_then(|()| client.write_all(Answer::Refused(why).line().as_bytes()));
}

fn talk(client: &UnixStream, session: &Sender<Message>) -> io::Result<()> {
    client.set_write_timeout(Some(WRITTEN_WITHIN))?;
    let (mut reader, mut writer) = (BufReader::new(client), client);
    while let Some(line) = lines::next(&mut reader)? {
        let (answer, is_last) = ask(line, false, session);
        if let Some(answer) = answer {
            writer.write_all(answer.line().as_bytes())?;
        }
        if is_last {
            break;
        }
    }
    Ok(())
}

/// Starts a thread that reads commands from standard input up to its end, which is not the run's.
///
/// # Errors
/// When there is no thread to be had.
pub(super) fn listen_to_standard_input(session: Sender<Message>) -> io::Result<()> {
    let listen = move || listen_to(&mut io::stdin().lock(), &session);
    Builder::new().name("offermill-control-input".into()).spawn(listen)?;
    Ok(())
}

fn listen_to(reader: &mut impl BufRead, session: &Sender<Message>) {
    while let Ok(Some(line)) = lines::next(reader) {
        let (_shown, is_last) = ask(line, true, session);
        if is_last {
            return;
        }
    }
}

/// Has a line answered by the session. Returns the answer, if it was one that needs any, and whether the client wants
/// no more.
fn ask(line: Line, is_shown: bool, session: &Sender<Message>) -> (Option<Answer>, bool) {
    let what = match line {
        Line::Text(text) => Command::parse(&text),
        Line::TooLong => {
            Err(format!("the line is too long; expected at most {LINE_BYTES_MAX} bytes"))
        }
        Line::NoText => Err("the line is no text; expected UTF-8".to_owned()),
    };
    let Some(what) = what.transpose() else { return (None, false) };
    let is_last = what == Ok(Command::Quit);
    let (reply, answer) = sync_channel(1);
    let request = Message::Command(Request { what, is_shown, reply });
    let answer = session.send(request).ok().and_then(|()| answer.recv().ok());
    let has_ended = answer.is_none();
    let ended = || Answer::Refused("the run has ended".to_owned());
    (Some(answer.unwrap_or_else(ended)), is_last || has_ended)
}
