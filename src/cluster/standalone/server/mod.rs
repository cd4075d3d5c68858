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
//! All state belongs to one thread. A connection that reads too slowly is closed.

mod access;
mod answers;
mod journal;
mod random;
mod routes;
mod scheduler;
mod shared;
mod stream;
mod worker;

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::sync::oneshot;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{interval, sleep};

use self::shared::SharedMaster;

pub use access::{CredentialsError, MasterCredentials};
pub use journal::{JournalError, MasterJournal};

/// The most connections that are open at a time. Further ones are closed at once.
const CONNECTIONS_MAX: usize = 2048;
/// The longest time for the head of a request, from the end of the request before.
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
    let mut open = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        while open.try_join_next().is_some() {}
        if open.len() < CONNECTIONS_MAX {
            open.spawn_local(serve_connection(stream, Rc::clone(&shared)));
        }
    }
}

/// Answers the requests of a connection. Errors are the client's.
async fn serve_connection(stream: TcpStream, shared: Rc<SharedMaster>) {
    let _ = stream.set_nodelay(true);
    let respond = service_fn(|request| {
        let shared = Rc::clone(&shared);
        async move { Ok::<_, Infallible>(routes::respond(shared, request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    http.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    let _ended = http.serve_connection(TokioIo::new(stream), respond).await;
}
