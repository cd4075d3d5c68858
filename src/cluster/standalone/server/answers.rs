//! Answers to requests.

use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};

use super::stream::EventBody;
use crate::http_server::protect;

/// An answer to a client.
pub(super) type MasterResponse = Response<EventBody>;

/// An answer with a whole body.
pub(super) fn whole(
    status: StatusCode,
    kind: &'static str,
    text: impl Into<Bytes>,
) -> MasterResponse {
    let mut response = Response::new(EventBody::whole(text.into()));
    *response.status_mut() = status;
    protect(response.headers_mut());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// A sentence that says what is wrong.
pub(super) fn problem(status: StatusCode, sentence: &str) -> MasterResponse {
    whole(status, "text/plain; charset=utf-8", format!("{sentence}\n"))
}

/// A sentence that says why a request isn't allowed. Without credentials, a client is told which kinds
/// there are; a browser asks its reader for the secret of a principal then.
pub(super) fn refusal(status: StatusCode, sentence: &str) -> MasterResponse {
    let mut response = problem(status, sentence);
    if status == StatusCode::UNAUTHORIZED {
        let kinds =
            HeaderValue::from_static("Basic realm=\"offermill\", Bearer realm=\"offermill\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, kinds);
    }
    response
}

/// An answer whose body is a stream of records.
pub(super) fn stream(kind: &'static str, body: EventBody) -> MasterResponse {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
