//! Formats counts, durations, large numbers and untrusted text.

use std::borrow::Cow;
use std::time::Duration;

use offermill::config::text::format_duration;
use offermill::foreign_text::{Printable, is_shown};
use offermill::resources::MilliCpus;

/// Formats a count with its noun: `1 executor`, `2 executors`, `10 000 executors`. Amounts of cores and GPUs name their
/// unit by `{:#}`.
pub(crate) fn count(number: u64, singular: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {singular}{plural}", grouped(number))
}

/// A number of cores for JSON, such as 0.5.
pub(crate) fn core_number(cores: MilliCpus) -> f64 {
    cores.millis() as f64 / 1000.0
}

/// Formats an elapsed duration: in tenths of a second below a minute, in seconds above.
pub(crate) fn passed(duration: Duration) -> String {
    if duration < Duration::from_secs(60) {
        let tenths = duration.as_millis() / 100;
        format!("{}.{} s", tenths / 10, tenths % 10)
    } else {
        format_duration(Duration::from_secs(duration.as_secs()))
    }
}

/// Formats an elapsed duration in whole seconds.
pub(crate) fn age(duration: Duration) -> String {
    format_duration(Duration::from_secs(duration.as_secs()))
}

/// Escapes control and invisible characters in untrusted text, so that it can be printed to a terminal.
pub(crate) fn printable(text: &str) -> String {
    Printable(text).to_string()
}

/// Escapes control and invisible characters in JSON, so that it can be printed to a terminal. It stays the same JSON:
/// such characters occur in its strings alone, except the line feeds after each value, which are left.
pub(crate) fn printable_json(json: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c == '\n' || is_shown(c);
    if json.chars().all(is_plain) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 64);
    let mut units = [0; 2];
    for c in json.chars() {
        match c {
            _ if is_plain(c) => escaped.push(c),
            _ => c.encode_utf16(&mut units).iter().for_each(|unit| {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }),
        }
    }
    Cow::Owned(escaped)
}

/// Cuts a text that is too long for a message.
pub(crate) fn shortened(text: &str) -> String {
    const SHOWN_MAX: usize = 200;
    let mut shown: String = text.chars().take(SHOWN_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// Formats a number with a space between groups of three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    proptest! {
        /// Goal: printed JSON controls no terminal, and is the same for programs. Method: random texts with many
        /// characters that aren't shown, as a key and as a value.
        #[test]
        fn printable_json_is_the_same_json(text in "(\\PC|\\pC|[\\x00-\\xa0\u{3164}\u{2800}]){0,40}") {
            let value = json!({ text.clone(): [text] });
            let lines = format!("{value}\n");
            let shown = printable_json(&lines);
            prop_assert!(shown.trim_end_matches('\n').chars().all(is_shown), "{shown:?}");
            prop_assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
        }
    }

    /// Goal: numbers, durations and text are formatted for people. Method: format one value of each kind.
    #[test]
    fn numbers_read_well() {
        let tasks = [0, 1, 2, 1000].map(|number| count(number, "task"));
        assert_eq!(tasks, ["0 tasks", "1 task", "2 tasks", "1 000 tasks"]);
        assert_eq!([grouped(7), grouped(1000), grouped(1_234_567)], ["7", "1 000", "1 234 567"]);
        assert_eq!(passed(Duration::from_millis(12_345)), "12.3 s");
        assert_eq!(passed(Duration::from_secs(75)), "1 min 15 s");
        assert_eq!(printable("a\u{1b}[2J\u{202e}'é"), "a\\u{1b}[2J\\u{202e}'é");
        let long = "é".repeat(200);
        assert_eq!([shortened(&long), shortened(&format!("{long}x"))], [long.clone(), long + "…"]);
    }
}
