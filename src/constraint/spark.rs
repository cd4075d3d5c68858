//! Parser for Spark's constraint syntax, with explanations of common mistakes.

use super::condition::{Condition, Test, Values};
use super::expression;
use super::facts::Subject;
use super::syntax_error::{SyntaxError, nearest, quoted, splice};

/// Parses a constraint that isn't empty into conditions, sorted by name.
pub(super) fn read(text: &str) -> Result<Vec<Condition>, SyntaxError> {
    Ok(scan(text)?.into_iter().map(AttributeEntry::compile).collect())
}

/// An entry as written.
#[derive(Clone, Copy)]
struct AttributeEntry<'a> {
    offset: usize,
    name: &'a str,
    values: &'a str,
}

impl AttributeEntry<'_> {
    fn compile(self) -> Condition {
        let values = match self.values.trim_end_matches(',') {
            "" => Values::of_entry(std::iter::empty()),
            values => Values::of_entry(values.split(',')),
        };
        let subject = Subject::Attribute(self.name.into());
        Condition { subject, test: Test::Entry(values), negated: false }
    }
}

/// Splits the text at `;` and `:` and rejects everything that Spark rejects. Returns the entries sorted by name.
fn scan(text: &str) -> Result<Vec<AttributeEntry<'_>>, SyntaxError> {
    let mut entries = Vec::new();
    let mut start = 0;
    for chunk in text.split(';') {
        entries.push(scan_entry(text, start, chunk)?);
        start += chunk.len() + 1;
    }
    entries.sort_by(|a, b| (a.name, a.offset).cmp(&(b.name, b.offset)));
    let repeated = |pair: &&[AttributeEntry<'_>]| matches!(pair, [a, b] if a.name == b.name);
    match entries.windows(2).filter(repeated).min_by_key(|pair| pair.last().map(|e| e.offset)) {
        Some(&[first, second]) => Err(name_twice(text, first, second)),
        _ => Ok(entries),
    }
}

fn scan_entry<'a>(
    text: &str,
    start: usize,
    chunk: &'a str,
) -> Result<AttributeEntry<'a>, SyntaxError> {
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
    Ok(AttributeEntry { offset, name, values })
}

#[cold]
fn entry_missing(text: &str, start: usize, chunk: &str) -> SyntaxError {
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
    SyntaxError {
        offset: start,
        sentence: sentence.into(),
        expected: expected.into(),
        repaired: without,
    }
}

#[cold]
fn colon_missing(text: &str, offset: usize, entry: &str) -> SyntaxError {
    let end = offset + entry.len();
    if let Some(repaired) = as_expression(text) {
        return SyntaxError {
            offset: end,
            sentence: format!("{} has no ':' after the attribute's name", quoted(entry)),
            expected: "expected ':', or expr:: before the whole for an expression".into(),
            repaired: Some(repaired),
        };
    }
    let repaired = match entry.split_once('=') {
        Some((name, values)) => {
            let values = values.trim_start_matches('=');
            let rest = text.get(end - values.len()..);
            rest.and_then(|rest| splice(text, offset + name.len(), ":", rest))
        }
        None => text.get(end..).and_then(|rest| splice(text, end, ":", rest)),
    };
    let place = if entry.contains('=') { entry.find('=').unwrap_or(0) } else { entry.len() };
    SyntaxError {
        offset: offset + place,
        sentence: format!("{} has no ':' after the attribute's name", quoted(entry)),
        expected: "expected ':'".into(),
        repaired,
    }
}

/// Returns the text as an expression, if it uses operators that Spark's syntax lacks and can be repaired to a valid
/// expression.
fn as_expression(text: &str) -> Option<String> {
    let marks = ["<", ">", "!", "(", "&", "|", " and ", " or ", " not ", " in ", " like "];
    if !marks.iter().any(|mark| text.contains(mark)) {
        return None;
    }
    let meant = [expression::PREFIX, " ", text.trim_start()].concat();
    nearest(splice(&meant, meant.len(), "", ""))
}

/// Returns the text with a mistyped `expr::` prefix corrected.
fn with_prefix(text: &str) -> Option<String> {
    let (word, rest) = text.split_once(':')?;
    let rest = rest.trim_start().strip_prefix(':')?;
    if !word.trim().eq_ignore_ascii_case("expr") {
        return None;
    }
    let meant = [expression::PREFIX, rest].concat();
    nearest(splice(&meant, meant.len(), "", ""))
}

/// An entry has a second `:`. The text before it shows whether `,` or `;` was meant: `a:b,c:d` or `a:b c:d` suggest
/// another attribute.
#[cold]
fn colon_repeated(text: &str, values_start: usize, values: &str, colon: usize) -> SyntaxError {
    let offset = values_start + colon;
    if let Some(repaired) = with_prefix(text) {
        return SyntaxError {
            offset,
            sentence: "an entry has a second ':'".into(),
            expected: "expected expr:: in lower case and without spaces for an expression".into(),
            repaired: Some(repaired),
        };
    }
    let before = values.get(..colon).unwrap_or_default();
    let (place, after, mark) = match before.trim_start().rfind([',', ' ']) {
        Some(_) => {
            let after = before.rfind([',', ' ']).map_or(0, |mark| mark + 1);
            let head = before.get(..after).unwrap_or_default().trim_end_matches([',', ' ']);
            (values_start + head.len(), values_start + after, ";")
        }
        None => (offset, offset + 1, ","),
    };
    SyntaxError {
        offset,
        sentence: "an entry has a second ':'".into(),
        expected: "expected ',' before another value, ';' before another attribute".into(),
        repaired: text.get(after..).and_then(|rest| splice(text, place, mark, rest)),
    }
}

#[cold]
fn name_twice(text: &str, first: AttributeEntry<'_>, second: AttributeEntry<'_>) -> SyntaxError {
    SyntaxError {
        offset: second.offset,
        sentence: format!("the attribute {} occurs twice", quoted(second.name)),
        expected: "expected another attribute; all values of one go into one entry".into(),
        repaired: merged(text, first, second),
    }
}

/// Returns the text with the second entry's values appended to the first entry's.
fn merged(text: &str, first: AttributeEntry<'_>, second: AttributeEntry<'_>) -> Option<String> {
    let first_end = first.offset + first.name.len() + 1 + first.values.len();
    let second_end = second.offset + second.name.len() + 1 + second.values.len();
    let between = text.get(first_end..second.offset)?;
    let between = between.get(..between.rfind(';')?)?;
    let comma = if first.values.is_empty() || second.values.is_empty() { "" } else { "," };
    let rest = [comma, second.values, between].concat();
    splice(text, first_end, &rest, text.get(second_end..)?)
}
