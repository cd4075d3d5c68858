//! A proxy between a framework and a master, whose connections can be closed.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::spawn;

/// Forwards connections to its port to the master's port.
#[derive(Debug)]
pub(crate) struct Cable {
    port: u16,
    carried: Arc<Carried>,
}

#[derive(Debug, Default)]
struct Carried {
    connections: Mutex<Vec<TcpStream>>,
    ended: AtomicBool,
}

impl Cable {
    /// Starts a proxy to this machine's `port`.
    pub(crate) fn to(port: u16) -> Cable {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let own = listener.local_addr().unwrap().port();
        let carried = Arc::new(Carried::default());
        let accepting = Arc::clone(&carried);
        spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                if accepting.ended.load(Ordering::SeqCst) {
                    return;
                }
                // If there is no master, the accepted connection is closed.
                if let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
                    let _gone = accepting.carry(near, far);
                }
            }
        });
        Cable { port: own, carried }
    }

    /// The port on which it listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Closes all present connections. Later ones are forwarded.
    pub(crate) fn cut(&self) {
        for connection in self.carried.connections.lock().unwrap().drain(..) {
            let _gone = connection.shutdown(Shutdown::Both);
        }
    }
}

impl Carried {
    fn carry(&self, near: TcpStream, far: TcpStream) -> io::Result<()> {
        let there = (near.try_clone()?, far.try_clone()?);
        self.connections.lock().unwrap().extend([near.try_clone()?, far.try_clone()?]);
        spawn(move || pump(there.0, there.1));
        spawn(move || pump(far, near));
        Ok(())
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    let _gone = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.carried.ended.store(true, Ordering::SeqCst);
        self.cut();
        let _woken = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}
