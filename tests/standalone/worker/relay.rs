//! A relay in front of a master, whose connections can become half-open: both ends keep them, and hear nothing.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::spawn;

/// Which of two ends is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The program that has connected to the relay.
    Client,
    /// The master.
    Master,
}

/// A relay in front of a master.
pub(crate) struct Relay {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Connections whose number is below one of these lose what goes to the client, or to the master.
    silent_below: [AtomicU32; 2],
    /// The sockets of all connections, which are open until the relay is dropped.
    sockets: Mutex<Vec<TcpStream>>,
}

impl Relay {
    /// Listens, and passes on what clients and the master at this address say to each other.
    pub(crate) fn start(master: &str) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared::default());
        let (own, master) = (Arc::clone(&shared), master.to_owned());
        spawn(move || {
            for client in listener.incoming() {
                // A master that is gone refuses the client by the end of its connection.
                if let (Ok(client), Ok(server)) = (client, TcpStream::connect(&master)) {
                    own.relay(&client, &server);
                }
            }
        });
        Relay { port, shared }
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// From now on nothing of the connections that are open arrives at this end, not even their end. Connections that
    /// come later aren't concerned.
    pub(crate) fn silence(&self, toward: End) {
        let own = self.shared.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = u32::try_from(own.len() / 2).unwrap();
        self.shared.silent_below[toward as usize].store(opened, Ordering::SeqCst);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let sockets = self.shared.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        for socket in sockets.iter() {
            let _closed = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn relay(self: &Arc<Self>, client: &TcpStream, server: &TcpStream) {
        let clone = |socket: &TcpStream| socket.try_clone().unwrap();
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        let number = u32::try_from(sockets.len() / 2).unwrap();
        sockets.extend([clone(client), clone(server)]);
        for (from, to, toward) in [(client, server, End::Master), (server, client, End::Client)] {
            let (shared, from, to) = (Arc::clone(self), clone(from), clone(to));
            spawn(move || shared.pass_on(number, from, to, toward));
        }
    }

    /// Passes on what one end says until it hangs up, which is passed on as well.
    fn pass_on(&self, number: u32, mut from: TcpStream, mut to: TcpStream, toward: End) {
        let is_silent = || number < self.silent_below[toward as usize].load(Ordering::SeqCst);
        let mut bytes = [0; 4096];
        loop {
            let length = from.read(&mut bytes).unwrap_or(0);
            if is_silent() && length > 0 {
                continue;
            }
            if length == 0 || to.write_all(&bytes[..length]).is_err() {
                break;
            }
        }
        if !is_silent() {
            let _closed = to.shutdown(Shutdown::Write);
        }
    }
}
