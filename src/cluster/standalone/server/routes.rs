//! Requests to their answers.

use std::rc::Rc;

use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use serde::Serialize;
use tokio::time::sleep;

use super::access::{
    EXECUTORS_PATH, HISTORY_PATH, METRICS_PATH, SCHEDULER_PATH, STATE_PATH, TEARDOWN_PATH,
    credentials_problem,
};
use super::answers::{MasterResponse, problem, refusal, whole};
use super::metrics::{METRICS_TYPE, metrics_text};
use super::page::respond_to_all;
use super::shared::SharedMaster;
use super::{scheduler, teardown, worker};
use crate::cluster::standalone::master::MasterNotice;
use crate::cluster::standalone::protocol::WORKER_PATH;
use crate::http_server::{ClientConnection, ConnectionRank};

/// Answers a request, if it is allowed. One that needs a right keeps its connection in use until its answer was sent.
pub(super) async fn respond(
    shared: Rc<SharedMaster>,
    request: Request<Incoming>,
    client: Rc<ClientConnection>,
) -> MasterResponse {
    let (head, body) = request.into_parts();
    if let Err((status, sentence)) = shared.access.check(&head, &client) {
        let from = client.address;
        if let Some(why) = credentials_problem(&head.headers, (status, sentence)) {
            shared.tell(&MasterNotice::CredentialsRefused { from, why });
        }
        return refusal(status, sentence);
    }
    let request = Request::from_parts(head, body);
    if let Some(response) = respond_to_all(request.uri().path()) {
        return response;
    }
    let held = client.hold();
    client.raise(ConnectionRank::Allowed);
    let mut response = respond_allowed(shared, request, &client).await;
    response.body_mut().hold(held);
    response
}

/// Answers a request that is allowed, and needs a right.
async fn respond_allowed(
    shared: Rc<SharedMaster>,
    request: Request<Incoming>,
    client: &ClientConnection,
) -> MasterResponse {
    match request.uri().path() {
        SCHEDULER_PATH => scheduler::respond(shared, request, client).await,
        WORKER_PATH => worker::respond(shared, request).await,
        TEARDOWN_PATH => teardown::respond(&shared, request).await,
        path => {
            let principal = shared.access.principal(request.headers());
            respond_with_report(&shared, path, principal).await
        }
    }
}

/// Answers with a report, in its turn.
async fn respond_with_report(
    shared: &SharedMaster,
    path: &str,
    principal: Option<String>,
) -> MasterResponse {
    match shared.pace_report(principal) {
        Some(wait) if wait.is_zero() => {}
        Some(wait) => sleep(wait).await,
        None => return problem(StatusCode::TOO_MANY_REQUESTS, "too many reports are asked for"),
    }
    match path {
        STATE_PATH => json(&shared.report()),
        EXECUTORS_PATH => json(&shared.executors()),
        HISTORY_PATH => json(&shared.history()),
        METRICS_PATH => whole(StatusCode::OK, METRICS_TYPE, metrics_text(&shared.report())),
        _ => problem(StatusCode::NOT_FOUND, "there is nothing at this path"),
    }
}

/// A report as a line of JSON.
fn json(report: &impl Serialize) -> MasterResponse {
    // Writing to memory can't fail, because all keys of maps are strings.
    let text = serde_json::to_string(report).unwrap_or_default();
    whole(StatusCode::OK, "application/json", format!("{text}\n"))
}
