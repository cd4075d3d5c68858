//! Requests to their answers.

use std::cell::Cell;
use std::rc::Rc;

use hyper::body::Incoming;
use hyper::{Request, StatusCode};

use super::access::{HEALTH_PATH, SCHEDULER_PATH, STATE_PATH};
use super::answers::{MasterResponse, problem, whole};
use super::shared::SharedMaster;
use super::{scheduler, worker};
use crate::cluster::standalone::protocol::WORKER_PATH;

/// Answers a request, if it is allowed, and notes whether one was that needs a right.
pub(super) async fn respond(
    shared: Rc<SharedMaster>,
    request: Request<Incoming>,
    is_allowed: &Cell<bool>,
) -> MasterResponse {
    let path = request.uri().path();
    if let Err((status, sentence)) =
        shared.credentials.check(request.method(), path, request.headers())
    {
        return problem(status, sentence);
    }
    if path != HEALTH_PATH {
        is_allowed.set(true);
    }
    match path {
        SCHEDULER_PATH => scheduler::respond(shared, request).await,
        WORKER_PATH => worker::respond(shared, request).await,
        STATE_PATH => whole(StatusCode::OK, "application/json", shared.state_json()),
        HEALTH_PATH => whole(StatusCode::OK, "text/plain; charset=utf-8", "ok\n".to_owned()),
        _ => problem(StatusCode::NOT_FOUND, "there is nothing at this path"),
    }
}
