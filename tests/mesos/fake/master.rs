//! The fake master: a listener, and a thread per connection.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use offermill::mesos_v1::messages;
use prost::Message as _;
use serde_json::Value;

use super::script::{Answer, Call, Then, chunk, record};
use crate::http::Message;

/// The maximum time that a test waits for a call.
const PATIENCE: Duration = Duration::from_secs(20);

type Script = dyn Fn(&Call) -> Answer + Send + Sync;

/// A master that answers by a script. Dropping it closes all connections.
#[derive(Debug)]
pub(crate) struct FakeMaster {
    port: u16,
    stage: Arc<Stage>,
}

struct Stage {
    script: Box<Script>,
    /// Calls of this kind are counted, but not stored.
    unkept: &'static str,
    seen: Mutex<Seen>,
    arrived: Condvar,
    flooded: AtomicUsize,
    ended: AtomicBool,
}

#[derive(Default)]
struct Seen {
    calls: Vec<Call>,
    counts: HashMap<String, usize>,
    /// The streams on which events can be sent, in the order of subscriptions.
    streams: Vec<TcpStream>,
    connections: Vec<TcpStream>,
}

impl FakeMaster {
    /// Starts a master that answers each call by `script`.
    pub(crate) fn new(script: impl Fn(&Call) -> Answer + Send + Sync + 'static) -> FakeMaster {
        FakeMaster::start(script, "")
    }

    /// The same, for very many acknowledgements: they are not stored.
    pub(crate) fn counting(script: impl Fn(&Call) -> Answer + Send + Sync + 'static) -> FakeMaster {
        FakeMaster::start(script, "ACKNOWLEDGE")
    }

    fn start(
        script: impl Fn(&Call) -> Answer + Send + Sync + 'static,
        unkept: &'static str,
    ) -> FakeMaster {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let stage = Arc::new(Stage {
            script: Box::new(script),
            unkept,
            seen: Mutex::default(),
            arrived: Condvar::new(),
            flooded: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        });
        let shared = Arc::clone(&stage);
        spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                if shared.ended.load(Ordering::SeqCst) {
                    return;
                }
                let shared = Arc::clone(&shared);
                spawn(move || shared.serve(connection));
            }
        });
        FakeMaster { port, stage }
    }

    /// The port on this machine.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// All calls so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.stage.seen.lock().unwrap().calls.clone()
    }

    /// The calls of one kind so far.
    pub(crate) fn calls_of(&self, kind: &str) -> Vec<Call> {
        self.calls().into_iter().filter(|call| call.kind == kind).collect()
    }

    /// Waits for the call number `number` of a kind, from 0.
    #[track_caller]
    pub(crate) fn wait_for(&self, kind: &str, number: usize) -> Call {
        let give_up = Instant::now() + PATIENCE;
        let mut seen = self.stage.seen.lock().unwrap();
        loop {
            let wanted = seen.calls.iter().find(|call| call.kind == kind && call.number == number);
            if let Some(call) = wanted {
                return call.clone();
            }
            let left = give_up.saturating_duration_since(Instant::now());
            let kinds: Vec<&str> = seen.calls.iter().map(|call| call.kind.as_str()).collect();
            assert!(!left.is_zero(), "no {kind} number {number}, but {kinds:?}");
            seen = self.stage.arrived.wait_timeout(seen, left).unwrap().0;
        }
    }

    /// Sends an event on the newest stream.
    #[track_caller]
    pub(crate) fn send(&self, event: &Value) {
        self.send_bytes(&chunk(&record(event)));
    }

    /// Sends bytes on the newest stream.
    #[track_caller]
    pub(crate) fn send_bytes(&self, bytes: &[u8]) {
        self.newest_stream().write_all(bytes).unwrap();
    }

    /// Sends the same bytes on the newest stream until the client stops reading.
    #[track_caller]
    pub(crate) fn flood(&self, bytes: &[u8]) {
        let mut stream = self.newest_stream();
        let give_up = Instant::now() + PATIENCE;
        while stream.write_all(bytes).is_ok() {
            self.stage.flooded.fetch_add(bytes.len(), Ordering::SeqCst);
            assert!(Instant::now() < give_up, "{} bytes were taken", self.flooded());
        }
    }

    /// Sends `head` on the newest stream, and then the same byte every 20 ms until the client closes the stream.
    #[track_caller]
    pub(crate) fn trickle(&self, head: &[u8], byte: u8) {
        let mut stream = self.newest_stream();
        let give_up = Instant::now() + PATIENCE;
        let mut sent = stream.write_all(&chunk(head));
        while sent.is_ok() {
            assert!(Instant::now() < give_up, "the client still reads");
            sleep(Duration::from_millis(20));
            sent = stream.write_all(&chunk(&[byte]));
        }
    }

    /// Closes the newest stream.
    #[track_caller]
    pub(crate) fn cut_stream(&self) {
        let _gone = self.newest_stream().shutdown(Shutdown::Both);
    }

    /// The newest stream, for writing from another thread.
    #[track_caller]
    pub(crate) fn newest_stream(&self) -> TcpStream {
        let seen = self.stage.seen.lock().unwrap();
        seen.streams.last().expect("a subscription").try_clone().unwrap()
    }

    /// The number of bytes of floods that the client has read.
    pub(crate) fn flooded(&self) -> usize {
        self.stage.flooded.load(Ordering::SeqCst)
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").field("flooded", &self.flooded).finish_non_exhaustive()
    }
}

