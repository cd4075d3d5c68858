//! A master's event stream. For every split into pieces, its records and errors equal those that a naive reader finds
//! in the whole stream; each record decodes to an event or is rejected, and a decoded event survives a round trip.
//!
//! Input: a line of numbers, which are the maximum length of a record and the length of each piece (the last one
//! applies to all further pieces); after it the stream.

#![cfg_attr(fuzzing, no_main)]

use offermill::cluster::mesos::Encoding;
use offermill::mesos_v1::codec::Codec;
use offermill::mesos_v1::messages::Event;
use offermill::mesos_v1::record_io::{RecordError, RecordReader, SKIPPED_BYTES_MAX};
use prost::Message as _;

fn check(data: &[u8]) {
    let Some(end) = data.iter().position(|byte| *byte == b'\n') else { return };
    let Ok(line) = std::str::from_utf8(&data[..end]) else { return };
    let numbers: Result<Vec<u16>, _> = line.split(' ').map(str::parse).collect();
    let Ok(numbers) = numbers else { return };
    let numbers: Vec<usize> = numbers.into_iter().map(usize::from).collect();
    let Some((&record_bytes_max, pieces)) = numbers.split_first() else { return };
    let stream = &data[end + 1..];

    let (records, ending) = read_naively(stream, record_bytes_max);
    let mut reader = RecordReader::new(record_bytes_max);
    let (mut found, mut mistake) = (Vec::new(), None);
    let mut rest = stream;
    let mut lengths = pieces.iter().copied();
    let mut length = usize::MAX;
    while !rest.is_empty() {
        length = lengths.next().unwrap_or(length.max(1));
        let (piece, others) = rest.split_at(length.min(rest.len()));
        rest = others;
        reader.push(piece);
        while let Some(next) = reader.next() {
            assert_eq!(mistake, None, "something comes after a mistake");
            match next {
                Ok(record) => found.push(Some(record)),
                Err(error @ RecordError::Skipped { .. }) => {
                    short(&error.to_string());
                    found.push(None);
                }
                Err(error) => mistake = Some(error),
            }
        }
    }
    assert!(found.iter().map(Option::as_deref).eq(records));
    assert_eq!(
        (mistake.map(kind), reader.is_between_records()),
        (ending.mistake, ending.between_records)
    );
    if let Some(error) = mistake {
        short(&error.to_string());
    }
    found.iter().flatten().for_each(|record| events(record));
}

/// The end of a stream.
struct Ending {
    mistake: Option<Kind>,
    between_records: bool,
}

/// The kinds of errors that the naive reader distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    NoLength,
    ManyDigits,
    Empty,
    Long,
}

fn kind(error: RecordError) -> Kind {
    match error {
        RecordError::NoLength { .. } => Kind::NoLength,
        RecordError::ManyDigits => Kind::ManyDigits,
        RecordError::Empty => Kind::Empty,
        _ => Kind::Long,
    }
}

/// Reads the records of a complete stream, `None` for those that are skipped, and its end.
fn read_naively(stream: &[u8], record_bytes_max: usize) -> (Vec<Option<&[u8]>>, Ending) {
    let mut records = Vec::new();
    let mut rest = stream;
    let ending = |mistake, between_records| Ending { mistake, between_records };
    loop {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 20 {
            return (records, ending(Some(Kind::ManyDigits), false));
        }
        match rest.get(digits) {
            None => return (records, ending(None, digits == 0)),
            Some(b'\n') if digits > 0 => {}
            Some(_) => return (records, ending(Some(Kind::NoLength), false)),
        }
        let number = std::str::from_utf8(&rest[..digits]).expect("digits");
        let length: u128 = number.parse().expect("a number");
        if length == 0 {
            return (records, ending(Some(Kind::Empty), false));
        }
        let is_skipped = length > record_bytes_max as u128;
        if is_skipped && length > u128::from(SKIPPED_BYTES_MAX) {
            return (records, ending(Some(Kind::Long), false));
        }
        if is_skipped {
            records.push(None);
        }
        rest = &rest[digits + 1..];
        let Some(record) = rest.get(..length as usize) else {
            return (records, ending(None, false));
        };
        if !is_skipped {
            records.push(Some(record));
        }
        rest = &rest[length as usize..];
    }
}

/// Decodes a record as an event in both encodings.
fn events(record: &[u8]) {
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        match Codec::new(encoding).decode(record) {
            Ok(event) => reads_back(&event, encoding),
            Err(error) => short(&error.to_string()),
        }
    }
}

/// Checks that an encoded event decodes to the same event. Compares bytes, because a number may be NaN. The nesting
/// depth limit of JSON is a little higher than that of protobuf.
fn reads_back(event: &Event, from: Encoding) {
    let written = event.encode_to_vec();
    match Codec::new(Encoding::Protobuf).decode(&written) {
        Ok(again) => assert_eq!(again.encode_to_vec(), written),
        Err(error) => assert_eq!(from, Encoding::Json, "{error}"),
    }
}

fn short(text: &str) {
    assert!(text.chars().count() <= 250 && !text.contains(char::is_control), "{text:?}");
}

offermill_fuzz::harness!(check);
