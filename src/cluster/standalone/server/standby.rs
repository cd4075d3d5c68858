//! A standby: it waits until no other master holds the journal, and tells clients who leads until then.
//!
//! The leader's lock on the folder ends with its process. A leader that is only stopped, or whose machine is paused,
//! keeps it: then nobody takes over, and workers go on with what runs.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use hyper::{Request, Response, StatusCode};
use tokio::runtime;
use tokio::sync::oneshot;
use tokio::task::LocalSet;
use tokio::time::interval;

use super::LIMITS;
use super::access::HEALTH_PATH;
use super::journal::{MasterJournal, leader_of};
use crate::cluster::process::machine::hostname;
use crate::http_server::{ServerLimits, TlsAcceptor, accept, connections_within_files, protect};

/// The interval in which a standby tries to lead.
const POLL: Duration = Duration::from_millis(250);

/// Where a master that listens at `address` is reached, if nothing else is said: there, or by the machine's name if it
/// listens at all addresses.
#[must_use]
pub fn reached_at(address: SocketAddr) -> String {
    match address.ip().is_unspecified() {
        true => format!("{}:{}", hostname(), address.port()),
        false => address.to_string(),
    }
}

/// Waits until no other master holds the journal in `folder`, which is made if it isn't there, and returns it, with a
/// new term. Until then requests at `listener` are answered with status 307 and the leader's address, if that is known,
/// and `/health` with `standby`. `None` if `stop` is sent or dropped before. `own` is this master's address, as in
/// [`MasterJournal::name_leader`].
///
/// # Errors
/// With a sentence if the server can't be started, or if the journal can't be used.
pub fn stand_by(
    listener: &TcpListener,
    folder: &Path,
    own: &str,
    tls: Option<TlsAcceptor>,
    stop: &mut oneshot::Receiver<Infallible>,
) -> Result<Option<MasterJournal>, String> {
    let failed = |error: io::Error| format!("the standby can't be started: {error}");
    let listener = listener.try_clone().map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    LocalSet::new().block_on(&runtime, async {
        let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
        let connections_max = connections_within_files(LIMITS.connections_max);
        let limits = ServerLimits { connections_max, ..LIMITS };
        let places: Rc<(PathBuf, String)> = Rc::new((folder.to_owned(), own.to_owned()));
        let accepted = accept(
            listener,
            tls,
            limits,
            |_, _| {},
            move |request, _| {
                let places = Rc::clone(&places);
                async move { respond(&request, &places.0, &places.1) }
            },
        );
        tokio::select! {
            _ = stop => Ok(None),
            leads = lead(folder) => leads.map(Some),
            () = accepted => Ok(None),
        }
    })
}

/// Waits for the journal.
async fn lead(folder: &Path) -> Result<MasterJournal, String> {
    let mut polls = interval(POLL);
    loop {
        polls.tick().await;
        if let Some(journal) = MasterJournal::try_open(folder).map_err(|error| error.to_string())? {
            return Ok(journal);
        }
    }
}

/// Tells a client who leads.
fn respond<B>(request: &Request<B>, folder: &Path, own: &str) -> Response<Full<Bytes>> {
    let uri = request.uri();
    // What this master itself wrote when it led is out of date.
    let leader = leader_of(folder).filter(|leader| leader != own);
    let location = leader.and_then(|leader| {
        let path = uri.path_and_query().map_or("/", |it| it.as_str());
        HeaderValue::from_str(&format!("//{leader}{path}")).ok()
    });
    let (status, sentence) = match &location {
        _ if uri.path() == HEALTH_PATH => (StatusCode::OK, "standby\n"),
        Some(_) => (StatusCode::TEMPORARY_REDIRECT, "another master leads\n"),
        None => (StatusCode::SERVICE_UNAVAILABLE, "another master leads; where isn't known\n"),
    };
    let mut response = Response::new(Full::new(Bytes::from_static(sentence.as_bytes())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    protect(headers);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if let Some(location) = location.filter(|_| status == StatusCode::TEMPORARY_REDIRECT) {
        headers.insert(LOCATION, location);
    }
    response
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Goal: a client is sent to the leader with the path that it asked for, never to the standby itself, and nowhere
    /// if the leader isn't known. Method: a folder without a leader, with another, and with the standby's own address.
    #[test]
    fn clients_are_sent_to_the_leader() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut journal = MasterJournal::open(&path).unwrap();
        let ask = |of: &str| {
            let request = Request::builder().uri(of).body(()).unwrap();
            let response = respond(&request, &path, "m2:5050");
            let location =
                response.headers().get(LOCATION).map(|it| it.to_str().unwrap().to_owned());
            (response.status().as_u16(), location)
        };
        assert_eq!(ask("/api/v1/worker"), (503, None));
        journal.name_leader("m1:5050").unwrap();
        let there = Some("//m1:5050/api/v1/worker?a=b".to_owned());
        assert_eq!(ask("/api/v1/worker?a=b"), (307, there));
        assert_eq!(ask("/health"), (200, None));
        journal.name_leader("m2:5050").unwrap();
        assert_eq!(ask("/"), (503, None));
    }
}
