//! What reads pods: lists in pages, and watches.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http::Request;
use super::{Shared, State, Watches, objects};

/// A page of the list of pods. Its token names the version of the list and the last pod.
pub(super) fn list(state: &State, request: &Request) -> (u16, Value) {
    let limit: usize = request.query("limit").and_then(|it| it.parse().ok()).unwrap_or(usize::MAX);
    let token = request.query("continue").unwrap_or_default();
    let (version, after) = match token.split_once('_') {
        Some((version, after)) => (version.parse().unwrap_or(0), after.to_owned()),
        None => (state.version, String::new()),
    };
    if version < state.compacted {
        return (410, objects::failure(410, "The provided continue parameter is too old"));
    }
    let is_cached = request.query("resourceVersion").as_deref() == Some("0");
    let nodes = request.path.ends_with("/nodes").then_some(&state.nodes);
    let pods = state.cache.as_ref().filter(|_| is_cached).unwrap_or(&state.pods);
    let pods = nodes.unwrap_or(pods);
    let mut rest = pods.iter().filter(|(name, pod)| **name > after && request.selects(pod));
    let page: Vec<(&String, &Value)> = rest.by_ref().take(limit).collect();
    let mut metadata = json!({ "resourceVersion": version.to_string() });
    if let (Some((last, _)), true) = (page.last(), rest.next().is_some()) {
        metadata["continue"] = format!("{version}_{last}").into();
    }
    let items: Vec<&Value> = page.iter().map(|(_, pod)| *pod).collect();
    (200, json!({ "kind": "PodList", "metadata": metadata, "items": items }))
}

/// A change as a watch shows it: a pod whose labels no longer match is said to be deleted.
fn shown(
    version: u64,
    before: Option<Value>,
    now: Option<Value>,
    request: &Request,
) -> Option<Value> {
    let before = before.filter(|pod| request.selects(pod));
    let now = now.filter(|pod| request.selects(pod));
    let (kind, mut object) = match (before, now) {
        (Some(before), None) => ("DELETED", before),
        (None, now) => ("ADDED", now?),
        (Some(_), Some(now)) => ("MODIFIED", now),
    };
    object["metadata"]["resourceVersion"] = version.to_string().into();
    Some(json!({ "type": kind, "object": object }))
}

/// Serves a watch until it ends.
pub(super) fn watch(shared: &Shared, stream: &mut TcpStream, request: &Request) {
    let mut after: u64 =
        request.query("resourceVersion").and_then(|it| it.parse().ok()).unwrap_or(0);
    let mut state = shared.0.lock().unwrap();
    state.watches_begun += 1;
    let number = state.watches_begun;
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    if stream.write_all(head.as_bytes()).is_err() {
        return;
    }
    let chunk = |stream: &mut TcpStream, text: &str| {
        write!(stream, "{:x}\r\n{text}\r\n", text.len()).and_then(|()| stream.flush()).is_ok()
    };
    if state.watches == Watches::Brief {
        chunk(stream, "");
        return;
    }
    if after < state.compacted || state.watches == Watches::Expired {
        let object = objects::failure(410, "too old resource version");
        let event = json!({ "type": "ERROR", "object": object });
        chunk(stream, &format!("{event}\n"));
        chunk(stream, "");
        return;
    }
    let seconds = request.query("timeoutSeconds").and_then(|it| it.parse().ok()).unwrap_or(60);
    let until = Instant::now() + Duration::from_secs(seconds);
    let is_of_one = request.query("fieldSelector").is_some();
    loop {
        if state.is_stopped || number < state.watch_floor || Instant::now() > until {
            if state.cuts_lines {
                chunk(stream, "{\"type\":\"MODIFIED\",\"object\":{\"metad");
            } else {
                let metadata = json!({ "resourceVersion": state.version.to_string() });
                let event = json!({ "type": "BOOKMARK", "object": { "metadata": metadata } });
                let bookmark = format!("{event}\n");
                let is_closed = state.sends_bookmarks && !chunk(stream, &bookmark);
                let _ended = is_closed || chunk(stream, "");
            }
            return;
        }
        if state.watches == Watches::Usual || is_of_one && state.watches == Watches::Silent {
            let of_nodes = request.path.ends_with("/nodes");
            let log = if of_nodes { &state.node_log } else { &state.log };
            let seen = log.partition_point(|(version, _, _)| *version <= after);
            let fresh = log.get(seen..).unwrap_or_default().to_vec();
            for (version, before, now) in fresh {
                after = version;
                let Some(event) = shown(version, before, now, request) else { continue };
                if !chunk(stream, &format!("{event}\n")) {
                    return;
                }
            }
        }
        state = shared.1.wait_timeout(state, Duration::from_millis(100)).unwrap().0;
    }
}
