//! Lines of a client, none longer than there is room for.

use std::io::{self, BufRead, ErrorKind};

/// The longest line, in bytes without its end. Room for a few thousand executors' names.
pub(super) const LINE_BYTES_MAX: usize = 64 * 1024;

/// A line, as far as it can be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Its text, without its end.
    Text(String),
    /// It was longer than [`LINE_BYTES_MAX`]. Nothing of it was kept.
    TooLong,
    /// It isn't UTF-8.
    NoText,
}

/// The next line; `None` at the end. What comes last counts even without a line feed.
///
/// # Errors
/// When there is nothing to be read any more.
pub(super) fn next(reader: &mut impl BufRead) -> io::Result<Option<Line>> {
    let (mut bytes, mut length) = (Vec::new(), 0_usize);
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
        let (used, is_whole) = (part.len() + usize::from(end.is_some()), end.is_some());
        // An empty line has a length, too: its end.
        let is_over = is_whole || piece.is_empty();
        reader.consume(used);
        if is_over {
            break;
        }
    }
    if length > LINE_BYTES_MAX {
        return Ok(Some(Line::TooLong));
    }
    Ok(Some(String::from_utf8(bytes).map_or(Line::NoText, Line::Text)))
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn all(input: &[u8], buffer: usize) -> Vec<Line> {
        let mut reader = BufReader::with_capacity(buffer, input);
        std::iter::from_fn(|| next(&mut reader).unwrap()).collect()
    }

    /// Goal: what lines there are doesn't depend on the pieces in which they come. Method: a text with all kinds of
    /// lines, in pieces of all sizes.
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
            Line::NoText,
            text("last"),
        ];
        for buffer in [1, 2, 3, 7, 4096, LINE_BYTES_MAX * 4] {
            assert_eq!(all(&input, buffer), expected, "{buffer}");
        }
        assert_eq!(all(b"", 1), []);
        assert_eq!(all(b"\n", 1), [text("")]);
    }
}
