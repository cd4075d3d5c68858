//! The calls that the fake master receives, and its answers.

use std::time::Duration;

use offermill::mesos_v1::messages;
use prost::Message as _;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::http::Message;

/// A received call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The type: `SUBSCRIBE` and so on; empty if the body isn't JSON.
    pub(crate) kind: String,
    /// The number of earlier calls of this kind.
    pub(crate) number: usize,
    /// The body.
    pub(crate) body: Value,
    /// The HTTP message.
    pub(crate) message: Message,
}

/// An answer, and what happens to the connection after it.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The pieces are written one after the other.
    pub(crate) pieces: Vec<Vec<u8>>,
    pub(crate) then: Then,
}

/// What follows an answer.
#[derive(Clone, Debug)]
pub(crate) enum Then {
    /// The next request is read from the same connection.
    Next,
    /// The connection is closed.
    Close,
    /// The connection stays open, and the test may send events on it.
    Stream,
    /// These bytes are sent again and again until the client stops reading.
    Flood(Vec<u8>),
    /// Nothing is sent for this duration; then the connection is closed.
    Silence(Duration),
}

impl Answer {
    /// No bytes at all.
    pub(crate) fn none() -> Answer {
        Answer { pieces: Vec::new(), then: Then::Close }
    }

    /// These bytes.
    pub(crate) fn bytes(bytes: impl Into<Vec<u8>>) -> Answer {
        Answer { pieces: vec![bytes.into()], then: Then::Close }
    }

    /// A complete answer, after which the connection can be reused. Each of `headers` ends with a line end.
    pub(crate) fn status(status: &str, headers: &str, body: &str) -> Answer {
        let length = body.len();
        let text = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
        Answer { then: Then::Next, ..Answer::bytes(text) }
    }

    /// The head of an event stream.
    pub(crate) fn stream(stream_id: &str) -> Answer {
        let id = format!("Mesos-Stream-Id: {stream_id}\r\n");
        Answer::stream_with(&id)
    }

    /// The head of an event stream with these headers, each with its line end.
    pub(crate) fn stream_with(headers: &str) -> Answer {
        let kind = "Content-Type: application/json\r\nTransfer-Encoding: chunked";
        let text = format!("HTTP/1.1 200 OK\r\n{headers}{kind}\r\n\r\n");
        Answer { then: Then::Stream, ..Answer::bytes(text) }
    }

    /// The answer to a subscription in protobuf.
    pub(crate) fn subscribed_in_protobuf(call: &Call) -> Answer {
        let id = stream_id(call.number);
        let kind = "Content-Type: application/x-protobuf\r\nTransfer-Encoding: chunked";
        let text = format!("HTTP/1.1 200 OK\r\nMesos-Stream-Id: {id}\r\n{kind}\r\n\r\n");
        let answer = Answer { then: Then::Stream, ..Answer::bytes(text) };
        answer.chunk(&framed(&protobuf(&subscribed(call, 15.0))))
    }

    /// The answer to a subscription as Mesos sends it.
    pub(crate) fn subscribed(call: &Call) -> Answer {
        Answer::stream(&stream_id(call.number)).event(&subscribed(call, 15.0))
    }

    /// Appends an event.
    pub(crate) fn event(self, event: &Value) -> Answer {
        self.chunk(&record(event))
    }

    /// Appends a chunk that need not be a record.
    pub(crate) fn chunk(mut self, bytes: &[u8]) -> Answer {
        self.pieces.push(chunk(bytes));
        self
    }

    /// Ends the stream as HTTP does, with the last chunk.
    pub(crate) fn end(mut self) -> Answer {
        self.pieces.push(b"0\r\n\r\n".to_vec());
        self.then(Then::Close)
    }

    /// Sets what follows.
    pub(crate) fn then(mut self, then: Then) -> Answer {
        self.then = then;
        self
    }
}

/// The answer of a Mesos without faults.
pub(crate) fn sound(call: &Call) -> Answer {
    match call.kind.as_str() {
        "SUBSCRIBE" => Answer::subscribed(call),
        "UPDATE_FRAMEWORK" => Answer::status("200 OK", "", ""),
        _ => Answer::status("202 Accepted", "", ""),
    }
}

/// The stream id of the subscription with this number.
pub(crate) fn stream_id(number: usize) -> String {
    format!("6af1ca2d-673c-4a5f-ac72-{number:012}")
}

/// The first event of a stream, with the framework's own id if the call has one.
pub(crate) fn subscribed(call: &Call, heartbeat_seconds: f64) -> Value {
    let own = call.body["framework_id"]["value"].as_str();
    json!({"type": "SUBSCRIBED", "subscribed": {
        "framework_id": {"value": own.unwrap_or("F-0001")},
        "heartbeat_interval_seconds": heartbeat_seconds,
        "master_info": {"id": "M-1", "ip": 16_777_343, "port": 5050, "version": "1.11.0",
            "capabilities": [{"type": "AGENT_UPDATE"}, {}]},
    }})
}

/// An event with an offer of an agent with this number of cores.
pub(crate) fn offers(offer: &str, agent: &str, cores: u32) -> Value {
    let scalar = |name: &str, value: u32| {
        json!({"name": name, "type": "SCALAR", "scalar": {"value": value},
            "allocation_info": {"role": "*"}})
    };
    json!({"type": "OFFERS", "offers": {"offers": [{
        "id": {"value": offer}, "framework_id": {"value": "F-0001"}, "agent_id": {"value": agent},
        "hostname": format!("host-{agent}"), "allocation_info": {"role": "*"},
        "resources": [scalar("cpus", cores), scalar("mem", 1024)],
    }]}})
}

/// A task's update. It is to be acknowledged if it has a `uuid`, which is base64.
pub(crate) fn update(task: &str, agent: &str, state: &str, uuid: Option<&str>) -> Value {
    let mut status = json!({"task_id": {"value": task}, "agent_id": {"value": agent}, "state": state,
        "source": "SOURCE_EXECUTOR"});
    if let Some(uuid) = uuid {
        status["uuid"] = json!(uuid);
    }
    json!({"type": "UPDATE", "update": {"status": status}})
}

/// An event in the RecordIO format.
pub(crate) fn record(event: &Value) -> Vec<u8> {
    framed(event.to_string().as_bytes())
}

/// A record in the RecordIO format.
pub(crate) fn framed(record: &[u8]) -> Vec<u8> {
    [format!("{}\n", record.len()).as_bytes(), record].concat()
}

/// An event in protobuf.
pub(crate) fn protobuf(event: &Value) -> Vec<u8> {
    messages::Event::deserialize(event).unwrap().encode_to_vec()
}

/// Bytes as an HTTP chunk.
pub(crate) fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}
