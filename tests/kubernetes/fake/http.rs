//! As much of HTTP/1.1 as the client needs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// A request.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    query: String,
    pub(super) body: Value,
}

impl Request {
    /// The value of a parameter.
    pub(super) fn query(&self, name: &str) -> Option<String> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
    }

    /// Whether an object is one of those that the request selects by labels, each `KEY=VALUE` or `!KEY`, and by its
    /// name.
    pub(super) fn selects(&self, object: &Value) -> bool {
        let name = self.query("fieldSelector").unwrap_or_default();
        let name = name.strip_prefix("metadata.name%3D");
        if name.is_some_and(|name| object["metadata"]["name"] != name) {
            return false;
        }
        let selector = self.query("labelSelector").unwrap_or_default();
        let marks = [("%2F", "/"), ("%3D", "="), ("%2C", ","), ("%21", "!")];
        let selector = marks.iter().fold(selector, |text, (code, mark)| text.replace(code, mark));
        let labels = &object["metadata"]["labels"];
        let selects = |part: &str| match (part.split_once('='), part.strip_prefix('!')) {
            (Some((key, value)), _) => labels[key] == value,
            (None, Some(key)) => labels[key].is_null(),
            (None, None) => part.is_empty(),
        };
        selector.split(',').all(selects)
    }

    /// The request as `VERB path`, with `LIST` and `WATCH` for what reads many.
    pub(super) fn kind(&self) -> String {
        let verb = match self.query("watch") {
            Some(_) => "WATCH",
            None if self.method == "GET"
                && ["/pods", "/nodes"].iter().any(|it| self.path.ends_with(it)) =>
            {
                "LIST"
            }
            None => &self.method,
        };
        format!("{verb} {}", self.path)
    }
}

/// Reads a request; `None` if the connection was closed.
pub(super) fn read_request(stream: &mut TcpStream) -> Option<Request> {
    // The client sends the next request only after the answer, so that nothing is left in the buffer.
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim_end().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Some(Request { method, path: path.to_owned(), query: query.to_owned(), body })
}

/// Answers a request. False if the connection is closed.
pub(super) fn respond(stream: &mut TcpStream, status: u16, body: &Value) -> bool {
    respond_with(stream, status, None, body)
}

pub(super) fn respond_with(
    stream: &mut TcpStream,
    status: u16,
    header: Option<(&str, &str)>,
    body: &Value,
) -> bool {
    let body = body.to_string();
    let header = header.map(|(name, value)| format!("{name}: {value}\r\n")).unwrap_or_default();
    let answer = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{header}\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).is_ok()
}
