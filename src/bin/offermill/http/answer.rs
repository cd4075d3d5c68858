//! Answers, with the headers that protect what browsers show.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue, LOCATION, SET_COOKIE, WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};
use offermill::http_server::protect;

/// An answer to a client.
pub(super) type PageResponse = Response<Full<Bytes>>;

/// An answer with a body of this type.
pub(super) fn answer(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> PageResponse {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    protect(headers);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// A line of text that says what is wrong.
pub(super) fn problem(status: StatusCode, sentence: &str) -> PageResponse {
    answer(status, "text/plain; charset=utf-8", format!("{sentence}\n"))
}

/// A problem after which the connection is closed: what follows may be a body.
pub(super) fn last_problem(status: StatusCode, sentence: &str) -> PageResponse {
    let mut response = problem(status, sentence);
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The methods that are answered.
pub(super) fn only_reads() -> PageResponse {
    let sentence = "only GET and HEAD are answered: nothing here changes a run";
    let mut response = last_problem(StatusCode::METHOD_NOT_ALLOWED, sentence);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}

/// A token is missing, or isn't the right one.
pub(super) fn token_needed() -> PageResponse {
    let sentence = "a token is needed: open /?token=TOKEN once, or send the header Authorization: Bearer TOKEN";
    let mut response = problem(StatusCode::UNAUTHORIZED, sentence);
    let scheme = HeaderValue::from_static("Bearer realm=\"offermill\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    response
}

/// Sends a browser that brought the token to the page, with a cookie in its place.
pub(super) fn to_the_page(cookie: HeaderValue) -> PageResponse {
    let mut response = problem(StatusCode::SEE_OTHER, "the page is at /");
    response.headers_mut().insert(LOCATION, HeaderValue::from_static("/"));
    response.headers_mut().insert(SET_COOKIE, cookie);
    response
}
