//! The server: its thread, its connections and their bounds.
//!
//! | what a client may do | until |
//! |---|---|
//! | connect | [`CONNECTIONS_MAX`] are open: the oldest that isn't waiting for the run gives way |
//! | send a request's head | [`HEAD_TIMEOUT`], or [`HEAD_BYTES_MAX`] bytes, or [`HEADERS_MAX`] headers |
//! | send a body | never: it is refused, and the connection is closed |
//! | read an answer, and send further requests | [`CONNECTION_TIME`] |
//!
//! The run doesn't wait for this thread, not even at its end.

use std::cell::Cell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::pin::pin;
use std::rc::Rc;
use std::thread::Builder;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{self, Runtime};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, LocalSet, spawn_local};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::http::access::PageAccess;
use crate::http::metrics::RunLabels;
use crate::http::reports::{ReportRequest, RunReports};
use crate::http::routes::RunPage;
use crate::http::tls;
use crate::settings::values::http::HttpPlan;

/// The most connections that are open at a time.
const CONNECTIONS_MAX: usize = 64;
/// The longest time for a TLS handshake, and for the head of a request, from the end of the request before.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of a request's head.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// The most headers of a request.
const HEADERS_MAX: usize = 64;
/// How long a connection lasts. A browser opens another one.
const CONNECTION_TIME: Duration = Duration::from_secs(60);
/// How much longer the answer in progress may take then.
const LAST_ANSWER_TIME: Duration = Duration::from_secs(10);
/// The pause after a failed `accept`, for example with too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The server. It stops when this is dropped, without being waited for.
#[derive(Debug)]
pub(crate) struct HttpServer {
    _stop: oneshot::Sender<Infallible>,
}

/// An address that is listened at, and what the server needs besides.
pub(crate) struct BoundServer {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    access: PageAccess,
    /// Where the page is.
    pub(crate) url: String,
}

/// Listens at the address. Nothing is answered yet.
///
/// # Errors
/// With a sentence if the address can't be used, for example because its port is in use, or a file of TLS can't.
pub(crate) fn bind(plan: &HttpPlan) -> Result<BoundServer, String> {
    let HttpPlan { given: (name, text), .. } = plan;
    let tls = match &plan.certificate {
        None => None,
        Some((certificate, key)) => Some(tls::acceptor(certificate, key)?),
    };
    let listener = TcpListener::bind(plan.address).map_err(|error| {
        let why = match error.kind() {
            ErrorKind::AddrInUse => "another program listens there".to_owned(),
            _ => format!("this program can't listen there: {error}"),
        };
        format!("{name} is {text:?}, but {why}")
    })?;
    let failed = |error: io::Error| format!("{name}: {error}");
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let (hosts, token) = (plan.hosts.clone(), plan.token.clone());
    let access = PageAccess::new(hosts, token, address.port(), tls.is_some()).map_err(failed)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    Ok(BoundServer { listener, tls, access, url: format!("{scheme}://{address}/") })
}

/// Starts the thread that answers. `ask` passes a request to the run, and returns whether the run accepts any.
///
/// # Errors
/// With a sentence if no thread can be started.
pub(crate) fn serve(
    bound: BoundServer,
    (name, master): (String, String),
    ask: impl Fn(ReportRequest) -> bool + Send + 'static,
) -> Result<HttpServer, String> {
    let BoundServer { listener, tls, access, .. } = bound;
    let failed = |error: io::Error| format!("--http: the thread can't be started: {error}");
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let (stop, stopped) = oneshot::channel();
    let run = move || {
        let reports = RunReports::new(Box::new(ask));
        let page = RunPage { access, reports, labels: RunLabels { name, master } };
        accept_until(&runtime, listener, tls, page, stopped);
    };
    Builder::new().name("offermill-http".into()).spawn(run).map_err(failed)?;
    Ok(HttpServer { _stop: stop })
}

fn accept_until(
    runtime: &Runtime,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    page: RunPage,
    stopped: oneshot::Receiver<Infallible>,
) {
    LocalSet::new().block_on(runtime, async {
        tokio::select! {
            _ = stopped => {}
            () = accept(listener, tls, page) => {}
        }
    });
}

/// Accepts connections. Returns only if the listener can't be used at all.
async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, page: RunPage) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let page = Rc::new(page);
    let mut connections = OpenConnections::default();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        connections.make_room();
        let waits_for_run = Rc::new(Cell::new(false));
        let served = serve_client(stream, tls.clone(), Rc::clone(&page), Rc::clone(&waits_for_run));
        let task = spawn_local(served).abort_handle();
        connections.0.push_back(OpenConnection { waits_for_run, task });
    }
}

/// The connections that are open, the oldest first, and some that have just ended.
#[derive(Default)]
struct OpenConnections(VecDeque<OpenConnection>);

struct OpenConnection {
    /// Whether the run is asked for its client.
    waits_for_run: Rc<Cell<bool>>,
    task: AbortHandle,
}

impl OpenConnections {
    /// Forgets connections that have ended. If there are too many others, closes the oldest one that isn't waiting for
    /// the run; else the oldest one. So a new client is always heard, however many are silent.
    fn make_room(&mut self) {
        self.0.retain(|connection| !connection.task.is_finished());
        if self.0.len() < CONNECTIONS_MAX {
            return;
        }
        let idle = self.0.iter().position(|connection| !connection.waits_for_run.get());
        if let Some(connection) = self.0.remove(idle.unwrap_or(0)) {
            connection.task.abort();
        }
    }
}

async fn serve_client(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    page: Rc<RunPage>,
    waits_for_run: Rc<Cell<bool>>,
) {
    match tls {
        None => serve_stream(stream, page, waits_for_run).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(HEAD_TIMEOUT, tls.accept(stream)).await {
                serve_stream(stream, page, waits_for_run).await;
            }
        }
    }
}

/// Answers requests on a connection for as long as one lasts. Errors are the client's.
async fn serve_stream<S>(stream: S, page: Rc<RunPage>, waits_for_run: Rc<Cell<bool>>)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let respond = service_fn(|request| {
        let (page, waits_for_run) = (Rc::clone(&page), Rc::clone(&waits_for_run));
        async move {
            waits_for_run.set(true);
            let response = page.respond(request).await;
            waits_for_run.set(false);
            Ok::<_, Infallible>(response)
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    http.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), respond));
    if timeout(CONNECTION_TIME, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        let _cut_off = timeout(LAST_ANSWER_TIME, connection).await;
    }
}
