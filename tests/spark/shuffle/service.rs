//! A fake of the shuffle service, which can misbehave.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use offermill::spark::shuffle::{DriverMessage, FrameReader, ShuffleMessage};

/// How it handles a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It accepts the registration and heartbeats.
    Good,
    /// It refuses with a Java exception.
    Refuses,
    /// It closes the connection without reading.
    Closes,
    /// It never answers.
    Mute,
    /// It answers with an invalid message.
    Garbage,
    /// It answers with the number of another request.
    Confused,
    /// It announces an answer of 4 EiB.
    Boasts,
    /// It sends one byte of its answer every 100 ms.
    Slow,
    /// It accepts the registration and closes the connection.
    TakesAndCloses,
}

/// A message that it received.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) at: Instant,
    pub(crate) message: DriverMessage,
}

#[derive(Debug)]
struct Shared {
    manner: Manner,
    heard: Vec<Heard>,
    connections: Vec<TcpStream>,
    /// The number of connections that the other side has closed.
    closed: usize,
    is_over: bool,
}

/// A service on one loopback address. Dropping it closes all of its connections.
#[derive(Debug)]
pub(crate) struct FakeService {
    pub(crate) host: String,
    shared: Arc<Mutex<Shared>>,
    thread: Option<JoinHandle<()>>,
}

/// Returns one of the machine's loopback addresses. Number 0 is the address of local agents.
pub(crate) fn host(number: u8) -> String {
    Ipv4Addr::new(127, 0, number, 1).to_string()
}

/// Returns a port without a listener.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap().local_addr().unwrap().port()
}

impl FakeService {
    pub(crate) fn start(number: u8, port: u16, manner: Manner) -> FakeService {
        let host = host(number);
        let listener = TcpListener::bind((host.as_str(), port)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let (heard, connections) = (Vec::new(), Vec::new());
        let shared = Shared { manner, heard, connections, closed: 0, is_over: false };
        let shared = Arc::new(Mutex::new(shared));
        let board = Arc::clone(&shared);
        let thread = spawn(move || {
            while !board.lock().unwrap().is_over {
                let Ok((stream, _)) = listener.accept() else {
                    sleep(Duration::from_millis(2));
                    continue;
                };
                stream.set_nonblocking(false).unwrap();
                board.lock().unwrap().connections.push(stream.try_clone().unwrap());
                let board = Arc::clone(&board);
                spawn(move || serve(stream, &board));
            }
        });
        FakeService { host, shared, thread: Some(thread) }
    }

    pub(crate) fn behave(&self, manner: Manner) {
        self.shared.lock().unwrap().manner = manner;
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.shared.lock().unwrap().heard.clone()
    }

    /// Returns the number of connections that the other side has closed.
    pub(crate) fn closed(&self) -> usize {
        self.shared.lock().unwrap().closed
    }

    pub(crate) fn registrations(&self) -> usize {
        let is_one = |heard: &&Heard| matches!(heard.message, DriverMessage::Register { .. });
        self.heard().iter().filter(is_one).count()
    }
}

impl Drop for FakeService {
    fn drop(&mut self) {
        self.shared.lock().unwrap().is_over = true;
        self.thread.take().unwrap().join().unwrap();
        for connection in &self.shared.lock().unwrap().connections {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

fn serve(mut stream: TcpStream, board: &Mutex<Shared>) {
    if board.lock().unwrap().manner == Manner::Closes {
        let _ = stream.shutdown(Shutdown::Both);
        return;
    }
    let (mut reader, mut piece) = (FrameReader::new(), [0; 512]);
    loop {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(count) => reader.push(&piece[..count]),
        }
        while let Some(message) = reader.next_message().unwrap() {
            let number = match &message {
                ShuffleMessage::Request { number, .. } => Some(*number),
                _ => None,
            };
            let (ShuffleMessage::Request { body, .. } | ShuffleMessage::OneWay { body }) = message
            else {
                panic!("{message:?} from a driver");
            };
            let manner = {
                let mut board = board.lock().unwrap();
                let message = DriverMessage::read(&body).unwrap();
                let is_request = matches!(message, DriverMessage::Register { .. });
                assert_eq!(is_request, number.is_some(), "{message:?} is said the wrong way");
                board.heard.push(Heard { at: Instant::now(), message });
                board.manner
            };
            if let Some(number) = number {
                answer(&mut stream, manner, number);
            }
        }
    }
    board.lock().unwrap().closed += 1;
}

fn answer(stream: &mut TcpStream, manner: Manner, number: u64) {
    let good = ShuffleMessage::Response { number, body: Vec::new() }.to_frame().unwrap();
    let trace = "java.lang.IllegalStateException: not here\n\tat Some.where(Some.java:1)";
    let bytes = match manner {
        Manner::Mute | Manner::Closes => return,
        Manner::Good | Manner::Slow | Manner::TakesAndCloses => good,
        Manner::Refuses => {
            ShuffleMessage::Failure { number, text: trace.into() }.to_frame().unwrap()
        }
        Manner::Garbage => b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        Manner::Boasts => (1_u64 << 62).to_be_bytes().to_vec(),
        Manner::Confused => {
            ShuffleMessage::Response { number: number + 1, body: Vec::new() }.to_frame().unwrap()
        }
    };
    // The other side may have closed the connection.
    if manner == Manner::Slow {
        for byte in bytes {
            let _ = stream.write_all(&[byte]);
            sleep(Duration::from_millis(100));
        }
        return;
    }
    let _ = stream.write_all(&bytes);
    if manner == Manner::TakesAndCloses {
        let _ = stream.shutdown(Shutdown::Both);
    }
}
