//! Reads a watch: bytes of the response become lines, lines become events.
//!
//! The server writes one JSON object a line. A connection that breaks may cut the last line, which is then dropped: its
//! change comes again with the next watch, which begins at the last version that was read. A watch that can't be
//! continued says so in an event of the stream, after HTTP status 200, with the code 410; the pods must be listed again
//! then.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::objects::{ApiFailure, Pod};

/// The maximum number of bytes of a line: servers keep no object that is larger than about 1.5 MiB.
const LINE_BYTES_MAX: usize = 4 << 20;

/// Cuts bytes that arrive in pieces into lines.
#[derive(Debug, Default)]
pub(super) struct WatchLineReader {
    /// The beginning of a line whose end hasn't arrived.
    partial: Vec<u8>,
}

/// A line is longer than any that a server writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineTooLong;

impl WatchLineReader {
    /// Adds bytes, and passes each complete line to `line`, without its end. Empty lines are skipped.
    ///
    /// # Errors
    /// If a line is longer than [`LINE_BYTES_MAX`]; then the rest of the stream is of no use.
    pub(super) fn push<E: From<LineTooLong>>(
        &mut self,
        mut bytes: &[u8],
        mut line: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (own, rest) = bytes.split_at(end);
            bytes = rest.get(1..).unwrap_or_default();
            if self.partial.len() + own.len() > LINE_BYTES_MAX {
                return Err(LineTooLong.into());
            }
            if self.partial.is_empty() {
                pass(own, &mut line)?;
            } else {
                let mut whole = std::mem::take(&mut self.partial);
                whole.extend_from_slice(own);
                pass(&whole, &mut line)?;
            }
        }
        if self.partial.len() + bytes.len() > LINE_BYTES_MAX {
            return Err(LineTooLong.into());
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }
}

fn pass<E>(line: &[u8], to: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    if line.trim_ascii().is_empty() { Ok(()) } else { to(line) }
}

/// An event of a watch.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WatchEvent {
    /// A pod was created or changed, or is there at the beginning.
    Seen(Box<Pod>),
    /// A pod was deleted. This is its last state.
    Deleted(Box<Pod>),
    /// The next watch may begin at this version.
    Bookmark(String),
    /// The watch can't be continued from its version: the pods must be listed again.
    Expired,
    /// The server ends the watch for another reason.
    Failed(String),
    /// An event of a kind that isn't known.
    Other,
}

#[derive(Deserialize)]
struct WatchLine<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    object: &'a RawValue,
}

impl WatchEvent {
    /// Whether it says that the watch is at work: something has changed, or nothing has up to a version.
    pub(super) fn is_progress(&self) -> bool {
        matches!(self, WatchEvent::Seen(_) | WatchEvent::Deleted(_) | WatchEvent::Bookmark(_))
    }

