//! Reading a constraint, and telling people what is wrong with one.

use std::fmt::Write;

use super::{CONSTRAINT_BYTES_MAX, Term};
use crate::error::Error;

/// Up to this length a bad constraint is repaired to show what was perhaps meant.
const REPAIRED_BYTES_MAX: usize = 200;
/// How many repairs a bad constraint may need for the result to be worth showing.
const REPAIRS_MAX: usize = 8;
/// How much of a bad constraint is shown before and after the place, in characters.
const SHOWN_BEFORE: usize = 48;
const SHOWN_AFTER: usize = 24;

/// Reads the terms of a constraint that is not empty, sorted by name.
pub(super) fn parse(text: &str) -> Result<Box<[Term]>, Error> {
    match scan(text) {
        Ok(entries) => Ok(entries.into_iter().map(Entry::compile).collect()),
        Err(fault) => Err(fault.into_error(text)),
    }
}

/// An entry as it stands in the text.
#[derive(Clone, Copy)]
struct Entry<'a> {
    offset: usize,
    name: &'a str,
    values: &'a str,
}

/// The first thing that is wrong.
struct Fault {
    offset: usize,
    /// What is wrong, without the string.
    sentence: String,
    /// What should stand at the place.
    expected: &'static str,
    /// The text with this one fault repaired, by a guess at what was meant.
    repaired: Option<String>,
}

/// Splits at `;` and `:` and refuses what Spark refuses. Sorted by name.
fn scan(text: &str) -> Result<Vec<Entry<'_>>, Fault> {
    if text.len() > CONSTRAINT_BYTES_MAX {
        return Err(Fault {
            offset: CONSTRAINT_BYTES_MAX,
            sentence: format!("it has {} bytes", text.len()),
            expected: "expected no more than 65536 bytes",
            repaired: None,
        });
    }
    let mut entries = Vec::new();
    let mut start = 0;
    for chunk in text.split(';') {
        entries.push(scan_entry(text, start, chunk)?);
        start += chunk.len() + 1;
    }
    entries.sort_by(|a, b| (a.name, a.offset).cmp(&(b.name, b.offset)));
    let repeated = |pair: &&[Entry<'_>]| matches!(pair, [a, b] if a.name == b.name);
    match entries.windows(2).filter(repeated).min_by_key(|pair| pair.last().map(|e| e.offset)) {
        Some(&[first, second]) => Err(name_twice(text, first, second)),
        _ => Ok(entries),
    }
}

fn scan_entry<'a>(text: &str, start: usize, chunk: &'a str) -> Result<Entry<'a>, Fault> {
    let entry = chunk.trim();
    let offset = start + (chunk.len() - chunk.trim_start().len());
    if entry.is_empty() {
        return Err(entry_missing(text, start, chunk));
    }
    let Some((name, values)) = entry.split_once(':') else {
        return Err(colon_missing(text, offset, entry));
    };
    if let Some(colon) = values.find(':') {
        return Err(colon_repeated(text, offset + name.len() + 1, values, colon));
    }
    Ok(Entry { offset, name, values })
}

impl Entry<'_> {
    fn compile(self) -> Term {
        let mut values: Vec<&str> = match self.values.trim_end_matches(',') {
            "" => Vec::new(),
            values => values.split(',').collect(),
        };
        values.sort_unstable();
        values.dedup();
        let numbers = values.iter().filter_map(|value| java_double(value));
        let least = numbers.filter(|number| !number.is_nan()).reduce(f64::min);
        let mut integers: Vec<u64> = values.iter().filter_map(|value| integer(value)).collect();
        integers.sort_unstable();
        integers.dedup();
        Term {
            name: self.name.into(),
            values: values.into_iter().map(Box::from).collect(),
            least,
            integers: integers.into(),
        }
    }
}

/// A number as Java's `Double.parseDouble` reads it, but for its hexadecimal form.
fn java_double(text: &str) -> Option<f64> {
    let text = text.trim_matches(|c| c <= ' ');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let magnitude = match unsigned {
        "NaN" => f64::NAN,
        "Infinity" => f64::INFINITY,
        // Rust's own reader takes other names of these two, so let only digits through to it.
        _ if unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
            unsigned.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(unsigned).parse().ok()?
        }
        _ => return None,
    };
    Some(if text.starts_with('-') { -magnitude } else { magnitude })
}

/// A whole number as Java's `Long.parseLong` reads it; a range holds no negative one.
fn integer(text: &str) -> Option<u64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = digits.parse().ok()?;
    (number == 0 || !text.starts_with('-')).then_some(number)
}

#[cold]
fn entry_missing(text: &str, start: usize, chunk: &str) -> Fault {
    let end = start + chunk.len();
    let without = match text.get(end + 1..) {
        Some(rest) => splice(text, start, "", rest),
        None => {
            text.get(..start.saturating_sub(1)).and_then(|head| splice(head, head.len(), "", ""))
        }
    };
    let (sentence, expected) = if chunk.len() == text.len() {
        ("it is blank", "expected attribute:value, or nothing at all")
    } else if end == text.len() {
        ("nothing follows the last ';'", "expected attribute:value, or no ';' before")
    } else {
        ("an entry is empty", "expected attribute:value before the ';'")
    };
    Fault { offset: start, sentence: sentence.into(), expected, repaired: without }
}

