//! The encodings, compared with what a real master sent and accepted: `tests/support/mesos/captures` has the recordings
//! and says where they are from.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use offermill::cluster::mesos::Encoding;
use offermill::mesos_v1::codec::Codec;
use offermill::mesos_v1::messages::{Call, Event, call, event};
use offermill::mesos_v1::record_io::RecordReader;
use prost::Message as _;
use serde_json::Value;

const JSON: Codec = Codec::new(Encoding::Json);
const PROTOBUF: Codec = Codec::new(Encoding::Protobuf);

/// The files of a folder whose names end with `end`, in order.
fn files(folder: &str, end: &str) -> Vec<PathBuf> {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/mesos/captures");
    let entries = fs::read_dir(captures.join(folder)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(end));
    paths.sort();
    assert!(!paths.is_empty(), "{folder} has no {end}");
    paths
}

/// The records of a stream that ends between two records.
fn records(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = RecordReader::new(1 << 20);
    reader.push(&fs::read(path).unwrap());
    let records = std::iter::from_fn(|| reader.next()).map(Result::unwrap).collect();
    assert!(reader.is_between_records(), "{}", path.display());
    records
}

fn events(codec: Codec, folder: &str) -> Vec<Event> {
    let streams = files(folder, ".recordio");
    let records = streams.iter().flat_map(|path| records(path));
    records.map(|record| codec.decode(&record).unwrap()).collect()
}

/// Normalizes JSON: all numbers are of one kind, 32 becomes 32.0, and empty lists are left out.
fn normal(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().unwrap().into(),
        Value::Array(values) => values.into_iter().map(normal).collect(),
        Value::Object(fields) => {
            let said = fields.into_iter().filter(|(_, value)| *value != Value::Array(Vec::new()));
            said.map(|(name, value)| (name, normal(value))).collect()
        }
        other => other,
    }
}

/// Goal: nothing of a master's protobuf events is lost. Method: each record is decoded and encoded again, which must
/// give the same bytes.
#[test]
fn protobuf_events_are_read_whole() {
    for folder in ["main-protobuf", "extras-protobuf"] {
        for record in records(&files(folder, ".recordio")[0]) {
            let event = PROTOBUF.decode(&record).unwrap();
            assert_eq!(event.encode_to_vec(), record, "{event:?}");
        }
    }
}

/// Goal: nothing of a master's JSON events is lost. Method: each record is decoded and encoded again, which must give
/// equal JSON.
#[test]
fn json_events_are_read_whole() {
    for path in ["main-json", "extras-json", "faults-json"]
        .map(|folder| files(folder, ".recordio"))
        .concat()
    {
        for record in records(&path) {
            let event = JSON.decode(&record).unwrap();
            assert_ne!(event.r#type(), event::Type::Unknown, "{event:?}");
            let said: Value = serde_json::from_slice(&record).unwrap();
            assert_eq!(
                normal(serde_json::to_value(&event).unwrap()),
                normal(said),
                "{}",
                path.display()
            );
        }
    }
}

/// Goal: calls in protobuf are encoded like those that a master accepted. Method: each is decoded and encoded again,
/// which must give the same bytes; `incomplete` as well.
#[test]
fn protobuf_calls_are_written_as_recorded() {
    for path in ["main-protobuf", "extras-protobuf"].map(|folder| files(folder, ".pb")).concat() {
        let body = fs::read(&path).unwrap();
        let call = Call::decode(&body[..]).unwrap();
        assert_ne!(call.r#type(), call::Type::Unknown, "{call:?}");
        let written = PROTOBUF.encode(&call);
        assert_eq!(written, body, "{}: {call:?}", path.display());
    }
}

/// Goal: calls in JSON are encoded like those that a master accepted. Method: each is decoded and encoded again, which
/// must give equal JSON.
#[test]
fn json_calls_are_written_as_recorded() {
    for path in ["main-json", "extras-json"].map(|folder| files(folder, ".json")).concat() {
        let body: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let call: Call = serde_json::from_value(body.clone()).unwrap();
        let written: Value = serde_json::from_slice(&JSON.encode(&call)).unwrap();
        assert_eq!(normal(written), normal(body), "{}", path.display());
    }
}

/// Goal: both encodings give the same events. Method: the same session recorded in each; the events about tasks and
/// operations, in order, are the same, and so are the kinds of events. (How often offers arrive depends on timing.)
#[test]
fn encodings_agree_on_a_session() {
    for session in ["main", "extras"] {
        let [json, protobuf] = [(JSON, "json"), (PROTOBUF, "protobuf")]
            .map(|(codec, name)| events(codec, &format!("{session}-{name}")));
        assert_eq!(described(&json), described(&protobuf), "{session}");
        assert_eq!(kinds(&json), kinds(&protobuf), "{session}");
    }
}

/// The states of each task in a session, in order.
fn described(events: &[Event]) -> Vec<(String, Vec<String>)> {
    let mut tasks: Vec<(String, Vec<String>)> = Vec::new();
    for status in events.iter().filter_map(|event| Some(&event.update.as_ref()?.status)) {
        let line = format!(
            "{:?} {:?} {:?} {:?}",
            status.state(),
            status.source,
            status.reason,
            status.healthy
        );
        match tasks.iter_mut().find(|(task, _)| *task == status.task_id.value) {
            Some((_, lines)) => lines.push(line),
            None => tasks.push((status.task_id.value.clone(), vec![line])),
        }
    }
    tasks.sort();
    tasks
}

fn kinds(events: &[Event]) -> Vec<event::Type> {
    let mut kinds: Vec<event::Type> = events.iter().map(Event::r#type).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

/// Goal: the recordings contain each kind of event that a test of the cluster manager may need. Method: the kinds of
/// all sessions.
#[test]
fn recordings_have_most_kinds() {
    let all =
        ["main-json", "extras-json", "faults-json"].map(|folder| events(JSON, folder)).concat();
    let seen = kinds(&all);
    for kind in [
        event::Type::Subscribed,
        event::Type::Offers,
        event::Type::InverseOffers,
        event::Type::Rescind,
        event::Type::Update,
        event::Type::UpdateOperationStatus,
        event::Type::Failure,
        event::Type::Error,
        event::Type::Heartbeat,
    ] {
        assert!(seen.contains(&kind), "{kind:?}");
    }
}
