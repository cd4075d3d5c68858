//! One attempt to register with a shuffle service: connects, sends the registration and reads the answer. It blocks for
//! at most the registration timeout, plus the time that the system takes to resolve the host name, which can't be
//! limited.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::driver::DriverMessage;
use super::frame::{FrameReader, ShuffleMessage};
use super::options::ShuffleOptions;

/// The reason why a registration failed.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// A short description.
    pub(super) why: String,
    /// Whether the service refused. Otherwise it could not be reached, or its answer was malformed.
    pub(super) is_refusal: bool,
}

impl Failure {
    pub(super) fn new(why: impl Into<String>) -> Failure {
        Failure { why: why.into(), is_refusal: false }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                Failure::new("no answer in time")
            }
            _ => Failure::new(error.to_string()),
        }
    }
}

/// The maximum length of a service's failure text in a report, in characters.
const WORDS_MAX: usize = 200;

/// Registers with the service on `host`. The returned connection is non-blocking.
pub(super) fn register(host: &str, options: &ShuffleOptions) -> Result<TcpStream, Failure> {
    let give_up = Instant::now() + options.registration_timeout;
    let mut stream = connect(host, options.port, give_up)?;
    let register = DriverMessage::Register {
        app_id: options.app_id.clone(),
        heartbeat_timeout: options.heartbeat_timeout,
    };
    let number = 1;
    let request = ShuffleMessage::Request { number, body: register.to_body() };
    let frame = request.to_frame().map_err(|error| Failure::new(error.to_string()))?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(left(give_up)?))?;
    stream.write_all(&frame)?;
    let answer = read(&mut stream, give_up)?;
    match answer {
        ShuffleMessage::Response { number: 1, .. } => {
            stream.set_nonblocking(true)?;
            Ok(stream)
        }
        ShuffleMessage::Failure { number: 1, text } => {
            let first = text.lines().next().unwrap_or_default();
            let why = first.chars().take(WORDS_MAX).collect();
            Err(Failure { why, is_refusal: true })
        }
        _ => Err(Failure::new("the service sent an unexpected answer")),
    }
}

/// Connects to the first address of the host that accepts the connection.
fn connect(host: &str, port: u16, give_up: Instant) -> Result<TcpStream, Failure> {
    let mut last = Failure::new("the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(give_up)?) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error.into(),
        }
    }
    Err(last)
}

fn read(stream: &mut TcpStream, give_up: Instant) -> Result<ShuffleMessage, Failure> {
    let (mut reader, mut piece) = (FrameReader::new(), [0; 4096]);
    loop {
        stream.set_read_timeout(Some(left(give_up)?))?;
        match stream.read(&mut piece) {
            Ok(0) => return Err(Failure::new("the service closed the connection")),
            Ok(count) => reader.push(piece.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
        match reader.next_message() {
            Ok(Some(message)) => return Ok(message),
            Ok(None) => {}
            Err(error) => return Err(Failure::new(format!("the service sent {error}"))),
        }
    }
}

/// Returns the time left, which is never zero because a socket timeout of zero is invalid. Fails if no time is left.
fn left(give_up: Instant) -> Result<Duration, Failure> {
    let left = give_up.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(Failure::new("no answer in time")) } else { Ok(left) }
}
