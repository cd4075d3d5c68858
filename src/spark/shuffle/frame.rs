//! Spark's transport protocol: messages in length-prefixed frames.
//!
//! ```text
//! frame        = length (8 bytes, its own included), type (1 byte), then by type:
//! 3 request    = number (8), size (4), body       requires an answer with the same number
//! 4 response   = number (8), size (4), body
//! 5 failure    = number (8), size (4), text       size in bytes, UTF-8
//! 9 one way    = size (4), body                   has no answer
//! ```
//!
//! Numbers are big-endian. Spark has ten more types; drivers need none of them.

use std::fmt;

/// The maximum length of a frame, in bytes, for reading and writing. The frames used here are shorter than 100 bytes,
/// except a failure, which contains a stack trace.
pub const FRAME_MAX: usize = 1 << 20;

const LENGTH: usize = 8;
const REQUEST: u8 = 3;
const RESPONSE: u8 = 4;
const FAILURE: u8 = 5;
const ONE_WAY: u8 = 9;

/// A message of Spark's transport protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShuffleMessage {
    /// A request, which requires an answer.
    Request {
        /// The request's number, chosen by the sender. The answer repeats it.
        number: u64,
        /// The encoded request.
        body: Vec<u8>,
    },
    /// The answer to a request that succeeded.
    Response {
        /// The request's number.
        number: u64,
        /// The encoded answer.
        body: Vec<u8>,
    },
    /// The answer to a request that failed.
    Failure {
        /// The request's number.
        number: u64,
        /// The reason, in the words of the other side: usually a stack trace.
        text: String,
    },
    /// A message without an answer.
    OneWay {
        /// The encoded message.
        body: Vec<u8>,
    },
}

/// The error for bytes that are not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedFrame(pub(super) &'static str);

impl fmt::Display for MalformedFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for MalformedFrame {}

impl ShuffleMessage {
    /// Encodes the message as a whole frame.
    ///
    /// # Errors
    /// If the frame would be longer than [`FRAME_MAX`].
    pub fn to_frame(&self) -> Result<Vec<u8>, MalformedFrame> {
        let (kind, number, content) = match self {
            ShuffleMessage::Request { number, body } => (REQUEST, Some(number), body.as_slice()),
            ShuffleMessage::Response { number, body } => (RESPONSE, Some(number), body.as_slice()),
            ShuffleMessage::Failure { number, text } => (FAILURE, Some(number), text.as_bytes()),
            ShuffleMessage::OneWay { body } => (ONE_WAY, None, body.as_slice()),
        };
        let head = LENGTH + 1 + number.map_or(0, |_| 8) + 4;
        let length = head.saturating_add(content.len());
        let size = u32::try_from(content.len()).ok().filter(|_| length <= FRAME_MAX);
        let size = size.ok_or(MalformedFrame("a frame that is too long"))?;
        let mut frame = Vec::with_capacity(length);
        frame.extend((length as u64).to_be_bytes());
        frame.push(kind);
        frame.extend(number.iter().flat_map(|number| number.to_be_bytes()));
        frame.extend(size.to_be_bytes());
        frame.extend(content);
        Ok(frame)
    }

    /// Decodes the content of a frame after its length.
    fn read(content: &[u8]) -> Result<ShuffleMessage, MalformedFrame> {
        let mut rest = Bytes(content);
        let kind = rest.byte()?;
        match kind {
            REQUEST => {
                Ok(ShuffleMessage::Request { number: rest.long()?, body: rest.sized()?.to_vec() })
            }
            RESPONSE => {
                Ok(ShuffleMessage::Response { number: rest.long()?, body: rest.sized()?.to_vec() })
            }
            FAILURE => {
                let (number, text) = (rest.long()?, rest.sized()?);
                Ok(ShuffleMessage::Failure {
                    number,
                    text: String::from_utf8_lossy(text).into_owned(),
                })
            }
            ONE_WAY => Ok(ShuffleMessage::OneWay { body: rest.sized()?.to_vec() }),
            _ => Err(MalformedFrame("a message of an unexpected type")),
        }
    }
}

/// A cursor over bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], MalformedFrame> {
        let (taken, rest) =
            self.0.split_at_checked(count).ok_or(MalformedFrame("a truncated message"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, MalformedFrame> {
        self.take(1).map(|taken| taken.iter().fold(0, |_, byte| *byte))
    }

    pub(super) fn long(&mut self) -> Result<u64, MalformedFrame> {
        Ok(self.take(8)?.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    /// Reads a size and that number of bytes.
    pub(super) fn with_size(&mut self) -> Result<&'a [u8], MalformedFrame> {
        let size = self.take(4)?.iter().fold(0, |sum: u32, byte| sum << 8 | u32::from(*byte));
        self.take(usize::try_from(size).unwrap_or(usize::MAX))
    }

    /// Reads a size and that number of bytes, which must be the last ones.
    fn sized(&mut self) -> Result<&'a [u8], MalformedFrame> {
        let taken = self.with_size()?;
        self.end()?;
        Ok(taken)
    }

    /// Fails if bytes are left.
    pub(super) fn end(self) -> Result<(), MalformedFrame> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(MalformedFrame("a message with trailing bytes"))
        }
    }
}

