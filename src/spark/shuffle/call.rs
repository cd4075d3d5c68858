//! One attempt to register with a shuffle service: connects, sends the registration and reads the answer. It blocks for
//! at most the registration timeout.
//!
//! The system's look-up of a host name has no time limit, so a thread of its own makes it, which the attempt waits for
//! no longer than its timeout. Agents name their hosts, so many names may hang: at most [`LOOKUPS_MAX`] threads do, and
//! the look-ups of further names fail at once.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
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

/// The maximum number of look-ups of host names that have not returned.
const LOOKUPS_MAX: usize = 16;

/// The function that looks up the addresses of a host.
type LookUp = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// The look-ups of host names that have not returned: each has a clone of this.
#[derive(Clone, Debug, Default)]
pub(super) struct LookUps(Arc<Mutex<usize>>);

/// A look-up in progress.
struct LookUpSlot(Arc<Mutex<usize>>);

impl LookUps {
    fn count(&self) -> MutexGuard<'_, usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a slot, unless too many look-ups are in progress.
    fn begin(&self) -> Option<LookUpSlot> {
        let mut count = self.count();
        (*count < LOOKUPS_MAX).then(|| {
            *count += 1;
            LookUpSlot(Arc::clone(&self.0))
        })
    }

    /// Looks up a host on a thread of its own, and waits for it until `give_up`.
    fn look_up(
        &self,
        host: &str,
        port: u16,
        give_up: Instant,
        look_up: LookUp,
    ) -> Result<Vec<SocketAddr>, Failure> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![(address, port).into()]);
        }
        let Some(slot) = self.begin() else {
            let why = format!("{LOOKUPS_MAX} look-ups of host names before it hang");
            return Err(Failure::new(why));
        };
        let (found, answer) = sync_channel(1);
        let host = host.to_owned();
        let work = move || {
            let addresses = look_up(&host, port);
            drop(slot);
            let _given_up = found.send(addresses);
        };
        Builder::new().name("offermill-look-up".into()).spawn(work)?;
        match answer.recv_timeout(left(give_up)?) {
            Ok(addresses) => Ok(addresses?),
            Err(_) => Err(Failure::new("the host's name was not looked up in time")),
        }
    }
}

impl Drop for LookUpSlot {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
    }
}

/// Asks the system for the addresses of a host. May take long.
fn ask_system(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    (host, port).to_socket_addrs().map(Iterator::collect)
}

/// Registers with the service on `host`. The returned connection is non-blocking.
pub(super) fn register(
    host: &str,
    options: &ShuffleOptions,
    look_ups: &LookUps,
) -> Result<TcpStream, Failure> {
    let give_up = Instant::now() + options.registration_timeout;
    let addresses = look_ups.look_up(host, options.port, give_up, ask_system)?;
    let mut stream = connect(&addresses, give_up)?;
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

/// Connects to the first address that accepts the connection.
fn connect(addresses: &[SocketAddr], give_up: Instant) -> Result<TcpStream, Failure> {
    let mut last = Failure::new("the host has no address");
    for address in addresses {
        match TcpStream::connect_timeout(address, left(give_up)?) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Never returns while the test runs.
    fn hang(_host: &str, _port: u16) -> io::Result<Vec<SocketAddr>> {
        std::thread::sleep(Duration::from_secs(3600));
        Ok(Vec::new())
    }

    /// Goal: look-ups that hang delay an attempt by no more than its timeout, and don't pile up. Method: as many as may
    /// hang, one more, and an address, which needs no look-up.
    #[test]
    fn look_ups_that_hang_are_bounded() {
        let look_ups = LookUps::default();
        let look_up = |host: &str, within| {
            let give_up = Instant::now() + Duration::from_millis(within);
            look_ups.look_up(host, 7, give_up, hang).map_err(|failure| failure.why)
        };
        for _ in 0..LOOKUPS_MAX {
            let slow = look_up("h", 1).unwrap_err();
            assert!(
                slow == "the host's name was not looked up in time" || slow == "no answer in time"
            );
        }
        let refused = look_up("h", 3_600_000).unwrap_err();
        assert_eq!(refused, "16 look-ups of host names before it hang");
        assert_eq!(look_up("127.0.0.1", 1).unwrap(), [([127, 0, 0, 1], 7).into()]);
        let give_up = Instant::now() + Duration::from_secs(60);
        let other = LookUps::default();
        assert!(!other.look_up("localhost", 7, give_up, ask_system).unwrap().is_empty());
        assert_eq!(*other.count(), 0);
    }
}
