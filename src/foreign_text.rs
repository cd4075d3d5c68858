//! Text that other machines choose: host names, ids and messages. Its length is bounded where it enters, and it is made
//! printable where it is shown to people.
//!
//! The bounds are in [`limits`]. The engine applies them to the events of every cluster manager: messages are
//! [cut]. An id or a host name means another thing if it is cut, so an event or an offer with one that is too long
//! is refused instead.

use std::fmt::{self, Write as _};

use crate::limits::{self, FOREIGN_ID_BYTES_MAX};

/// Displays text with control characters, line breaks, and characters that are invisible or change the direction of
/// text escaped, as in `\u{1b}[2J`. Quotation marks and backslashes are left as they are, so printable text is shown
/// unchanged, and text that was escaped once isn't escaped again.
///
/// ```
/// use offermill::foreign_text::Printable;
///
/// assert_eq!(Printable("agent-1").to_string(), "agent-1");
/// assert_eq!(Printable("\x1b[2Ja\nb\u{202e}").to_string(), "\\u{1b}[2Ja\\nb\\u{202e}");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Printable<'a>(pub &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return f.write_str(self.0);
        }
        for c in self.0.chars() {
            match c {
                _ if is_shown(c) => f.write_char(c)?,
                _ if BLANK_LETTERS.contains(&c) => write!(f, "{}", c.escape_unicode())?,
                _ => write!(f, "{}", c.escape_debug())?,
            }
        }
        Ok(())
    }
}

/// Letters and symbols that look like a blank, although Unicode doesn't count them among the invisible characters: the
/// fillers of Hangul, and the empty Braille pattern.
const BLANK_LETTERS: [char; 5] = ['\u{115f}', '\u{1160}', '\u{3164}', '\u{ffa0}', '\u{2800}'];

/// Whether a terminal shows this character, and shows it where it is: it isn't a control character, a line break, a
/// blank other than the space, invisible, or one that changes the direction of text or the character before it.
///
/// ```
/// use offermill::foreign_text::is_shown;
///
/// assert!(['a', ' ', '"', 'é', '中'].into_iter().all(is_shown));
/// assert!(!['\n', '\u{9b}', '\u{2028}', '\u{202e}', '\u{3164}'].into_iter().any(is_shown));
/// ```
#[must_use]
pub fn is_shown(c: char) -> bool {
    match c {
        '\'' | '"' | '\\' => true,
        _ => c.escape_debug().len() == 1 && !BLANK_LETTERS.contains(&c),
    }
}

