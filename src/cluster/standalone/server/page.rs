//! What needs no right: whether the master answers, and its web page, which has no data of its own. What the page shows
//! it asks for, with the credentials that its reader gives to the browser.

use hyper::StatusCode;

use super::access::{CODE_PATH, HEALTH_PATH, PAGE_PATH, SHARED_CODE_PATH, STYLE_PATH};
use super::answers::{MasterResponse, whole};
use crate::http_server::{PAGE_CODE, PAGE_STYLE};

const PAGE: &str = include_str!("assets/master.html");
const CODE: &str = include_str!("assets/master.js");

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The answer to a request that needs no right, if it is one.
pub(super) fn respond_to_all(path: &str) -> Option<MasterResponse> {
    let (kind, text) = match path {
        HEALTH_PATH => ("text/plain; charset=utf-8", "ok\n"),
        PAGE_PATH => ("text/html; charset=utf-8", PAGE),
        STYLE_PATH => ("text/css; charset=utf-8", PAGE_STYLE),
        SHARED_CODE_PATH => (SCRIPT, PAGE_CODE),
        CODE_PATH => (SCRIPT, CODE),
        _ => return None,
    };
    Some(whole(StatusCode::OK, kind, text))
}
