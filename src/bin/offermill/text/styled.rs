//! Text for people: everything that is put into it is made printable, so that no name or message from the cluster can
//! control the terminal. Only JSON and calls to the cluster contain raw text.

use std::borrow::Cow;
use std::fmt;

use console::{Alignment, Style, measure_text_width, pad_str, truncate_str};

use crate::text::format::printable;

/// Text without control characters, except the ends of its lines and the codes of its styles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StyledText(String);

impl StyledText {
    /// Empty text.
    pub(crate) fn new() -> StyledText {
        StyledText::default()
    }

    /// One line of text, without its end.
    pub(crate) fn plain(text: &str) -> StyledText {
        StyledText(printable(text))
    }

    /// The same in a style.
    pub(crate) fn styled(text: &str, style: &Style) -> StyledText {
        StyledText(style.apply_to(printable(text)).to_string())
    }

    /// Whole lines, each of which ends with a line feed; the last may lack it.
    pub(crate) fn lines(text: &str) -> StyledText {
        let lines = text.split_inclusive('\n').map(|line| match line.strip_suffix('\n') {
            Some(line) => printable(line) + "\n",
            None => printable(line),
        });
        StyledText(lines.collect())
    }

    /// What a program printed: lines, in which tabs stay.
    pub(crate) fn program_output(text: &str) -> StyledText {
        let pieces = text.split_inclusive(['\n', '\t']).map(|piece| {
            let end = piece.len() - usize::from(piece.ends_with(['\n', '\t']));
            let (piece, end) = piece.split_at(end);
            printable(piece) + end
        });
        StyledText(pieces.collect())
    }

    /// Adds text to the last line.
    pub(crate) fn and(mut self, text: &str) -> StyledText {
        self.0.push_str(&printable(text));
        self
    }

    /// Adds text in a style to the last line.
    pub(crate) fn and_styled(mut self, text: &str, style: &Style) -> StyledText {
        self.append(&StyledText::styled(text, style));
        self
    }

    /// Adds other text.
    pub(crate) fn append(&mut self, other: &StyledText) {
        self.0.push_str(&other.0);
    }

    /// Adds a line and ends it.
    pub(crate) fn push_line(&mut self, line: &StyledText) {
        self.append(line);
        self.0.push('\n');
    }

    /// The text with the codes of its styles.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The width of a line, in columns.
    pub(crate) fn width(&self) -> usize {
        measure_text_width(&self.0)
    }

    /// A line of at most `columns` columns: its end is cut off and marked.
    pub(crate) fn truncated(&self, columns: usize) -> StyledText {
        StyledText(truncate_str(&self.0, columns, "…").into_owned())
    }

    /// The line without blanks at its end.
    pub(crate) fn trimmed(&self) -> StyledText {
        StyledText(self.0.trim_end().to_owned())
    }
}

impl fmt::Display for StyledText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Text that is made printable and filled up with blanks to `columns` columns, as terminals count them.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    let text = printable(text);
    match pad_str(&text, columns, Alignment::Left, None) {
        Cow::Borrowed(_) => text,
        Cow::Owned(padded) => padded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: foreign text can't bring codes of a terminal or lines of its own, and styles are kept. Method: a host name
    /// that clears the screen, in each way to add text; widths of wide characters.
    #[test]
    fn foreign_text_brings_no_codes() {
        const HOST: &str = "\u{1b}]0;PWNED\u{7}\u{1b}[2J\r\n\u{9b}31m";
        let bold = Style::new().bold().force_styling(true);
        let mut text = StyledText::plain(HOST).and(HOST).and_styled(HOST, &bold);
        text.push_line(&StyledText::styled(HOST, &bold));
        let codes = ["\u{1b}[1m", "\u{1b}[0m", "\n"];
        let rest = codes.iter().fold(text.to_string(), |text, code| text.replace(code, ""));
        assert!(!rest.chars().any(char::is_control), "{rest:?}");
        assert_eq!(text.as_str().matches("\u{1b}[1m").count(), 2);
        assert_eq!(StyledText::lines("a\u{1b}\nb\r\nc").as_str(), "a\\u{1b}\nb\\r\nc");
        assert_eq!(StyledText::program_output("a\tb\u{1b}\n\n\tc").as_str(), "a\tb\\u{1b}\n\n\tc");
        assert_eq!(StyledText::plain("名前").width(), 4);
        assert_eq!(padded("名前", 6), "名前  ");
        assert_eq!(padded("\u{7}", 6), "\\u{7} ");
    }
}
