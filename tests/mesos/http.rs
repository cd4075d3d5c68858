//! A minimal HTTP implementation, sufficient to query a master and to simulate one.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// The maximum time for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The head of a message and its body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    /// The first line.
    pub(crate) start: String,
    /// Names in lower case, and their values.
    pub(crate) headers: Vec<(String, String)>,
    /// The bytes after the head, with the transfer coding decoded.
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// Reads a request. `None` if the connection was closed instead.
    pub(crate) fn read_request(from: &mut impl BufRead) -> io::Result<Option<Message>> {
        let Some(mut message) = Message::read_head(from)? else { return Ok(None) };
        message.read_body(from, false)?;
        Ok(Some(message))
    }

    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn read_head(from: &mut impl BufRead) -> io::Result<Option<Message>> {
        let mut message = Message::default();
        let mut line = String::new();
        while from.read_line(&mut line)? > 0 {
            match line.trim_end() {
                "" if message.start.is_empty() => {}
                "" => return Ok(Some(message)),
                text if message.start.is_empty() => message.start = text.to_owned(),
                text => {
                    let (name, value) = text.split_once(':').unwrap_or((text, ""));
                    message.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
                }
            }
            line.clear();
        }
        Ok(None)
    }

    /// Reads the body. A body without a length extends to the end of the connection if `to_the_end`.
    fn read_body(&mut self, from: &mut impl BufRead, to_the_end: bool) -> io::Result<()> {
        if self.header("transfer-encoding") == Some("chunked") {
            loop {
                let mut line = String::new();
                from.read_line(&mut line)?;
                let length = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
                let mut chunk = vec![0; length + 2];
                from.read_exact(&mut chunk)?;
                self.body.extend_from_slice(&chunk[..length]);
                if length == 0 {
                    return Ok(());
                }
            }
        }
        let length = self.header("content-length").and_then(|length| length.parse().ok());
        match length {
            Some(length) => {
                self.body = vec![0; length];
                from.read_exact(&mut self.body)
            }
            None if to_the_end => from.read_to_end(&mut self.body).map(|_| ()),
            None => Ok(()),
        }
    }
}

/// The JSON response to `GET path` on this machine's `port`.
pub(crate) fn get_json(port: u16, path: &str) -> io::Result<Value> {
    let answer = exchange(port, &format!("GET {path}"), "", b"")?;
    serde_json::from_slice(&answer.body).map_err(io::Error::other)
}

/// Posts `body` to `path` on this machine's `port`, and returns the first line of the answer.
pub(crate) fn post_json(port: u16, path: &str, body: &Value) -> io::Result<String> {
    let body = body.to_string().into_bytes();
    let headers = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    Ok(exchange(port, &format!("POST {path}"), &headers, &body)?.start)
}

fn exchange(port: u16, start: &str, headers: &str, body: &[u8]) -> io::Result<Message> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let headers = format!("Host: {address}\r\nConnection: close\r\n{headers}");
    stream.write_all(format!("{start} HTTP/1.1\r\n{headers}\r\n").as_bytes())?;
    stream.write_all(body)?;
    let mut stream = BufReader::new(stream);
    let mut answer = Message::read_head(&mut stream)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    answer.read_body(&mut stream, true)?;
    Ok(answer)
}
