//! The end of a framework by an operator, as in Mesos: `curl -d frameworkId=ID URL/master/teardown`.

use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use tokio::time::timeout;

use super::answers::{MasterResponse, problem, whole};
use super::shared::SharedMaster;

/// The most bytes of a request.
const BYTES_MAX: usize = 4096;
/// The longest time in which a request must have arrived.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Tears a framework down. With principals, only its own may do that.
pub(super) async fn respond(shared: &SharedMaster, request: Request<Incoming>) -> MasterResponse {
    let principal = shared.access.principal(request.headers());
    let body = Limited::new(request.into_body(), BYTES_MAX).collect();
    let body = match timeout(REQUEST_TIMEOUT, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => {
            return problem(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long, or was cut");
        }
        Err(_) => {
            return problem(StatusCode::REQUEST_TIMEOUT, "the request took too long to arrive");
        }
    };
    // Ids of this master have no character that a form encodes.
    let id = std::str::from_utf8(&body).ok().and_then(|text| text.strip_prefix("frameworkId="));
    let Some(id) = id else {
        return problem(StatusCode::BAD_REQUEST, "the body must be frameworkId=ID");
    };
    match shared.tear_down(id.trim_end(), principal.as_deref()) {
        true => whole(StatusCode::OK, "text/plain; charset=utf-8", String::new()),
        false => problem(StatusCode::BAD_REQUEST, "no such framework is registered"),
    }
}
