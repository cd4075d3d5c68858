//! Frames of the connection between a cluster and a host: a length of four bytes, the most significant first, and as
//! many bytes. Texts in them have a length as well. Nothing is read into memory that is longer than allowed.

use std::io::{self, Read, Write};

/// Why bytes are no message.
pub(super) const NONSENSE: &str = "a message that makes no sense";

/// Writes a frame, in one piece.
///
/// # Errors
/// If it is longer than `most`, or can't be written.
pub(super) fn write_frame(output: &mut dyn Write, content: &[u8], most: usize) -> io::Result<()> {
    let length = u32::try_from(content.len()).ok().filter(|_| content.len() <= most);
    let length = length.ok_or_else(|| invalid(&format!("a message of over {most} bytes")))?;
    output.write_all(&[&length.to_be_bytes()[..], content].concat())
}

/// Reads a frame. `None` at the end of the stream, if that is between frames.
///
/// # Errors
/// If it is longer than `most`, if the stream ends within it, or can't be read.
pub(super) fn read_frame(input: &mut dyn Read, most: usize) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    let mut read = 0;
    while read < length.len() {
        match input.read(&mut length[read..]) {
            Ok(0) if read == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > most {
        return Err(invalid(&format!("a message of {length} bytes, of which {most} are allowed")));
    }
    let mut content = vec![0; length];
    input.read_exact(&mut content)?;
    Ok(Some(content))
}

pub(super) fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Adds a text to a message.
pub(super) fn put_text(message: &mut Vec<u8>, text: &str) {
    put_number(message, text.len() as u64);
    message.extend_from_slice(text.as_bytes());
}

/// Adds a number to a message.
pub(super) fn put_number(message: &mut Vec<u8>, number: u64) {
    message.extend_from_slice(&number.to_be_bytes());
}

/// What is left of a message that is being read.
#[derive(Debug)]
pub(super) struct MessageReader<'a>(pub(super) &'a [u8]);

impl<'a> MessageReader<'a> {
    fn take(&mut self, bytes: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or_else(|| invalid(NONSENSE))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> io::Result<u8> {
        self.take(1).map(|bytes| bytes.first().copied().unwrap_or_default())
    }

    pub(super) fn number(&mut self) -> io::Result<u64> {
        let bytes = self.take(8)?.try_into().map_err(|_| invalid(NONSENSE))?;
        Ok(u64::from_be_bytes(bytes))
    }

    pub(super) fn text(&mut self) -> io::Result<String> {
        let bytes = usize::try_from(self.number()?).map_err(|_| invalid(NONSENSE))?;
        let text = str::from_utf8(self.take(bytes)?).map_err(|_| invalid(NONSENSE))?;
        Ok(text.to_owned())
    }

    /// A list of texts. Each has a length in the message, so it can't be long if the message isn't.
    pub(super) fn texts(&mut self) -> io::Result<Vec<String>> {
        (0..self.number()?).map(|_| self.text()).collect()
    }

    /// Fails if something is left.
    pub(super) fn end(self) -> io::Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(invalid(NONSENSE)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: frames come back as they were written; longer ones, and those that break off, are refused, and take no
    /// memory. Method: frames around the limit, and streams that end within a frame.
    #[test]
    fn frames_are_bounded() {
        let mut stream = Vec::new();
        write_frame(&mut stream, b"abc", 3).unwrap();
        write_frame(&mut stream, b"", 3).unwrap();
        let mut input = &stream[..];
        assert_eq!(read_frame(&mut input, 3).unwrap().as_deref(), Some(&b"abc"[..]));
        assert_eq!(read_frame(&mut input, 3).unwrap().as_deref(), Some(&b""[..]));
        assert_eq!(read_frame(&mut input, 3).unwrap(), None);
        assert!(write_frame(&mut Vec::new(), b"abcd", 3).is_err());
        let why = read_frame(&mut &stream[..], 2).unwrap_err();
        assert_eq!(why.to_string(), "a message of 3 bytes, of which 2 are allowed");
        assert!(read_frame(&mut &[255, 255, 255, 255][..], 100).is_err());
        for cut in 1..stream.len() - 4 {
            assert!(read_frame(&mut &stream[..cut], 3).is_err(), "{cut}");
        }
    }
}