#[cold]
fn colon_missing(text: &str, offset: usize, entry: &str) -> Fault {
    let end = offset + entry.len();
    let repaired = match entry.split_once('=') {
        Some((name, values)) => {
            let values = values.trim_start_matches('=');
            let rest = text.get(end - values.len()..);
            rest.and_then(|rest| splice(text, offset + name.len(), ":", rest))
        }
        None => text.get(end..).and_then(|rest| splice(text, end, ":", rest)),
    };
    let place = if entry.contains('=') { entry.find('=').unwrap_or(0) } else { entry.len() };
    Fault {
        offset: offset + place,
        sentence: format!("{} has no ':' after the attribute's name", quoted(entry)),
        expected: "expected ':'",
        repaired,
    }
}

/// Which mark was meant shows in what stands before the second name: `a:b,c:d` or `a:b c:d`.
#[cold]
fn colon_repeated(text: &str, values_start: usize, values: &str, colon: usize) -> Fault {
    let offset = values_start + colon;
    let before = values.get(..colon).unwrap_or_default();
    let (place, after, mark) = match before.trim_start().rfind([',', ' ']) {
        Some(_) => {
            let after = before.rfind([',', ' ']).map_or(0, |mark| mark + 1);
            let head = before.get(..after).unwrap_or_default().trim_end_matches([',', ' ']);
            (values_start + head.len(), values_start + after, ";")
        }
        None => (offset, offset + 1, ","),
    };
    Fault {
        offset,
        sentence: "an entry has a second ':'".into(),
        expected: "expected ',' before another value, ';' before another attribute",
        repaired: text.get(after..).and_then(|rest| splice(text, place, mark, rest)),
    }
}

#[cold]
fn name_twice(text: &str, first: Entry<'_>, second: Entry<'_>) -> Fault {
    Fault {
        offset: second.offset,
        sentence: format!("the attribute {} stands in it twice", quoted(second.name)),
        expected: "expected another attribute; all values of one go into one entry",
        repaired: merged(text, first, second),
    }
}

/// The text with the second entry's values appended to the first's.
fn merged(text: &str, first: Entry<'_>, second: Entry<'_>) -> Option<String> {
    let first_end = first.offset + first.name.len() + 1 + first.values.len();
    let second_end = second.offset + second.name.len() + 1 + second.values.len();
    let between = text.get(first_end..second.offset)?;
    let between = between.get(..between.rfind(';')?)?;
    let comma = if first.values.is_empty() || second.values.is_empty() { "" } else { "," };
    let rest = [comma, second.values, between].concat();
    splice(text, first_end, &rest, text.get(second_end..)?)
}

/// `text` up to `end`, then `middle`, then `rest`; nothing for long texts.
fn splice(text: &str, end: usize, middle: &str, rest: &str) -> Option<String> {
    let head = text.get(..end)?;
    (text.len() <= REPAIRED_BYTES_MAX).then(|| [head, middle, rest].concat())
}

impl Fault {
    #[cold]
    fn into_error(mut self, text: &str) -> Error {
        let mut offset = self.offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let (shown, column) = excerpt(text, offset);
        let Fault { sentence, expected, .. } = &self;
        let mut message = format!("bad constraint: {sentence}\n  {shown}\n  ");
        // Writing into a String can't fail.
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

/// Repairs one fault after another until the text is a constraint.
fn nearest(repaired: Option<String>) -> Option<String> {
    let mut text = repaired?;
    for _ in 0..REPAIRS_MAX {
        if text.is_empty() {
            return Some(text);
        }
        match scan(&text) {
            Ok(_) => return Some(text),
            Err(fault) => text = fault.repaired?,
        }
    }
    None
}

/// The text around `offset` on one line, and the column of `offset` in it.
fn excerpt(text: &str, offset: usize) -> (String, usize) {
    let (before, after) = text.split_at_checked(offset).unwrap_or((text, ""));
    let mut head: Vec<char> = before.chars().rev().take(SHOWN_BEFORE + 1).collect();
    let cut = head.len() > SHOWN_BEFORE;
    head.truncate(SHOWN_BEFORE);
    let mut shown = String::from(if cut { "…" } else { "" });
    head.iter().rev().for_each(|c| push_visible(&mut shown, *c));
    let column = shown.chars().count();
    let after_shown = if before.is_empty() { SHOWN_BEFORE + SHOWN_AFTER } else { SHOWN_AFTER };
    after.chars().take(after_shown).for_each(|c| push_visible(&mut shown, c));
    if after.chars().nth(after_shown).is_some() {
        shown.push('…');
    }
    (shown, column)
}

/// Appends a character, escaped if a terminal would not simply show it.
fn push_visible(line: &mut String, c: char) {
    match c {
        '\'' | '"' | '\\' => line.push(c),
        _ => line.extend(c.escape_debug()),
    }
}

fn quoted(text: &str) -> String {
    let (shown, _) = excerpt(text, 0);
    format!("`{shown}`")
}
