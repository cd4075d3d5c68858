//! Answers with the headers that all of them have: browsers run no code but the page's own, show it in no frame, keep
//! nothing and tell no other site of it.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, SET_COOKIE,
    WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};

/// An answer to a client.
pub(super) type PageResponse = Response<Full<Bytes>>;

/// What the page may load: its own style, its own code, and the run's reports.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The headers of all answers.
const HEADERS: [(&str, &str); 6] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
];

/// An answer with a body of this type.
pub(super) fn answer(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> PageResponse {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
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