    /// Reads a line.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub(super) fn read(line: &[u8]) -> Result<WatchEvent, String> {
        let unreadable = |error: serde_json::Error| format!("an event can't be read: {error}");
        let line: WatchLine<'_> = serde_json::from_slice(line).map_err(unreadable)?;
        let pod = || serde_json::from_str::<Pod>(line.object.get()).map_err(unreadable);
        Ok(match line.kind.as_str() {
            "ADDED" | "MODIFIED" => WatchEvent::Seen(Box::new(pod()?)),
            "DELETED" => WatchEvent::Deleted(Box::new(pod()?)),
            "BOOKMARK" => WatchEvent::Bookmark(pod()?.metadata.resource_version),
            "ERROR" => {
                let failure: ApiFailure =
                    serde_json::from_str(line.object.get()).map_err(unreadable)?;
                match failure.code {
                    410 => WatchEvent::Expired,
                    _ => WatchEvent::Failed(failure.message),
                }
            }
            _ => WatchEvent::Other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(pieces: &[&[u8]]) -> Result<Vec<Vec<u8>>, LineTooLong> {
        let mut reader = WatchLineReader::default();
        let mut found = Vec::new();
        for piece in pieces {
            reader.push(piece, |line| {
                found.push(line.to_vec());
                Ok::<(), LineTooLong>(())
            })?;
        }
        Ok(found)
    }

    /// Goal: no line takes unbounded memory. Method: the longest line, whole and in pieces, and one byte more.
    #[test]
    fn long_lines_are_errors() {
        let longest = [vec![b'x'; LINE_BYTES_MAX], vec![b'\n']].concat();
        assert_eq!(lines(&[&longest]).unwrap()[0].len(), LINE_BYTES_MAX);
        let longer = vec![b'x'; LINE_BYTES_MAX + 1];
        assert_eq!(lines(&[&longer]), Err(LineTooLong));
        assert_eq!(lines(&[&longer, b"\n"]), Err(LineTooLong));
        assert_eq!(lines(&[b"y", &longest]), Err(LineTooLong));
    }

    /// Goal: events are what the server says, and a watch that expired is known though its HTTP status was 200. Method:
    /// lines as a real server writes them, and lines that are none.
    #[test]
    fn lines_are_events() {
        let event = |line: &str| WatchEvent::read(line.as_bytes());
        let pod = |line: &str| match event(line) {
            Ok(WatchEvent::Seen(pod) | WatchEvent::Deleted(pod)) => *pod,
            other => panic!("{other:?}"),
        };
        let named = pod(
            r#"{"type":"MODIFIED","object":{"kind":"Pod","metadata":{"name":"a","labels":null},
            "spec":{"nodeName":"n1"},"status":{"phase":"Running","conditions":null,"new":[1]}}}"#,
        );
        assert_eq!((named.metadata.name.as_str(), named.spec.node_name.as_str()), ("a", "n1"));
        let deleted = event(r#"{"type":"DELETED","object":{"metadata":{"name":"a"}}}"#);
        assert!(matches!(deleted, Ok(WatchEvent::Deleted(_))));
        let bookmark = r#"{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"77",
            "creationTimestamp":null},"spec":{"containers":null},"status":{}}}"#;
        assert_eq!(event(bookmark), Ok(WatchEvent::Bookmark("77".to_owned())));
        let expired = r#"{"type":"ERROR","object":{"kind":"Status","status":"Failure",
            "message":"too old resource version: 1 (9)","reason":"Expired","code":410}}"#;
        assert_eq!(event(expired), Ok(WatchEvent::Expired));
        let failed = r#"{"type":"ERROR","object":{"message":"etcd","code":500}}"#;
        assert_eq!(event(failed), Ok(WatchEvent::Failed("etcd".to_owned())));
        assert_eq!(event(r#"{"type":"NEW","object":{}}"#), Ok(WatchEvent::Other));
        for odd in ["", "{}", "null", r#"{"type":"ADDED"}"#, r#"{"type":"ADDED","object":7}"#] {
            assert!(event(odd).is_err(), "{odd}");
        }
    }

    proptest! {
        /// Goal: lines are the same however the network cuts them, and what a broken connection leaves of a line is
        /// dropped. Method: random lines, cut at random places.
        #[test]
        fn lines_survive_any_cut(
            texts in prop::collection::vec("[a-c ]{0,5}", 0..8),
            rest in "[a-c]{0,3}",
            cuts in prop::collection::vec(0_usize..60, 0..6),
        ) {
            let whole = texts.iter().map(|text| format!("{text}\n")).collect::<String>() + &rest;
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (whole.len() + 1)).collect();
            cuts.extend([0, whole.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> =
                cuts.windows(2).map(|ends| &whole.as_bytes()[ends[0]..ends[1]]).collect();
            let expected: Vec<Vec<u8>> = texts
                .iter()
                .filter(|text| !text.trim().is_empty())
                .map(|text| text.as_bytes().to_vec())
                .collect();
            prop_assert_eq!(lines(&pieces).unwrap(), expected);
        }
    }
}
