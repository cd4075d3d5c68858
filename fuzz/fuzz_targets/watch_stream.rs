//! The stream of a Kubernetes watch. However it is cut into pieces, its events and its mistakes are those that a naive
//! reader finds in the whole stream; the reader keeps no more than the beginning of a line.
//!
//! Input: a line with the length of each piece (the last one applies to all further pieces); after it the stream.

#![cfg_attr(fuzzing, no_main)]
#![allow(dead_code, reason = "of the library's files only a part is used here")]

#[path = "../../src/cluster/kubernetes/objects.rs"]
mod objects;
#[path = "../../src/cluster/kubernetes/watch_stream.rs"]
mod watch_stream;

use watch_stream::{LineTooLong, WatchEvent, WatchLineReader};

fn check(data: &[u8]) {
    let Some(end) = data.iter().position(|byte| *byte == b'\n') else { return };
    let Ok(line) = std::str::from_utf8(&data[..end]) else { return };
    let pieces: Result<Vec<u16>, _> = line.split(' ').map(str::parse).collect();
    let Ok(pieces) = pieces else { return };
    let stream = &data[end + 1..];

    let mut reader = WatchLineReader::default();
    let mut found: Vec<Vec<u8>> = Vec::new();
    let mut rest = stream;
    let mut lengths = pieces.into_iter().map(usize::from);
    let mut length = usize::MAX;
    while !rest.is_empty() {
        length = lengths.next().unwrap_or(length.max(1));
        let (piece, others) = rest.split_at(length.min(rest.len()));
        rest = others;
        let read = reader.push(piece, |line| {
            found.push(line.to_vec());
            Ok::<(), LineTooLong>(())
        });
        assert_eq!(read, Ok(()), "no input is as long as the longest line");
    }
    // The last part has no end, and is dropped.
    let mut whole: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
    whole.pop();
    let whole = whole.into_iter().filter(|line| !line.trim_ascii().is_empty());
    assert!(found.iter().map(Vec::as_slice).eq(whole));
    found.iter().for_each(|line| event(line));
}

/// What is read of a line is what a reader of any JSON finds there.
fn event(line: &[u8]) {
    let Ok(read) = WatchEvent::read(line) else { return };
    let value: serde_json::Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        // A part that is skipped may be nested too deep, or have a number out of range.
        Err(_) => return,
    };
    let object = &value["object"];
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    let pod = |pod: &objects::Pod| {
        assert_eq!(pod.metadata.name, text("name"));
        assert_eq!(pod.metadata.uid, text("uid"));
        assert_eq!(pod.metadata.resource_version, text("resourceVersion"));
        assert_eq!(pod.spec.node_name, object["spec"]["nodeName"].as_str().unwrap_or_default());
        assert_eq!(pod.status.phase.as_deref(), object["status"]["phase"].as_str());
    };
    let code = object["code"].as_u64().unwrap_or_default();
    match (value["type"].as_str().unwrap_or_default(), &read) {
        ("ADDED" | "MODIFIED", WatchEvent::Seen(seen)) => pod(seen),
        ("DELETED", WatchEvent::Deleted(deleted)) => pod(deleted),
        ("BOOKMARK", WatchEvent::Bookmark(version)) => assert_eq!(*version, text("resourceVersion")),
        ("ERROR", WatchEvent::Expired) => assert_eq!(code, 410),
        ("ERROR", WatchEvent::Failed(_)) => assert_ne!(code, 410),
        (kind, read) => {
            let known = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"];
            assert!(*read == WatchEvent::Other && !known.contains(&kind), "{kind} {read:?}");
        }
    }
}

offermill_fuzz::harness!(check);
