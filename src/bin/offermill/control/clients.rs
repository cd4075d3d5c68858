//! A thread per client, which reads lines, sends the commands to the run and writes the replies.

use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::control::command::ControlCommand;
use crate::control::lines::{self, Line};
use crate::control::request::{ControlRequest, exchange};
use crate::control::write::write_until;
use crate::model::reply::ControlReply;
use crate::text::format::{printable, printable_json};
use crate::text::styled::StyledText;

/// The most clients that may be connected at a time.
const CLIENTS_MAX: usize = 16;
/// The longest that writing a reply to a client may take; then its connection is closed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// The least time without a command after which a client gives way to a new one, if there are too many.
const IDLE_MIN: Duration = Duration::from_secs(10);
/// The pause after a failed `accept`, for example with too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The longest line, in bytes without its line feed: enough for the names of a few thousand executors.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// The reply to a line, and whether its client is done.
pub(super) type Answer = (ControlReply, bool);

/// Starts a thread that accepts clients. `answer` returns what a line is answered with, `None` if it is blank. Returns
/// the clients that are connected at any time.
///
/// # Errors
/// If no thread can be started.
pub(super) fn accept_clients<A>(listener: UnixListener, answer: A) -> io::Result<Clients>
where
    A: Fn(Line) -> Option<Answer> + Clone + Send + 'static,
{
    let clients = Clients::default();
    let accepted = clients.clone();
    let accept = move || {
        loop {
            match listener.accept() {
                Ok((client, _)) => accept_client(&accepted, client, IDLE_MIN, &answer),
                Err(_) => sleep(ACCEPT_PAUSE),
            }
        }
    };
    Builder::new().name("offermill-control".into()).spawn(accept)?;
    Ok(clients)
}

/// Starts a thread that serves a client. If there are too many, one that was idle for `idle_min` gives way to it.
fn accept_client<A>(clients: &Clients, client: UnixStream, idle_min: Duration, answer: &A)
where
    A: Fn(Line) -> Option<Answer> + Clone + Send + 'static,
{
    let client = Arc::new(client);
    let Some(slot) = clients.admit(&client, idle_min) else { return reject_client(&client) };
    let answer = answer.clone();
    let serve = move || {
        // An error means that the client went away, or doesn't read.
        let _gone = serve_client(&slot, &client, &answer);
    };
    // Without a thread the client finds its connection closed.
    let _no_thread = Builder::new().name("offermill-client".into()).spawn(serve);
}

/// The clients that are connected.
#[derive(Clone, Debug, Default)]
pub(super) struct Clients(Arc<Mutex<Vec<Arc<ClientState>>>>);

#[derive(Debug)]
struct ClientState {
    stream: Arc<UnixStream>,
    /// Locked while the client's thread reads what has arrived, so that no command is between the socket and this.
    activity: Mutex<ClientActivity>,
}

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientActivity {
    /// It has sent no complete command since this time.
    Idle(Instant),
    /// A command that it gave is executed, or waits for that.
    Busy,
    /// It gave way to another client: nothing that it sends is read any more.
    Disconnected,
}

impl ClientState {
    /// Since when the client has been idle, if it is: it has no reply to wait for, and nothing that it sent waits to be
    /// read.
    fn idle_since(&self) -> Option<Instant> {
        self.idle_since_locked(&lock(&self.activity))
    }

    fn idle_since_locked(&self, activity: &ClientActivity) -> Option<Instant> {
        let ClientActivity::Idle(since) = *activity else { return None };
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut readable = [PollFd::new(&*self.stream, PollFlags::IN)];
        matches!(poll(&mut readable, Some(&at_once)), Ok(0)).then_some(since)
    }

    /// Disconnects the client if it is idle; its thread finds the connection closed, and ends. Returns whether it was.
    fn disconnect(&self) -> bool {
        let mut activity = lock(&self.activity);
        let is_idle = self.idle_since_locked(&activity).is_some();
        if is_idle {
            *activity = ClientActivity::Disconnected;
            let _gone = self.stream.shutdown(Shutdown::Both);
        }
        is_idle
    }
}

