//! A stand-in for the shuffle service, which can misbehave.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use offermill::spark::shuffle::{DriverMessage, FrameReader, ShuffleMessage};

/// What it does with a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It takes it, and heartbeats.
    Good,
    /// It says no, in Java's way.
    Refuses,
    /// It closes the connection before anything comes.
    Closes,
    /// It says nothing.
    Mute,
    /// It says what is no message.
    Garbage,
    /// It answers a question that was not put.
    Confused,
    /// It announces an answer of 4 EiB.
    Boasts,
    /// A byte of its answer every 100 ms.
    Slow,
    /// It takes the registration and closes the connection.
    TakesAndCloses,
}

/// What it heard.
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
    /// Connections that the other side has closed.
    closed: usize,
    is_over: bool,
}

/// A service on one address of this machine. Dropped, it is gone with all of its connections.
#[derive(Debug)]
pub(crate) struct FakeService {
    pub(crate) host: String,
    shared: Arc<Mutex<Shared>>,
    thread: Option<JoinHandle<()>>,
}

/// Any of the addresses that all mean this machine, by a number; 0 is the one that local agents are looked for at.
pub(crate) fn host(number: u8) -> String {
    Ipv4Addr::new(127, 0, number, 1).to_string()
}

/// A port without a listener.
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

    /// How many connections the other side has closed.
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
    // Who is answered may have gone away.
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
