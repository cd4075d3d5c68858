//! A master that the test speaks: it accepts connections of workers, and sends what the test says.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use offermill::cluster::standalone::protocol::{
    ExecutorUpdate, ReportedState, WorkerCall, WorkerEvent, WorkerSubscribe, decode_call,
    frame_event,
};
use offermill::mesos_v1::record_io::RecordReader;

/// The time after which a test that waits for a message has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A master on a port of this machine.
pub(crate) struct FakeMaster {
    listener: TcpListener,
}

impl FakeMaster {
    pub(crate) fn new() -> FakeMaster {
        FakeMaster { listener: TcpListener::bind("127.0.0.1:0").unwrap() }
    }

    pub(crate) fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }

    /// Waits for the next connection of a worker, and reads the head of its request.
    pub(crate) fn accept(&self) -> WorkerConnection {
        let (stream, _) = self.listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut connection = WorkerConnection {
            stream,
            head: String::new(),
            chunk_left: 0,
            records: RecordReader::new(1 << 24),
        };
        while !connection.head.ends_with("\r\n\r\n") {
            let byte = connection.byte();
            connection.head.push(char::from(byte));
        }
        connection
    }

    /// Waits for a registration, and accepts it.
    pub(crate) fn register(&self, id: &str, term: u64) -> (WorkerConnection, WorkerSubscribe) {
        let mut connection = self.accept();
        let WorkerCall::Subscribe(subscribe) = connection.call() else {
            panic!("the first message is no registration")
        };
        connection.open();
        connection.send(&WorkerEvent::Subscribed { id: id.to_owned(), term, heartbeat: None });
        (connection, *subscribe)
    }
}

/// The connection of a worker.
pub(crate) struct WorkerConnection {
    stream: TcpStream,
    /// The head of the worker's request.
    pub(crate) head: String,
    /// The bytes that are left of the current chunk of the request's body.
    chunk_left: usize,
    records: RecordReader,
}

impl WorkerConnection {
    fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.stream.read_exact(&mut byte).expect("the worker sends nothing more");
        byte[0]
    }

    /// Reads the next piece of the request's body. Returns false at its end.
    fn read_piece(&mut self) -> bool {
        if self.chunk_left == 0 {
            let mut line = String::new();
            while !line.ends_with("\r\n") {
                let byte = self.byte();
                line.push(char::from(byte));
            }
            let line = line.trim();
            if line.is_empty() {
                // The end of the chunk before.
                return self.read_piece();
            }
            self.chunk_left = usize::from_str_radix(line, 16).unwrap();
            if self.chunk_left == 0 {
                return false;
            }
        }
        let mut piece = vec![0; self.chunk_left];
        self.stream.read_exact(&mut piece).unwrap();
        self.chunk_left = 0;
        self.records.push(&piece);
        true
    }

    /// The next message but heartbeats.
    pub(crate) fn call(&mut self) -> WorkerCall {
        loop {
            while let Some(record) = self.records.next() {
                match decode_call(&record.unwrap()).unwrap() {
                    WorkerCall::Heartbeat => {}
                    call => return call,
                }
            }
            assert!(self.read_piece(), "the worker has ended its body");
        }
    }

    /// Waits for a heartbeat.
    pub(crate) fn heartbeat(&mut self) {
        loop {
            while let Some(record) = self.records.next() {
                if decode_call(&record.unwrap()).unwrap() == WorkerCall::Heartbeat {
                    return;
                }
            }
            assert!(self.read_piece(), "the worker has ended its body");
        }
    }

    /// The next update.
    pub(crate) fn update(&mut self) -> ExecutorUpdate {
        match self.call() {
            WorkerCall::Update(update) => update,
            other => panic!("another message: {other:?}"),
        }
    }

    /// The next update, which must have this state, is acknowledged.
    pub(crate) fn acknowledge(&mut self, state: ReportedState) -> ExecutorUpdate {
        let update = self.update();
        assert_eq!(update.state, state, "{update:?}");
        self.send(&WorkerEvent::Ack { key: update.key.clone(), uuid: update.uuid.clone() });
        update
    }

    /// Sends the head of the response; its body is open until the connection is closed.
    pub(crate) fn open(&mut self) {
        self.raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n");
    }

    /// Reads a registration, answers with a status, headers and a text, and closes the connection.
    pub(crate) fn answer(mut self, status: &str, headers: &str, text: &str) {
        // What was sent and isn't read would reset the connection before the answer arrives.
        assert!(matches!(self.call(), WorkerCall::Subscribe(_)));
        let length = text.len();
        self.raw(&format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n{text}"));
    }

    pub(crate) fn send(&mut self, event: &WorkerEvent) {
        self.stream.write_all(&frame_event(event)).unwrap();
    }

    pub(crate) fn raw(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until the worker has closed the connection.
    pub(crate) fn closed(mut self) {
        self.read_rest();
    }

    fn read_rest(&mut self) {
        let mut rest = Vec::new();
        // A connection may be reset.
        let _reset = self.stream.read_to_end(&mut rest);
    }
}

impl Drop for WorkerConnection {
    /// Ends the response, and waits until the worker has closed the connection: what was sent has been read then. A
    /// connection that is closed with something unread is reset, and what is on its way is lost.
    fn drop(&mut self) {
        let _closed = self.stream.shutdown(Shutdown::Write);
        self.read_rest();
    }
}
