//! Syntax errors of constraints: the position, an explanation, and a guess at what was meant.

use std::borrow::Cow;
use std::fmt::Write;

use crate::error::Error;

/// The maximum length of a bad constraint for which a repair is suggested, in bytes.
const REPAIRED_BYTES_MAX: usize = 200;
/// The maximum number of repairs of a bad constraint; a result that needs more isn't worth showing.
const REPAIRS_MAX: usize = 8;
/// How much of a bad constraint is shown before and after the error, in characters.
const SHOWN_BEFORE: usize = 48;
const SHOWN_AFTER: usize = 24;

/// The first error in a constraint.
#[derive(Debug)]
pub(super) struct SyntaxError {
    /// The position in bytes.
    pub(super) offset: usize,
    /// The problem, without the text of the constraint.
    pub(super) sentence: String,
    /// What was expected at the position.
    pub(super) expected: Cow<'static, str>,
    /// The text with this one error repaired, by a guess at what was meant.
    pub(super) repaired: Option<String>,
}

/// Joins `text` up to `end`, `middle` and `rest`. Returns `None` for long texts.
pub(super) fn splice(text: &str, end: usize, middle: &str, rest: &str) -> Option<String> {
    let head = text.get(..end)?;
    (text.len() <= REPAIRED_BYTES_MAX).then(|| [head, middle, rest].concat())
}

impl SyntaxError {
    #[cold]
    pub(super) fn into_error(mut self, text: &str) -> Error {
        let mut offset = self.offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let (shown, column) = excerpt(text, offset);
        let SyntaxError { sentence, expected, .. } = &self;
        let mut message = format!("bad constraint: {sentence}\n  {shown}\n  ");
        // Writing to a `String` can't fail.
        let _ = write!(message, "{:column$}^ {expected}", "");
        if let Some(valid) = nearest(self.repaired.take()) {
            let (shown, _) = excerpt(&valid, 0);
            let shown =
                if valid.is_empty() { "the empty string, for no constraint" } else { &shown };
            let _ = write!(message, "\nnearest valid form: {shown}");
        }
        Error::constraint(message, offset)
    }
}

/// Repairs one error after another until the text is a valid constraint.
pub(super) fn nearest(repaired: Option<String>) -> Option<String> {
    let mut text = repaired?;
    for _ in 0..REPAIRS_MAX {
        if text.is_empty() {
            return Some(text);
        }
        match super::read(&text) {
            Ok(_) => return Some(text),
            Err(syntax_error) => text = syntax_error.repaired?,
        }
    }
    None
}

/// Returns the text around `offset` on one line, and the column of `offset` in it.
fn excerpt(text: &str, offset: usize) -> (String, usize) {
    let (before, after) = text.split_at_checked(offset).unwrap_or((text, ""));
    let mut head: Vec<char> = before.chars().rev().take(SHOWN_BEFORE + 1).collect();
    let cut = head.len() > SHOWN_BEFORE;
    head.truncate(SHOWN_BEFORE);
    let mut shown = String::from(if cut { "…" } else { "" });
    shown.extend(head.into_iter().rev().flat_map(visible_char));
    let column = shown.chars().count();
    let after_shown = if before.is_empty() { SHOWN_BEFORE + SHOWN_AFTER } else { SHOWN_AFTER };
    shown.extend(after.chars().take(after_shown).flat_map(visible_char));
    if after.chars().nth(after_shown).is_some() {
        shown.push('…');
    }
    (shown, column)
}

/// Escapes the characters of a text that a terminal would not simply show.
pub(crate) fn visible(text: &str) -> String {
    text.chars().flat_map(visible_char).collect()
}

/// Escapes a character if a terminal would not simply show it.
pub(super) fn visible_char(c: char) -> impl Iterator<Item = char> {
    let (plain, escaped) = match c {
        '\'' | '"' | '\\' => (Some(c), None),
        _ => (None, Some(c.escape_debug())),
    };
    plain.into_iter().chain(escaped.into_iter().flatten())
}

/// Shortens a text, escapes it for a terminal, and puts it in backticks.
pub(crate) fn quoted(text: &str) -> String {
    let (shown, _) = excerpt(text, 0);
    format!("`{shown}`")
}
