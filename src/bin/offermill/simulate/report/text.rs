//! Text as HTML and SVG take it.

/// Text that means only itself, between tags and within quotes.
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
            c => escaped.push(c),
        }
    }
    escaped
}

/// A sentence in which figures keep their units and thousands on one line.
pub(super) fn tied(sentence: &str) -> String {
    let mut tied = String::with_capacity(sentence.len());
    for word in sentence.split(' ') {
        let figure_before = tied.ends_with(|c: char| c.is_ascii_digit());
        let unit = word.trim_end_matches(['.', ',', ';', ':', ')']);
        let belongs = ["ms", "s", "min", "h", "d", "%", "k", "M", "G"].contains(&unit);
        let is_number = unit.len() == 3 && unit.bytes().all(|byte| byte.is_ascii_digit());
        let more_time = tied.ends_with("min") || tied.ends_with(" h") || tied.ends_with(" d");
        let starts = word.starts_with(|c: char| c.is_ascii_digit());
        let ties = figure_before && (belongs || is_number) || more_time && starts;
        if !tied.is_empty() {
            tied.push(if ties { '\u{a0}' } else { ' ' });
        }
        tied.push_str(word);
    }
    tied
}

/// The first so many bytes of a text, and whether that isn't all.
pub(super) fn cut(text: &str, bytes_max: usize) -> (&str, bool) {
    if text.len() <= bytes_max {
        return (text, false);
    }
    let end = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    (&text[..end], true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: no text becomes a tag, ends an attribute or splits a character. Method: hostile texts.
    #[test]
    fn text_stays_text() {
        assert_eq!(escape("<a b='\"'>&\u{1b}"), "&lt;a b=&#39;&quot;&#39;&gt;&amp;\u{fffd}");
        assert_eq!(tied("of 1 000 at 3 min 20 s."), "of 1\u{a0}000 at 3\u{a0}min\u{a0}20\u{a0}s.");
        assert_eq!(cut("aé", 2), ("a", true));
        assert_eq!(cut("aé", 3), ("aé", false));
    }
}
