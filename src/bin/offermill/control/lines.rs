//! Reads the lines of a client, with a limit on their length.

use std::io::{self, BufRead, ErrorKind};

/// The longest line, in bytes without its line feed: enough for the names of a few thousand executors.
pub(super) const LINE_BYTES_MAX: usize = 64 * 1024;

/// A line of a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Text without its line feed.
    Text(String),
    /// A line longer than [`LINE_BYTES_MAX`], which was discarded.
    TooLong,
    /// A line that isn't UTF-8.
    NotUtf8,
}

/// The next line; `None` at the end. The last line needs no line feed.
///
/// # Errors
/// If the reader fails.
pub(super) fn next(reader: &mut impl BufRead) -> io::Result<Option<Line>> {
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
        if length <= LINE_BYTES_MAX {
            bytes.extend_from_slice(part);
        } else {
            bytes = Vec::new();
        }
        let is_whole = end.is_some();
        let consumed = part.len() + usize::from(is_whole);
        let is_over = is_whole || piece.is_empty();
        reader.consume(consumed);
        if is_over {
            break;
        }
    }
    if length > LINE_BYTES_MAX {
        return Ok(Some(Line::TooLong));
    }
    Ok(Some(String::from_utf8(bytes).map_or(Line::NotUtf8, Line::Text)))
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn all(input: &[u8], buffer: usize) -> Vec<Line> {
        let mut reader = BufReader::with_capacity(buffer, input);
        std::iter::from_fn(|| next(&mut reader).unwrap()).collect()
    }

    /// Goal: the lines don't depend on the pieces in which they arrive. Method: a text with all kinds of lines, in
    /// pieces of several sizes.
    #[test]
    fn lines_come_whole_whatever_their_pieces() {
        let long = "x".repeat(LINE_BYTES_MAX + 1);
        let longest = &long[1..];
        let mut input = format!("one\n\ntwo\r\n{long}\n{longest}\n").into_bytes();
        input.extend(b"\xff\xfe\nlast");
        let text = |text: &str| Line::Text(text.to_owned());
        let expected = [
            text("one"),
            text(""),
            text("two\r"),
            Line::TooLong,
            text(longest),
            Line::NotUtf8,
            text("last"),
        ];
        for buffer in [1, 2, 3, 7, 4096, LINE_BYTES_MAX * 4] {
            assert_eq!(all(&input, buffer), expected, "{buffer}");
        }
        assert_eq!(all(b"", 1), []);
        assert_eq!(all(b"\n", 1), [text("")]);
    }
}
