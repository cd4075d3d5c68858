//! Requests to their answers.

use std::rc::Rc;

use hyper::body::Incoming;
use hyper::{Request, StatusCode};

use super::access::{HEALTH_PATH, METRICS_PATH, SCHEDULER_PATH, STATE_PATH};
use super::answers::{MasterResponse, problem, whole};
use super::metrics::{METRICS_TYPE, metrics_text};
use super::shared::SharedMaster;
use super::{scheduler, worker};
use crate::cluster::standalone::protocol::WORKER_PATH;
use crate::http_server::ClientConnection;

/// Answers a request, if it is allowed, and notes that its connection is used if it was one that needs a right.
pub(super) async fn respond(
    shared: Rc<SharedMaster>,
    request: Request<Incoming>,
    client: Rc<ClientConnection>,
) -> MasterResponse {
    let (head, body) = request.into_parts();
    if let Err((status, sentence)) = shared.access.check(&head, &client) {
        return problem(status, sentence);
    }
    let request = Request::from_parts(head, body);
    let path = request.uri().path();
    if path != HEALTH_PATH {
        client.is_used.set(true);
    }
    match path {
        SCHEDULER_PATH => scheduler::respond(shared, request).await,
        WORKER_PATH => worker::respond(shared, request).await,
        STATE_PATH => {
            // Writing to memory can't fail, because all keys of maps are strings.
            let state = serde_json::to_string(&shared.report()).unwrap_or_default();
            whole(StatusCode::OK, "application/json", format!("{state}\n"))
        }
        METRICS_PATH => whole(StatusCode::OK, METRICS_TYPE, metrics_text(&shared.report())),
        HEALTH_PATH => whole(StatusCode::OK, "text/plain; charset=utf-8", "ok\n".to_owned()),
        _ => problem(StatusCode::NOT_FOUND, "there is nothing at this path"),
    }
}
