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

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::rc::Rc;
use std::thread::Builder;
use std::time::Duration;

use offermill::http_server::{
    ServerLimits, TlsAcceptor, WhenFull, accept, connections_within_files, server_tls,
};
use offermill::private_files::FileAccess;
use tokio::runtime::{self, Runtime};
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use crate::http::access::PageAccess;
use crate::http::metrics::RunLabels;
use crate::http::reports::{ReportRequest, RunReports};
use crate::http::routes::RunPage;
use crate::output::remark;
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

const LIMITS: ServerLimits = ServerLimits {
    connections_max: CONNECTIONS_MAX,
    when_full: WhenFull::CloseOldest,
    first_head_timeout: HEAD_TIMEOUT,
    head_timeout: HEAD_TIMEOUT,
    unused_timeout: None,
    head_bytes_max: HEAD_BYTES_MAX,
    headers_max: HEADERS_MAX,
    lasts: Some((CONNECTION_TIME.saturating_sub(HEAD_TIMEOUT), LAST_ANSWER_TIME)),
    unacknowledged_timeout: Duration::from_secs(60),
    looks_up_users: false,
};

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
        Some((certificate, key)) => {
            Some(server_tls(certificate, key, FileAccess::check_author, None)?)
        }
    };
    if let Some(why) = tls.as_ref().and_then(|tls| tls.remark.as_ref()) {
        remark(&format!("TLS: {why}"));
    }
    let tls = tls.map(|tls| tls.acceptor);
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
        let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
        let page = Rc::new(page);
        let connections_max = connections_within_files(CONNECTIONS_MAX);
        let limits = ServerLimits { connections_max, ..LIMITS };
        let accepted = accept(
            listener,
            tls,
            limits,
            |_, _| {},
            move |request, client| {
                let page = Rc::clone(&page);
                async move {
                    // A client for which the run is asked keeps its connection.
                    let _held = client.hold();
                    page.respond(request).await
                }
            },
        );
        tokio::select! {
            _ = stopped => {}
            () = accepted => {}
        }
    });
}
