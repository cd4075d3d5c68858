//! The master's server: Mesos' v1 scheduler API for frameworks, and the worker protocol for workers.
//!
//! | request | answer | right |
//! |---|---|---|
//! | `POST /api/v1/scheduler`, SUBSCRIBE | a stream of events | frameworks |
//! | `POST /api/v1/scheduler`, other calls, with the stream's `Mesos-Stream-Id` | 202, or 400 with a sentence | frameworks |
//! | `POST /master/teardown`, `frameworkId=ID` | 200, or 400 if there is no such framework of this principal; for operators whose framework is gone | frameworks |
//! | `POST /api/v1/worker` | a stream in both directions, see the worker protocol | workers |
//! | `GET /state` | workers, frameworks and counts as JSON | frameworks or workers |
//! | `GET /executors` | the executors that haven't ended as JSON, at most 2000 of them | frameworks or workers |
//! | `GET /history` | figures of the last hour as JSON | frameworks or workers |
//! | `GET /metrics` | figures in the text form of Prometheus | frameworks or workers |
//! | `GET /health` | `ok` | none |
//! | `GET /` and what it loads | the web page, which asks for the four above | none |
//!
//! Each request is checked once, in `access.rs`, before anything of it is read; what isn't in its table is refused.
//! Beyond loopback the server listens only with TLS and credentials, unless it is told otherwise. On loopback, what
//! needs a right for which there are no credentials is done for programs of this user and of root alone.
//!
//! All state belongs to one thread. A connection that reads too slowly is closed, and one that says nothing gives way
//! to others, see [`http_server`](crate::http_server).

mod access;
mod answers;
mod history;
mod journal;
mod message_count;
mod metrics;
mod observer;
mod operator;
mod options;
mod pace;
mod page;
mod random;
mod routes;
mod scheduler;
mod shared;
mod standby;
mod stream;
mod teardown;
mod worker;

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::time::Duration;

use tokio::runtime;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::task::LocalSet;
use tokio::time::interval;

use self::shared::SharedMaster;
use crate::cluster::standalone::master::MasterNotice;
use crate::http_server::{ServerLimits, WhenFull, accept, connections_within_files};

pub use access::{CredentialsError, MasterAccess};
pub use journal::{JournalError, MasterJournal};
pub use observer::MasterObserver;
pub use operator::OperatorRequest;
pub use options::MasterOptions;
pub use standby::{reached_at, stand_by};

/// What clients of a master may do. A connection is in use while a request on it is answered that was allowed, so that
/// neither clients without credentials nor those that keep connections open can keep others out. `connections_max` is
/// lower if fewer files may be open.
const LIMITS: ServerLimits = ServerLimits {
    connections_max: 2048,
    when_full: WhenFull::RefuseNew,
    first_head_timeout: Duration::from_secs(10),
    head_timeout: Duration::from_secs(900),
    unused_timeout: Some(Duration::from_secs(60)),
    head_bytes_max: 64 * 1024,
    headers_max: 64,
    lasts: None,
    unacknowledged_timeout: Duration::from_secs(60),
    looks_up_users: false,
};
/// The interval in which the master looks at its clock.
const TICK: Duration = Duration::from_millis(250);

/// Serves frameworks and workers, and does what the operator requests, until `stop` is sent or dropped. Workers and
/// frameworks stay registered: they come back to the next master with this journal.
///
/// # Errors
/// With a sentence if the server can't be started, if the address isn't allowed, or if the journal can't be written any
/// more.
pub fn serve_master(
    listener: TcpListener,
    journal: MasterJournal,
    options: MasterOptions,
    requests: UnboundedReceiver<OperatorRequest>,
    stop: oneshot::Receiver<Infallible>,
) -> Result<(), String> {
    let failed = |error: io::Error| format!("the master can't be started: {error}");
    if let Some(problem) = options.address_problem(listener.local_addr().map_err(failed)?) {
        return Err(problem);
    }
    listener.set_nonblocking(true).map_err(failed)?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let tls = options.tls.clone();
    let (shared, broken) = SharedMaster::new(journal, options);
    LocalSet::new().block_on(&runtime, async {
        let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
        let answering = Rc::clone(&shared);
        let connections_max = connections_within_files(LIMITS.connections_max);
        let looks_up_users = answering.access.looks_up_users();
        let limits = ServerLimits { connections_max, looks_up_users, ..LIMITS };
        let refusing = Rc::clone(&shared);
        let refused = move |from, why: &io::Error| {
            let why = why.to_string();
            refusing.tell(&MasterNotice::HandshakeFailed { from, why });
        };
        let accepted = accept(listener, tls, limits, refused, move |request, client| {
            routes::respond(Rc::clone(&answering), request, client)
        });
        tokio::select! {
            _ = stop => {
                shared.stop();
                Ok(())
            }
            Ok(why) = broken => Err(why),
            () = tick(Rc::clone(&shared)) => Ok(()),
            () = operator::serve_operator(Rc::clone(&shared), requests) => Ok(()),
            () = accepted => Ok(()),
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
