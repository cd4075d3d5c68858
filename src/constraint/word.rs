//! Words of expressions: keywords, and the texts that need no quotation marks.

/// Reserved words. Names or values that equal one must be quoted.
pub(super) const KEYWORDS: [&str; 6] = ["and", "or", "not", "in", "like", "matches"];

/// Returns the word at the start of `rest`; empty if there is none.
pub(super) fn word(rest: &str) -> &str {
    let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
    rest.get(..end).unwrap_or_default()
}

fn is_of_word(c: char) -> bool {
    !(c.is_whitespace() || c.is_control() || "()[]{},=!<>~&|\"'\\;:@#`$".contains(c))
}

/// Whether a text parses back as itself without quotation marks.
pub(super) fn is_word(text: &str) -> bool {
    let keyword = || KEYWORDS.into_iter().any(|one| one.eq_ignore_ascii_case(text));
    !text.is_empty() && text.chars().all(is_of_word) && !keyword()
}
