//! Reads the lines of a client, with a limit on their length.

use std::io::{self, BufRead, ErrorKind};

/// How much of a line that is too long is kept, in bytes: enough for a client's name of its command.
const BEGINNING_BYTES: usize = 128;

/// A line of a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Text without its line feed.
    Text(String),
    /// A line longer than `bytes_max`, of which only the beginning was kept.
    TooLong { beginning: Vec<u8>, bytes_max: usize },
    /// A line that isn't UTF-8.
    NotUtf8(Vec<u8>),
}

impl Line {
    /// The text.
    ///
    /// # Errors
    /// With a sentence if the line holds none.
    pub(super) fn text(self) -> Result<String, String> {
        match self {
            Line::Text(text) => Ok(text),
            Line::TooLong { bytes_max, .. } => {
                Err(format!("the line is too long; expected at most {bytes_max} bytes"))
            }
            Line::NotUtf8(_) => Err("the line is not UTF-8".to_owned()),
        }
    }
}

/// The next line, of at most `bytes_max` bytes without its line feed; `None` at the end. The last line needs no line
/// feed.
///
/// # Errors
/// If the reader fails.
pub(super) fn next(reader: &mut impl BufRead, bytes_max: usize) -> io::Result<Option<Line>> {
    let mut bytes = Vec::new();
    let mut length = 0_usize;
    loop {
        let piece = match reader.fill_buf() {
            Ok(piece) => piece,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if piece.is_empty() && length == 0 {
            return Ok(None);
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let part = piece.get(..end.unwrap_or(piece.len())).unwrap_or_default();
        length = length.saturating_add(part.len());
        if length <= bytes_max {
            bytes.extend_from_slice(part);
        } else {
            let missing = BEGINNING_BYTES.saturating_sub(bytes.len());
            bytes.extend_from_slice(part.get(..missing).unwrap_or(part));
            bytes.truncate(BEGINNING_BYTES);
        }
        let is_whole = end.is_some();
        let consumed = part.len() + usize::from(is_whole);
        let is_over = is_whole || piece.is_empty();
        reader.consume(consumed);
        if is_over {
            break;
        }
    }
    if length > bytes_max {
        return Ok(Some(Line::TooLong { beginning: bytes, bytes_max }));
    }
    let text = String::from_utf8(bytes);
    Ok(Some(text.map_or_else(|error| Line::NotUtf8(error.into_bytes()), Line::Text)))
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    const BYTES_MAX: usize = 4_000;

    fn all(input: &[u8], buffer: usize) -> Vec<Line> {
        let mut reader = BufReader::with_capacity(buffer, input);
        std::iter::from_fn(|| next(&mut reader, BYTES_MAX).unwrap()).collect()
    }

    /// Goal: the lines don't depend on the pieces in which they arrive. Method: a text with all kinds of lines, in
    /// pieces of several sizes.
    #[test]
    fn lines_come_whole_whatever_their_pieces() {
        let long = "x".repeat(BYTES_MAX + 1);
        let longest = &long[1..];
        let mut input = format!("one\n\ntwo\r\n{long}\n{longest}\n").into_bytes();
        input.extend(b"\xff\xfe\nlast");
        let text = |text: &str| Line::Text(text.to_owned());
        let expected = [
            text("one"),
            text(""),
            text("two\r"),
            Line::TooLong { beginning: vec![b'x'; BEGINNING_BYTES], bytes_max: BYTES_MAX },
            text(longest),
            Line::NotUtf8(vec![0xff, 0xfe]),
            text("last"),
        ];
        for buffer in [1, 2, 3, 7, 1024, BYTES_MAX * 4] {
            assert_eq!(all(&input, buffer), expected, "{buffer}");
        }
        assert_eq!(all(b"", 1), []);
        assert_eq!(all(b"\n", 1), [text("")]);
    }
}