/// Cuts a text that is longer than `bytes_max` bytes, and marks the cut: `the beginning… (8388608 bytes)`. The result
/// has at most `bytes_max` bytes, or those of the mark, and keeps no more memory than that.
///
/// ```
/// use offermill::foreign_text::cut;
///
/// assert_eq!(cut("short".to_owned(), 20), "short");
/// assert_eq!(cut("x".repeat(100), 20), "xxxxx… (100 bytes)");
/// ```
#[must_use]
pub fn cut(text: String, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    let mark = format!("… ({} bytes)", text.len());
    let mut end = bytes_max.saturating_sub(mark.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut kept = String::with_capacity(end + mark.len());
    kept.push_str(text.get(..end).unwrap_or_default());
    kept.push_str(&mark);
    kept
}

/// Converts bytes that are a text if they are UTF-8, with U+FFFD in place of what is not, and [cuts](cut) it. Only the
/// bytes that are kept are converted.
#[cfg(feature = "mesos")]
pub(crate) fn cut_lossy(bytes: &[u8], bytes_max: usize) -> String {
    if bytes.len() <= bytes_max {
        return cut(String::from_utf8_lossy(bytes).into_owned(), bytes_max);
    }
    let mark = format!("… ({} bytes)", bytes.len());
    let room = bytes_max.saturating_sub(mark.len());
    let kept = bytes.get(..room).unwrap_or_default();
    let kept = match std::str::from_utf8(kept) {
        // The last character was cut.
        Err(error) if error.error_len().is_none() => kept.get(..error.valid_up_to()),
        _ => Some(kept),
    };
    let mut text = String::from_utf8_lossy(kept.unwrap_or_default()).into_owned();
    let mut end = room.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.push_str(&mark);
    text
}

/// Cuts a message to [`MESSAGE_BYTES_MAX`](limits::MESSAGE_BYTES_MAX).
pub(crate) fn cut_message(message: String) -> String {
    cut(message, limits::MESSAGE_BYTES_MAX)
}

/// Why `id` can't be an id of a cluster: it is too long, or contains white space or control characters, which would
/// break the commands and files that it is put into. `what` names it.
pub(crate) fn id_problem(what: &str, id: &str) -> Option<String> {
    if let Some(problem) = length_problem(what, id, FOREIGN_ID_BYTES_MAX) {
        return Some(problem);
    }
    let is_odd = |c: char| c.is_control() || c.is_whitespace();
    id.contains(is_odd).then(|| format!("{what} contains white space or control characters"))
}

/// Why a text is too long, with `what` as its name.
pub(crate) fn length_problem(what: &str, text: &str, bytes_max: usize) -> Option<String> {
    let length = text.len();
    (length > bytes_max)
        .then(|| format!("{what} has {length} bytes, but at most {bytes_max} are allowed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Goal: no character of printable text controls a terminal, and printable text stays as it is. Method: random
        /// text with many control characters; escape it twice.
        #[test]
        fn printable_text_has_no_control_characters(text in "(\\PC|\\pC|[\\x00-\\xa0\u{3164}\u{2800}]){0,40}") {
            let shown = Printable(&text).to_string();
            prop_assert!(shown.chars().all(is_shown), "{shown:?}");
            prop_assert!(!shown.chars().any(char::is_control), "{shown:?}");
            prop_assert_eq!(Printable(&shown).to_string(), shown);
        }

        /// Goal: a text that was cut is bounded, and begins as the whole text does. Method: random texts and bounds.
        #[test]
        fn cut_texts_are_bounded(text in ".{0,80}", bytes_max in 0_usize..100) {
            let mark = format!("… ({} bytes)", text.len());
            let kept = cut(text.clone(), bytes_max);
            if text.len() <= bytes_max {
                prop_assert_eq!(kept, text);
            } else {
                prop_assert!(kept.len() <= bytes_max.max(mark.len()));
                prop_assert!(text.starts_with(kept.strip_suffix(&mark).unwrap_or("\0")));
            }
        }
    }

    #[cfg(feature = "mesos")]
    proptest! {
        /// Goal: bytes that are text are cut like that text, and others are bounded, too. Method: random texts and
        /// bytes.
        #[test]
        fn bytes_are_cut_like_texts(
            text in ".{0,80}",
            bytes in prop::collection::vec(any::<u8>(), 0..80),
            bytes_max in 0_usize..100,
        ) {
            prop_assert_eq!(cut_lossy(text.as_bytes(), bytes_max), cut(text, bytes_max));
            let longest_mark = "… (240 bytes)".len();
            prop_assert!(cut_lossy(&bytes, bytes_max).len() <= bytes_max.max(longest_mark));
        }
    }

    /// Goal: the memory of a long text is freed. Method: the capacity of what is kept of 8 MiB.
    #[test]
    fn a_cut_text_keeps_little_memory() {
        assert!(cut("é".repeat(4 << 20), 4096).capacity() <= 4096);
    }

    /// Goal: ids that can't be used are told apart from those that can. Method: one of each kind.
    #[test]
    fn odd_ids_are_problems() {
        for id in ["a b", "a\nb", "\u{9b}", "a\u{a0}b", "\0", &"x".repeat(FOREIGN_ID_BYTES_MAX + 1)]
        {
            assert!(id_problem("an id", id).is_some(), "{id:?}");
        }
        for id in ["", "20261122-S1", "é", &"x".repeat(FOREIGN_ID_BYTES_MAX)] {
            assert_eq!(id_problem("an id", id), None);
        }
    }
}
