//! The master's server: Mesos' v1 scheduler API for frameworks, and the worker protocol for workers.
//!
//! | request | answer | right |
//! |---|---|---|
//! | `POST /api/v1/scheduler`, SUBSCRIBE | a stream of events | frameworks |
//! | `POST /api/v1/scheduler`, other calls, with the stream's `Mesos-Stream-Id` | 202, or 400 with a sentence | frameworks |
//! | `POST /api/v1/worker` | a stream in both directions, see the worker protocol | workers |
//! | `GET /state` | counts as JSON | frameworks or workers |
//! | `GET /health` | `ok` | none |
//!
//! Each request is checked once, in `access.rs`, before anything of it is read; what isn't in its table is refused.
//! There is no TLS yet, so the server listens on loopback only.
//!
//! All state belongs to one thread. A connection that reads too slowly is closed, and one that says nothing gives way
//! to others, see `connections.rs`.

mod access;
mod answers;
mod connections;
mod journal;
mod message_count;
mod random;
mod routes;
mod scheduler;
mod shared;
mod stream;
mod worker;

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::sync::oneshot;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{interval, sleep, timeout};

use self::connections::MasterConnections;
use self::shared::SharedMaster;

pub use access::{CredentialsError, MasterCredentials};
pub use journal::{JournalError, MasterJournal};

/// The longest time for the first head of a connection.
const FIRST_HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest time for the head of a further request, from the end of the request before.
const HEAD_TIMEOUT: Duration = Duration::from_secs(900);
/// The most bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// The most headers of a request.
const HEADERS_MAX: usize = 64;
/// The pause after a failed `accept`, for example with too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The interval in which the master looks at its clock.
const TICK: Duration = Duration::from_millis(250);

/// Why a master may not listen at an address, in a sentence; `None` if it may. Others could read and change what goes
/// over a network without TLS.
#[must_use]
pub fn address_problem(address: SocketAddr) -> Option<String> {
    (!address.ip().is_loopback()).then(|| {
        format!(
            "{address} isn't an address of this machine's loopback, and this version has no TLS, without which a \
             master doesn't listen elsewhere"
        )
    })
}

/// Serves frameworks and workers until `stop` is sent or dropped. Workers and frameworks stay registered: they come
/// back to the next master with this journal.
///
/// # Errors
/// With a sentence if the server can't be started, if the address isn't allowed, or if the journal can't be written any
/// more.
pub fn serve_master(
    listener: TcpListener,
    journal: MasterJournal,
    max_cores: Option<crate::resources::Scalar>,
    credentials: MasterCredentials,
    stop: oneshot::Receiver<Infallible>,
) -> Result<(), String> {
    let failed = |error: io::Error| format!("the master can't be started: {error}");
    if let Some(problem) = address_problem(listener.local_addr().map_err(failed)?) {
        return Err(problem);
    }
    listener.set_nonblocking(true).map_err(failed)?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let (shared, broken) = SharedMaster::new(journal, max_cores, credentials);
    LocalSet::new().block_on(&runtime, async {
        let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
        tokio::select! {
            _ = stop => {
                shared.stop();
                Ok(())
            }
            Ok(why) = broken => Err(why),
            () = tick(Rc::clone(&shared)) => Ok(()),
            () = accept(listener, Rc::clone(&shared)) => Ok(()),
        }
    })
}

/// Lets time pass for the master.
async fn tick(shared: Rc<SharedMaster>) {
    let mut ticks = interval(TICK);
    loop {
        ticks.tick().await;
        shared.tick();
    }
}

async fn accept(listener: tokio::net::TcpListener, shared: Rc<SharedMaster>) {
    let mut open = MasterConnections::default();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        if open.make_room() {
            let is_allowed = Rc::new(Cell::new(false));
            let client = (stream, Rc::clone(&is_allowed));
            let task =
                spawn_local(serve_connection(client, Rc::clone(&shared), FIRST_HEAD_TIMEOUT));
            open.add(is_allowed, task.abort_handle());
        }
    }
}

/// Answers the requests of a connection, and notes when one was allowed. Errors are the client's.
async fn serve_connection(
    (stream, is_allowed): (TcpStream, Rc<Cell<bool>>),
    shared: Rc<SharedMaster>,
    first_head_timeout: Duration,
) {
    let _ = stream.set_nodelay(true);
    let has_head = Cell::new(false);
    let respond = service_fn(|request| {
        has_head.set(true);
        let (shared, is_allowed) = (Rc::clone(&shared), Rc::clone(&is_allowed));
        async move { Ok::<_, Infallible>(routes::respond(shared, request, &is_allowed).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    http.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), respond));
    let is_open = timeout(first_head_timeout, connection.as_mut()).await.is_err();
    if is_open && has_head.get() {
        let _ended = connection.await;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Read as _;

    use super::*;

    /// Goal: a client that says nothing doesn't keep its connection. Method: a client that only reads, with a short
    /// timeout for the first head, far below that for further ones.
    #[test]
    fn a_silent_connection_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let journal = MasterJournal::open(&folder.path().join("state")).unwrap();
        let (shared, _broken) = SharedMaster::new(journal, None, MasterCredentials::default());
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        LocalSet::new().block_on(&runtime, async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let mut client = std::net::TcpStream::connect(address).unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let client_of = (stream, Rc::new(Cell::new(false)));
            let short = Duration::from_millis(20);
            let served = spawn_local(serve_connection(client_of, shared, short));
            timeout(Duration::from_secs(60), served).await.unwrap().unwrap();
            assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
        });
    }
}
