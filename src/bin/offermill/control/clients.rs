//! A thread per client, which reads lines, sends the commands to the run and writes the replies.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use crate::control::command::ControlCommand;
use crate::control::lines::{self, LINE_BYTES_MAX, Line};
use crate::control::request::ControlRequest;
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

/// Starts a thread that accepts clients. Returns the clients that are connected at any time.
///
/// # Errors
/// If no thread can be started.
pub(super) fn accept_clients<S>(listener: UnixListener, send: S) -> io::Result<Clients>
where
    S: Fn(ControlRequest) -> bool + Clone + Send + 'static,
{
    let clients = Clients::default();
    let accepted = clients.clone();
    let accept = move || {
        loop {
            match listener.accept() {
                Ok((client, _)) => accept_client(&accepted, client, IDLE_MIN, &send),
                Err(_) => sleep(ACCEPT_PAUSE),
            }
        }
    };
    Builder::new().name("offermill-control".into()).spawn(accept)?;
    Ok(clients)
}

/// Starts a thread that serves a client. If there are too many, one that was idle for `idle_min` gives way to it.
fn accept_client<S>(clients: &Clients, client: UnixStream, idle_min: Duration, send: &S)
where
    S: Fn(ControlRequest) -> bool + Clone + Send + 'static,
{
    let client = Arc::new(client);
    let Some(slot) = clients.admit(&client, idle_min) else { return reject_client(&client) };
    let send = send.clone();
    let serve = move || {
        // An error means that the client went away, or doesn't read.
        let _gone = serve_client(&slot, &client, &send);
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
    /// Since when the client has given no whole command; `None` while one is executed.
    idle_since: Mutex<Option<Instant>>,
}

/// A client's place among the clients, until this is dropped.
struct ClientSlot {
    clients: Clients,
    state: Arc<ClientState>,
}

impl Clients {
    /// Whether each client has the replies to all commands that it has given.
    pub(super) fn are_answered(&self) -> bool {
        lock(&self.0).iter().all(|client| lock(&client.idle_since).is_some())
    }

    /// Adds a client. If there are too many, disconnects the one that has been idle for longest, but at least for
    /// `idle_min`; returns `None` if there is none.
    fn admit(&self, stream: &Arc<UnixStream>, idle_min: Duration) -> Option<ClientSlot> {
        let mut clients = lock(&self.0);
        if clients.len() >= CLIENTS_MAX {
            let idle = clients.iter().enumerate();
            let idle = idle.filter_map(|(at, it)| Some(((*lock(&it.idle_since))?, at)));
            let (since, at) = idle.min()?;
            if since.elapsed() < idle_min {
                return None;
            }
            // Its thread finds the connection closed, and ends.
            let _gone = clients.swap_remove(at).stream.shutdown(Shutdown::Both);
        }
        let idle_since = Mutex::new(Some(Instant::now()));
        let state = Arc::new(ClientState { stream: Arc::clone(stream), idle_since });
        clients.push(Arc::clone(&state));
        Some(ClientSlot { clients: self.clone(), state })
    }
}

impl ClientSlot {
    fn set_idle_since(&self, at: Option<Instant>) {
        *lock(&self.state.idle_since) = at;
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
    send: &impl Fn(ControlRequest) -> bool,
) -> io::Result<()> {
    let mut reader = BufReader::new(client);
    while let Some(line) = lines::next(&mut reader)? {
        slot.set_idle_since(None);
        let (reply, is_last) = execute(line, false, send);
        if let Some(reply) = reply {
            let give_up = Instant::now() + WRITE_TIMEOUT;
            write_until(client, reply_text(&reply).as_bytes(), give_up)?;
        }
        if is_last {
            break;
        }
        slot.set_idle_since(Some(Instant::now()));
    }
    Ok(())
}

/// Writes all bytes, however slowly they are read.
///
/// # Errors
/// If that isn't done by `give_up`.
fn write_until(mut client: &UnixStream, mut bytes: &[u8], give_up: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = give_up.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        client.set_write_timeout(Some(left))?;
        match client.write(bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the end of a run can wait until a client has its reply. Method: a client is admitted, gives a command, has
    /// its reply, gives another command and leaves.
    #[test]
    fn clients_without_a_reply_are_seen() {
        let clients = Clients::default();
        let (stream, _peer) = UnixStream::pair().unwrap();
        let slot = clients.admit(&Arc::new(stream), IDLE_MIN).unwrap();
        assert!(clients.are_answered());
        slot.set_idle_since(None);
        assert!(!clients.are_answered());
        slot.set_idle_since(Some(Instant::now()));
        assert!(clients.are_answered());
        slot.set_idle_since(None);
        drop(slot);
        assert!(clients.are_answered());
    }

    /// Executes nothing, and says so.
    fn ended(_: ControlRequest) -> bool {
        false
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
        assert!(line(&mut connect(&clients, forever)).starts_with("error: 16 clients"));
        let mut next = connect(&clients, Duration::ZERO);
        assert_eq!(line(&mut idle[0]), "", "the first is disconnected");
        next.get_mut().write_all(b"status\n").unwrap();
        assert_eq!(line(&mut next), "error: the run has ended\n");
        idle[1].get_mut().write_all(b"status\n").unwrap();
        assert_eq!(line(&mut idle[1]), "error: the run has ended\n", "the others stay");
    }

    /// Goal: a client that reads slowly is given up after the time for a reply. Method: a client that reads a byte now
    /// and then of a reply that is larger than the socket's buffer.
    #[test]
    fn replies_have_a_deadline() {
        let (client, run) = UnixStream::pair().unwrap();
        let reader = std::thread::spawn(move || {
            let mut client = &client;
            let mut piece = [0; 512];
            while std::io::Read::read(&mut client, &mut piece).is_ok_and(|length| length > 0) {
                sleep(Duration::from_millis(1));
            }
        });
        let give_up = Instant::now() + Duration::from_millis(100);
        let error = write_until(&run, &vec![0; 64 << 20], give_up).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock), "{error}");
        drop(run);
        reader.join().unwrap();
    }
}
