//! Messages from a driver to a shuffle service: the bodies of requests and one-way messages.
//!
//! ```text
//! body         = type (1 byte), then by type:
//! 4 register   = size (4), application id (UTF-8), heartbeat timeout (8, in ms)
//! 5 heartbeat  = size (4), application id (UTF-8)
//! ```
//!
//! A registration is a request, and is answered with an empty response. A heartbeat is a one-way message; sent as a
//! request it would never be answered.

use std::time::Duration;

use super::frame::{Bytes, MalformedFrame};

const REGISTER: u8 = 4;
const HEARTBEAT: u8 = 5;

/// A message from a driver to a shuffle service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DriverMessage {
    /// Registers the application. Its files are to be deleted if no heartbeat arrives for the timeout.
    Register {
        /// The application's id, as its executors receive it.
        app_id: String,
        /// The heartbeat timeout, which is sent in milliseconds.
        heartbeat_timeout: Duration,
    },
    /// Reports that the application is still alive.
    Heartbeat {
        /// The application's id.
        app_id: String,
    },
}

impl DriverMessage {
    /// Returns the message's body in Spark's encoding.
    #[must_use]
    pub fn to_body(&self) -> Vec<u8> {
        let (kind, app_id, timeout) = match self {
            DriverMessage::Register { app_id, heartbeat_timeout } => {
                (REGISTER, app_id, Some(heartbeat_timeout))
            }
            DriverMessage::Heartbeat { app_id } => (HEARTBEAT, app_id, None),
        };
        // A frame with an id of this length can't be sent anyway.
        let size = u32::try_from(app_id.len()).unwrap_or(u32::MAX);
        let mut body = vec![kind];
        body.extend(size.to_be_bytes());
        body.extend(app_id.as_bytes());
        if let Some(timeout) = timeout {
            let millis = i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX);
            body.extend(millis.to_be_bytes());
        }
        body
    }

    /// Decodes a body.
    ///
    /// # Errors
    /// If the type is unknown, the body is truncated or too long, the id is not UTF-8, or the timeout is negative.
    pub fn read(body: &[u8]) -> Result<DriverMessage, MalformedFrame> {
        let mut rest = Bytes(body);
        let kind = rest.byte()?;
        if ![REGISTER, HEARTBEAT].contains(&kind) {
            return Err(MalformedFrame("a message that drivers don't send"));
        }
        let app_id = String::from_utf8(rest.with_size()?.to_vec());
        let app_id = app_id.map_err(|_| MalformedFrame("an application id that is not UTF-8"))?;
        let message = match kind {
            REGISTER => {
                let millis = i64::try_from(rest.long()?);
                let millis = millis.map_err(|_| MalformedFrame("a negative timeout"))?;
                let heartbeat_timeout = Duration::from_millis(millis.unsigned_abs());
                DriverMessage::Register { app_id, heartbeat_timeout }
            }
            _ => DriverMessage::Heartbeat { app_id },
        };
        rest.end()?;
        Ok(message)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::super::frame::{FrameReader, ShuffleMessage};
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u32> = hex.chars().map(|digit| digit.to_digit(16).unwrap()).collect();
        digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
    }

    /// Recorded from the client of Spark 3.5.9: the registration of the application `app-é-1` with a heartbeat timeout
    /// of 120 s, and a heartbeat.
    const REGISTRATION: &str = "000000000000002a036df159c562806c170000001504000000086170702dc3a92d31\
                                000000000001d4c0";
    const BEAT: &str = "000000000000001a090000000d05000000086170702dc3a92d31";

    /// Goal: the encoding is Spark's. Method: decodes what Spark's own client sent, and encodes the same messages.
    #[test]
    fn it_speaks_as_sparks_client_does() {
        let app_id = || "app-é-1".to_owned();
        let timeout = Duration::from_secs(120);
        let register =
            DriverMessage::Register { app_id: app_id(), heartbeat_timeout: timeout }.to_body();
        let beat = DriverMessage::Heartbeat { app_id: app_id() }.to_body();
        let number = 0x6df1_59c5_6280_6c17;
        let said = [
            ShuffleMessage::Request { number, body: register },
            ShuffleMessage::OneWay { body: beat },
        ];
        for (message, recorded) in said.iter().zip([REGISTRATION, BEAT].map(bytes)) {
            assert_eq!(message.to_frame().unwrap(), recorded);
            let mut reader = FrameReader::new();
            reader.push(&recorded);
            assert_eq!(reader.next_message().unwrap().as_ref(), Some(message));
        }
    }

    proptest! {
        /// Goal: decoding reverses encoding. Method: random messages.
        #[test]
        fn what_is_written_is_read(app_id in ".{0,30}", millis in prop::option::of(0..=i64::MAX)) {
            let message = match millis {
                Some(millis) => {
                    let heartbeat_timeout = Duration::from_millis(millis.unsigned_abs());
                    DriverMessage::Register { app_id, heartbeat_timeout }
                }
                None => DriverMessage::Heartbeat { app_id },
            };
            prop_assert_eq!(DriverMessage::read(&message.to_body()).unwrap(), message);
        }

        /// Goal: decoding never panics, and a decoded message encodes to the same bytes. Method: random bytes that
        /// begin like a message.
        #[test]
        fn any_bytes_are_borne(
            kind in prop_oneof![4..6_u8, any::<u8>()],
            size in prop_oneof![0..12_u32, any::<u32>()],
            rest in prop::collection::vec(any::<u8>(), 0..30),
        ) {
            let body = [&[kind][..], &size.to_be_bytes(), &rest].concat();
            if let Ok(message) = DriverMessage::read(&body) {
                prop_assert_eq!(message.to_body(), body);
            }
        }
    }
}