/// Reads what a client sends, and counts it as busy as soon as a line is whole.
struct ClientReader<'c>(&'c ClientState);

impl Read for ClientReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let ClientState { stream, activity } = self.0;
        poll(&mut [PollFd::new(&**stream, PollFlags::IN)], None)?;
        let mut activity = lock(activity);
        if *activity == ClientActivity::Disconnected {
            // Not the end of the input, which would make the beginning of a line a command.
            return Err(ErrorKind::ConnectionAborted.into());
        }
        // Doesn't wait: only this thread reads.
        let length = (&mut &**stream).read(buffer)?;
        // The last line needs no line feed.
        if length == 0 || buffer.get(..length).is_some_and(has_line) {
            *activity = ClientActivity::Busy;
        }
        Ok(length)
    }
}

fn has_line(bytes: &[u8]) -> bool {
    bytes.contains(&b'\n')
}

/// A client's place among the clients, until this is dropped.
struct ClientSlot {
    clients: Clients,
    state: Arc<ClientState>,
}

impl Clients {
    /// Whether each client has the replies to all commands that it has given.
    pub(super) fn are_answered(&self) -> bool {
        lock(&self.0).iter().all(|client| client.idle_since().is_some())
    }

    /// Adds a client. If there are too many, disconnects the one that has been idle for longest, but at least for
    /// `idle_min`; returns `None` if there is none.
    fn admit(&self, stream: &Arc<UnixStream>, idle_min: Duration) -> Option<ClientSlot> {
        let mut clients = lock(&self.0);
        if clients.len() >= CLIENTS_MAX {
            let idle = clients.iter().enumerate();
            let idle = idle.filter_map(|(at, it)| Some((it.idle_since()?, at)));
            let (since, at) = idle.min()?;
            if since.elapsed() < idle_min || !clients.get(at)?.disconnect() {
                return None;
            }
            clients.swap_remove(at);
        }
        let activity = Mutex::new(ClientActivity::Idle(Instant::now()));
        let state = Arc::new(ClientState { stream: Arc::clone(stream), activity });
        clients.push(Arc::clone(&state));
        Some(ClientSlot { clients: self.clone(), state })
    }
}

