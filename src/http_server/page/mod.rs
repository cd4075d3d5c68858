//! What the pages of a run and of a master share: style, code, and the headers with which browsers run no code but the
//! page's own, show it in no frame, keep nothing, and tell no other site of it.

use hyper::header::{CACHE_CONTROL, HeaderMap, HeaderName, HeaderValue};

/// The style of all pages.
pub const PAGE_STYLE: &str = include_str!("page.css");
/// The code that all pages share: formats, tables, plots, and keeping them up to date.
pub const PAGE_CODE: &str = include_str!("page.js");

/// What a page may load: its own style, its own code, and the reports that it shows.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HEADERS: [(&str, &str); 6] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
];

/// Adds the headers that all answers to browsers have.
pub fn protect(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
}