impl Stage {
    fn serve(&self, connection: TcpStream) {
        // The client may close the connection at any time.
        let _hung_up = self.converse(&connection);
        let _gone = connection.shutdown(Shutdown::Both);
    }

    fn converse(&self, mut connection: &TcpStream) -> io::Result<()> {
        self.seen.lock().unwrap().connections.push(connection.try_clone()?);
        let mut reader = BufReader::new(connection);
        while let Some(message) = Message::read_request(&mut reader)? {
            let call = self.note(message);
            let answer = (self.script)(&call);
            if matches!(answer.then, Then::Stream) {
                self.seen.lock().unwrap().streams.push(connection.try_clone()?);
            }
            self.arrived.notify_all();
            for piece in &answer.pieces {
                connection.write_all(piece)?;
            }
            match answer.then {
                Then::Next => {}
                Then::Close => return Ok(()),
                Then::Stream => {
                    // No further request may arrive on this connection; the client or the test closes it.
                    let _next = Message::read_request(&mut reader)?;
                    return Ok(());
                }
                Then::Flood(bytes) => loop {
                    connection.write_all(&bytes)?;
                    self.flooded.fetch_add(bytes.len(), Ordering::SeqCst);
                },
                Then::Silence(duration) => {
                    sleep(duration);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn note(&self, message: Message) -> Call {
        let body = read(&message);
        let kind = body["type"].as_str().unwrap_or_default().to_owned();
        let mut seen = self.seen.lock().unwrap();
        let count = seen.counts.entry(kind.clone()).or_default();
        let call = Call { kind, number: *count, body, message };
        *count += 1;
        if call.kind != self.unkept {
            seen.calls.push(call.clone());
        }
        call
    }
}

/// The body of a call as JSON, whatever its encoding.
fn read(message: &Message) -> Value {
    if message.header("content-type") != Some("application/x-protobuf") {
        return serde_json::from_slice(&message.body).unwrap_or_default();
    }
    let call = messages::Call::decode(&message.body[..]).unwrap_or_default();
    serde_json::to_value(call).unwrap()
}

impl Drop for FakeMaster {
    fn drop(&mut self) {
        self.stage.ended.store(true, Ordering::SeqCst);
        // A failed test may have poisoned the lock.
        let seen = self.stage.seen.lock();
        let mut seen = seen.unwrap_or_else(PoisonError::into_inner);
        for connection in seen.connections.drain(..) {
            let _gone = connection.shutdown(Shutdown::Both);
        }
        let _woken = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}