impl ClientSlot {
    /// Counts the client as idle from now on, unless it gave way to another one.
    fn set_idle(&self) {
        let mut activity = lock(&self.state.activity);
        if *activity == ClientActivity::Busy {
            *activity = ClientActivity::Idle(Instant::now());
        }
    }
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        lock(&self.clients.0).retain(|other| !Arc::ptr_eq(other, &self.state));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn reject_client(mut client: &UnixStream) {
    let why = format!("{CLIENTS_MAX} clients are connected already, and no more are accepted");
    // The line fits into any socket buffer.
    let _gone = client
        .set_nonblocking(true)
        .and_then(|()| client.write_all(reply_text(&ControlReply::Refused(why)).as_bytes()));
}

fn serve_client(
    slot: &ClientSlot,
    client: &UnixStream,
    answer: &impl Fn(Line) -> Option<Answer>,
) -> io::Result<()> {
    let mut reader = BufReader::new(ClientReader(&slot.state));
    while let Some(line) = lines::next(&mut reader, LINE_BYTES_MAX)? {
        if let Some((reply, is_last)) = answer(line) {
            let give_up = Instant::now() + WRITE_TIMEOUT;
            write_until(client, reply_text(&reply).as_bytes(), give_up)?;
            if is_last {
                break;
            }
        }
        if !has_line(reader.buffer()) {
            slot.set_idle();
        }
    }
    Ok(())
}

/// Passes a line of a client to a run, and waits for the answer. `None` if it is blank.
pub(super) fn ask_run(line: Line, send: &impl Fn(ControlRequest) -> bool) -> Option<Answer> {
    let command = line.text().and_then(|text| ControlCommand::parse(&text));
    Some(exchange(command.transpose()?, None, send))
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

#[cfg(test)]
mod tests {
    use std::io::BufRead;

    use super::*;

    /// Goal: the end of a run can wait until a client has its reply, and there is no moment between the arrival of a
    /// command and its reply in which a client looks idle. Method: a client sends two commands and a part of a third,
    /// which are read one after the other; then it leaves. Before each step, whether it looks idle.
    #[test]
    fn clients_without_a_reply_are_seen() {
        let clients = Clients::default();
        let (stream, mut peer) = UnixStream::pair().unwrap();
        let slot = clients.admit(&Arc::new(stream), IDLE_MIN).unwrap();
        let mut reader = BufReader::new(ClientReader(&slot.state));
        assert!(clients.are_answered());
        peer.write_all(b"one\ntwo\nthr").unwrap();
        assert!(!clients.are_answered(), "not read yet");
        for is_last in [false, true] {
            lines::next(&mut reader, LINE_BYTES_MAX).unwrap();
            assert!(!clients.are_answered(), "not executed yet");
            assert_eq!(has_line(reader.buffer()), !is_last);
        }
        slot.set_idle();
        assert!(clients.are_answered());
        peer.write_all(b"ee").unwrap();
        peer.shutdown(Shutdown::Write).unwrap();
        let third = lines::next(&mut reader, LINE_BYTES_MAX).unwrap();
        assert_eq!(third, Some(Line::Text("three".to_owned())));
        assert!(!clients.are_answered(), "the last line has no line feed");
        drop(slot);
        assert!(clients.are_answered());
    }

    /// Goal: a client that gives way isn't heard any more, and one that has sent a command doesn't give way. Method: a
    /// client with a command that isn't read yet, and one that sends a command after it was disconnected.
    #[test]
    fn no_command_is_executed_without_a_reply() {
        let clients = Clients::default();
        let [(busy, mut busy_peer), (idle, mut idle_peer)] =
            [(); 2].map(|()| UnixStream::pair().unwrap());
        let [busy, idle] =
            [busy, idle].map(|stream| clients.admit(&Arc::new(stream), IDLE_MIN).unwrap());
        busy_peer.write_all(b"status\n").unwrap();
        assert!(!busy.state.disconnect());
        assert!(idle.state.disconnect());
        let _closed = idle_peer.write_all(b"stop\n");
        let error = ClientReader(&idle.state).read(&mut [0; 9]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionAborted);
        idle.set_idle();
        assert_eq!(*lock(&idle.state.activity), ClientActivity::Disconnected);
    }

    /// Executes nothing, and says so.
    fn ended(line: Line) -> Option<Answer> {
        ask_run(line, &|_| false)
    }

    fn connect(clients: &Clients, idle_min: Duration) -> BufReader<UnixStream> {
        let (client, run) = UnixStream::pair().unwrap();
        accept_client(clients, run, idle_min, &ended);
        BufReader::new(client)
    }

    fn line(client: &mut BufReader<UnixStream>) -> String {
        let mut line = String::new();
        client.read_line(&mut line).unwrap();
        line
    }

    /// Goal: clients that give no command don't lock others out, whether they are silent or stop in the middle of a
    /// line, and clients that aren't idle for long stay. Method: as many of them as are allowed, and one more; first
    /// with a time that none reaches, then without one.
    #[test]
    fn idle_clients_give_way() {
        let clients = Clients::default();
        let forever = Duration::from_secs(1_000_000);
        let mut idle: Vec<_> = (0..CLIENTS_MAX).map(|_| connect(&clients, forever)).collect();
        idle[0].get_mut().write_all(b"stat").unwrap();
        while !clients.are_answered() {
            sleep(Duration::from_millis(1));
        }
        assert!(line(&mut connect(&clients, forever)).starts_with("error: 16 clients"));
        let mut next = connect(&clients, Duration::ZERO);
        assert_eq!(line(&mut idle[0]), "", "the first is disconnected");
        next.get_mut().write_all(b"status\n").unwrap();
        assert_eq!(line(&mut next), "error: the run has ended\n");
        idle[1].get_mut().write_all(b"status\n").unwrap();
        assert_eq!(line(&mut idle[1]), "error: the run has ended\n", "the others stay");
    }
}
