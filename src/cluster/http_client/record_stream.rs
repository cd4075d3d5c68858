//! A stream of records from a master or an agent, whose silence is noticed.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};

use super::http::{Connection, plain};
use crate::config::text::format_duration;
use crate::mesos_v1::record_io::{RecordError, RecordReader};

/// Mesos' default interval of heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The least rate at which a record that takes longer than the maximum silence must arrive, in bytes per second: a
/// peer that sends a byte now and then counts as silent.
const BYTES_PER_SECOND_MIN: u64 = 4096;
/// The maximum time beyond the maximum silence that a record may take, however many of its bytes arrive: no other
/// event is read in it. The longest record by default, 64 MiB, needs 75 KiB per second then.
const RECORD_TIME_MAX: Duration = Duration::from_secs(15 * 60);
/// When a record began to arrive, and how many bytes have arrived since.
#[derive(Clone, Copy, Debug)]
struct PartialRecord {
    began: Instant,
    bytes: u64,
}

impl PartialRecord {
    /// When the record must be complete, unless more of it arrives.
    fn deadline(self, silence_max: Duration) -> Instant {
        let at_least = Duration::from_secs(self.bytes / BYTES_PER_SECOND_MIN);
        self.began + silence_max + at_least.min(RECORD_TIME_MAX)
    }
}

/// What comes next in a stream.
pub(crate) enum StreamItem {
    Record(Vec<u8>),
    /// A record is skipped, with the reason.
    Skipped(String),
}

/// The records of one response.
pub(crate) struct RecordStream {
    /// Who sends, in a sentence.
    peer: &'static str,
    body: Incoming,
    records: RecordReader,
    /// When bytes arrived last, or, if that is later, when waiting for more began.
    last_received: Instant,
    /// When that waiting began, while it lasts.
    waits_since: Option<Instant>,
    /// The record that has begun to arrive, if there is one.
    partial: Option<PartialRecord>,
    /// The maximum time without a record from the master.
    silence_max: Duration,
    heartbeats_max: u32,
    /// The stream ends when the connection is dropped.
    _connection: Connection,
}

impl RecordStream {
    /// The records of a response that `peer`, such as `the master`, has sent over `connection`.
    pub(crate) fn new(
        peer: &'static str,
        body: Incoming,
        connection: Connection,
        record_bytes_max: usize,
        heartbeats_max: u32,
    ) -> RecordStream {
        RecordStream {
            peer,
            body,
            records: RecordReader::new(record_bytes_max),
            last_received: Instant::now(),
            waits_since: None,
            partial: None,
            silence_max: HEARTBEAT * heartbeats_max,
            heartbeats_max,
            _connection: connection,
        }
    }

    /// Sets the master's heartbeat interval, in seconds.
    pub(crate) fn expect_heartbeats(&mut self, interval: Option<f64>) {
        let interval = interval.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let is_plausible = |interval: &Duration| {
            (Duration::from_millis(10)..=Duration::from_secs(3600)).contains(interval)
        };
        let interval = interval.filter(is_plausible).unwrap_or(HEARTBEAT);
        self.silence_max = interval.saturating_mul(self.heartbeats_max);
    }

    /// Returns the next record, or that one is skipped. Fails with the reason for which there are no more.
    ///
    /// The master's silence and the time for a record are measured while this waits, and not between two calls:
    /// handling an event may take any time, and the connection is not read in it. A call that is dropped before it
    /// returns goes on with the next one.
    pub(crate) async fn next(&mut self) -> Result<StreamItem, String> {
        loop {
            match self.records.next() {
                Some(Ok(record)) => return Ok(StreamItem::Record(record)),
                Some(Err(error @ RecordError::Skipped { .. })) => {
                    return Ok(StreamItem::Skipped(error.to_string()));
                }
                None => {}
                Some(Err(error)) => {
                    return Err(format!("{} sent an invalid record: {error}", self.peer));
                }
            }
            let now = Instant::now();
            let waits_since = *self.waits_since.get_or_insert_with(|| {
                if let Some(partial) = &mut self.partial {
                    partial.began += now.saturating_duration_since(self.last_received);
                }
                self.last_received = now;
                now
            });
            let silent_at = waits_since + self.silence_max;
            let late_at = self.partial.map(|partial| partial.deadline(self.silence_max));
            let deadline = late_at.map_or(silent_at, |late_at| late_at.min(silent_at));
            let frame = timeout_at(deadline, self.body.frame()).await;
            self.waits_since = None;
            match frame.map_err(|_| self.silence(deadline == silent_at))? {
                Some(Ok(frame)) => self.receive(frame.data_ref().map_or(&[], |data| data)),
                Some(Err(error)) => return Err(plain(&error)),
                None => return Err(format!("{} closed it", self.peer)),
            }
        }
    }
}

impl RecordStream {
    /// Adds bytes to the records, and measures how a partial record arrives.
    fn receive(&mut self, data: &[u8]) {
        let now = Instant::now();
        self.last_received = now;
        let complete = self.records.completed();
        self.records.push(data);
        let fresh = PartialRecord { began: now, bytes: 0 };
        self.partial = match self.partial.filter(|_| self.records.completed() == complete) {
            _ if self.records.is_between_records() => None,
            // The bytes of a frame may belong to the record before, which doesn't matter.
            partial => {
                let PartialRecord { began, bytes } = partial.unwrap_or(fresh);
                Some(PartialRecord { began, bytes: bytes + data.len() as u64 })
            }
        };
    }

    /// Why the stream is given up: nothing arrived, or a record doesn't become complete.
    fn silence(&self, is_silent: bool) -> String {
        let silence = format_duration(self.silence_max);
        let heartbeats = self.heartbeats_max;
        match is_silent {
            true => {
                format!(
                    "no event or heartbeat arrived for {heartbeats} heartbeat intervals ({silence})"
                )
            }
            false => format!(
                "a record was not complete after {heartbeats} heartbeat intervals ({silence})"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: no peer holds up a subscription by sending a record slowly. Method: the time for a long record that
    /// arrives at the least rate, and for a short one.
    #[tokio::test]
    async fn a_record_has_a_deadline() {
        let began = Instant::now();
        let silence_max = Duration::from_secs(75);
        let time = |bytes| PartialRecord { began, bytes }.deadline(silence_max) - began;
        assert_eq!(time(0), silence_max);
        assert_eq!(time(40_960), silence_max + Duration::from_secs(10));
        assert_eq!(time(64 << 20), silence_max + RECORD_TIME_MAX);
    }
}
