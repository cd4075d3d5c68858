//! One try at a registration: connects, registers, reads the answer. It blocks, for no longer than the registration
//! timeout (and as long as the system takes to look up a name, which nothing can shorten).

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::driver::DriverMessage;
use super::frame::{FrameReader, ShuffleMessage};
use super::options::ShuffleOptions;

/// Why a registration failed.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// In a few words.
    pub(super) why: String,
    /// Whether the service said no. Otherwise it couldn't be reached, or made no sense.
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

/// So much of what a service says of a failure is passed on, in characters.
const WORDS_MAX: usize = 200;

/// Registers with the service on `host`. The connection that comes back no longer blocks.
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
        _ => Err(Failure::new("it answered what was not asked")),
    }
}

/// Connects to the first of the host's addresses that takes the connection.
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
            Ok(0) => return Err(Failure::new("it closed the connection")),
            Ok(count) => reader.push(piece.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
        match reader.next_message() {
            Ok(Some(message)) => return Ok(message),
            Ok(None) => {}
            Err(error) => return Err(Failure::new(format!("it sent {error}"))),
        }
    }
}

/// How long there is left; some, as none would be for ever.
fn left(give_up: Instant) -> Result<Duration, Failure> {
    let left = give_up.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(Failure::new("no answer in time")) } else { Ok(left) }
}