/// Decodes messages from a byte stream that arrives in pieces. It buffers bytes until they are decoded: at most
/// [`FRAME_MAX`] and the last piece, if messages are read after each piece.
///
/// After an error nothing more is decoded, because the start of the next frame is unknown.
#[derive(Debug, Default)]
pub struct FrameReader {
    held: Vec<u8>,
    has_failed: bool,
}

impl FrameReader {
    /// Creates an empty reader.
    #[must_use]
    pub fn new() -> FrameReader {
        FrameReader::default()
    }

    /// Appends the next piece of the stream. Has no effect after an error.
    pub fn push(&mut self, piece: &[u8]) {
        if !self.has_failed {
            self.held.extend(piece);
        }
    }

    /// Returns the next message, or `None` if it is not complete yet.
    ///
    /// # Errors
    /// If the bytes are not a valid message. All later calls fail as well.
    pub fn next_message(&mut self) -> Result<Option<ShuffleMessage>, MalformedFrame> {
        if self.has_failed {
            return Err(MalformedFrame("bytes after a malformed frame"));
        }
        let read = self.read();
        if read.is_err() {
            *self = FrameReader { held: Vec::new(), has_failed: true };
        }
        read
    }

    fn read(&mut self) -> Result<Option<ShuffleMessage>, MalformedFrame> {
        let Ok(length) = Bytes(&self.held).long() else { return Ok(None) };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length <= LENGTH || length > FRAME_MAX {
            return Err(MalformedFrame("a frame with an invalid length"));
        }
        let Some(content) = self.held.get(LENGTH..length) else { return Ok(None) };
        let message = ShuffleMessage::read(content)?;
        self.held.drain(..length);
        Ok(Some(message))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn messages() -> impl Strategy<Value = ShuffleMessage> {
        let body = || prop::collection::vec(any::<u8>(), 0..40);
        prop_oneof![
            (any::<u64>(), body())
                .prop_map(|(number, body)| ShuffleMessage::Request { number, body }),
            (any::<u64>(), body())
                .prop_map(|(number, body)| ShuffleMessage::Response { number, body }),
            (any::<u64>(), ".{0,20}")
                .prop_map(|(number, text)| ShuffleMessage::Failure { number, text }),
            body().prop_map(|body| ShuffleMessage::OneWay { body }),
        ]
    }

    proptest! {
        /// Goal: decoding reverses encoding, for any split into pieces. Method: random messages in one byte stream,
        /// split at random places; each byte is pushed once.
        #[test]
        fn what_is_written_is_read(
            all in prop::collection::vec(messages(), 1..6),
            sizes in prop::collection::vec(1..30_usize, 1..10),
        ) {
            let bytes: Vec<u8> = all.iter().flat_map(|one| one.to_frame().unwrap()).collect();
            let (mut reader, mut read, mut rest) = (FrameReader::new(), Vec::new(), &bytes[..]);
            for size in sizes.into_iter().cycle() {
                let (piece, later) = rest.split_at(size.min(rest.len()));
                reader.push(piece);
                while let Some(message) = reader.next_message().unwrap() {
                    read.push(message);
                }
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(read, all);
            prop_assert!(reader.held.is_empty());
        }

        /// Goal: decoding never panics, and a decoded message encodes to the same bytes. Method: random contents in
        /// frames of the right length, and random bytes.
        #[test]
        fn any_bytes_are_borne(
            content in prop::collection::vec(any::<u8>(), 1..60),
            kind in prop_oneof![3..6_u8, Just(9), any::<u8>()],
            is_framed in any::<bool>(),
        ) {
            let length = (LENGTH + 1 + content.len()) as u64;
            let mut bytes = [&length.to_be_bytes()[..], &[kind], &content].concat();
            if !is_framed {
                bytes = content;
            }
            let mut reader = FrameReader::new();
            reader.push(&bytes);
            match reader.next_message() {
                Ok(Some(ShuffleMessage::Failure { .. })) | Ok(None) => {}
                Ok(Some(message)) => prop_assert_eq!(message.to_frame().unwrap(), bytes),
                Err(_) => prop_assert!(reader.next_message().is_err() && reader.held.is_empty()),
            }
        }
    }

    /// Goal: no length makes the reader wait for more than the longest frame. Method: lengths at the bounds.
    #[test]
    fn lengths_are_bounded() {
        for (length, is_fine) in [
            (0, false),
            (8, false),
            (9, true),
            (FRAME_MAX as u64, true),
            (FRAME_MAX as u64 + 1, false),
            (u64::MAX, false),
        ] {
            let mut reader = FrameReader::new();
            reader.push(&length.to_be_bytes());
            assert_eq!(reader.next_message().is_ok(), is_fine, "{length}");
        }
        let long = ShuffleMessage::OneWay { body: vec![0; FRAME_MAX] };
        assert!(long.to_frame().is_err());
    }
}
