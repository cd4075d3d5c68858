//! Text in HTML and SVG: escaping, no-break spaces and truncation.

use offermill::foreign_text::is_shown;

/// Escapes text for element content and for quoted attributes. Control characters are replaced by U+FFFD; characters
/// that are invisible or change the direction of text are shown as in `\u{202e}`. No-break spaces are the report's own.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() => escaped.push('\u{fffd}'),
            '\u{a0}' => escaped.push(c),
            c if is_shown(c) => escaped.push(c),
            c => escaped.extend(c.escape_unicode()),
        }
    }
    escaped
}

/// Replaces spaces by no-break spaces between numbers and their units and between groups of three digits.
pub(super) fn with_no_break_spaces(sentence: &str) -> String {
    let mut text = String::with_capacity(sentence.len());
    for word in sentence.split(' ') {
        let after_digit = text.ends_with(|c: char| c.is_ascii_digit());
        let unit = word.trim_end_matches(['.', ',', ';', ':', ')']);
        let is_unit = ["ms", "s", "min", "h", "d", "%", "k", "M", "G"].contains(&unit);
        let is_number = unit.len() == 3 && unit.bytes().all(|byte| byte.is_ascii_digit());
        let after_time_unit = text.ends_with("min") || text.ends_with(" h") || text.ends_with(" d");
        let starts_with_digit = word.starts_with(|c: char| c.is_ascii_digit());
        let stays_together =
            after_digit && (is_unit || is_number) || after_time_unit && starts_with_digit;
        if !text.is_empty() {
            text.push(if stays_together { '\u{a0}' } else { ' ' });
        }
        text.push_str(word);
    }
    text
}

/// Returns at most the first `bytes_max` bytes of a text, and whether that is less than all of it.
pub(super) fn truncate(text: &str, bytes_max: usize) -> (&str, bool) {
    if text.len() <= bytes_max {
        return (text, false);
    }
    let end = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    (&text[..end], true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: no text becomes a tag, ends an attribute or splits a character. Method: format texts with special
    /// characters.
    #[test]
    fn text_stays_text() {
        assert_eq!(escape("<a b='\"'>&\u{1b}"), "&lt;a b=&#39;&quot;&#39;&gt;&amp;\u{fffd}");
        assert_eq!(escape("\u{202e}a\u{200b}é\u{a0}"), "\\u{202e}a\\u{200b}é\u{a0}");
        assert_eq!(
            with_no_break_spaces("of 1 000 at 3 min 20 s."),
            "of 1\u{a0}000 at 3\u{a0}min\u{a0}20\u{a0}s."
        );
        assert_eq!(truncate("aé", 2), ("a", true));
        assert_eq!(truncate("aé", 3), ("aé", false));
    }
}
