//! Constraints: reading is total, printing reads back, and matching agrees with a naive matcher.
//!
//! Input: a constraint, and after the last line break the attributes to match it against, as
//! `name:text;name:#number;name:[begin-end,begin-end];name:{item,item}`.

#![cfg_attr(fuzzing, no_main)]

use offermill::resources::PortRange;
use offermill::{Attribute, AttributeValue, Constraint};

/// An attribute with what its borrowed form borrows.
struct Owned<'a> {
    name: &'a str,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Text(&'a str),
    Scalar(f64),
    Ranges(Vec<PortRange>),
    Set(Vec<&'a str>),
}

fn check(data: &[u8]) {
    let Ok(input) = std::str::from_utf8(data) else { return };
    let (text, attributes) = input.rsplit_once('\n').unwrap_or((input, ""));
    let constraint = match Constraint::parse(text) {
        Ok(constraint) => constraint,
        Err(error) => return check_error(text, &error.to_string(), error.offset()),
    };
    assert!(valid_naively(text), "accepted: {text:?}");
    assert_eq!(constraint.is_none(), text.is_empty());

    let printed = constraint.to_string();
    assert!(printed.len() <= text.len(), "{text:?} grew to {printed:?}");
    let again = Constraint::parse(&printed).expect("what was printed is read");
    assert_eq!(again, constraint, "{text:?} printed as {printed:?}");
    assert_eq!(again.to_string(), printed);

    let owned: Vec<Owned<'_>> = attributes.split(';').filter_map(owned).collect();
    let mut agent: Vec<Attribute<'_>> = owned.iter().map(Owned::borrow).collect();
    let expected = matches_naively(text, &agent);
    assert_eq!(constraint.matches(&agent), expected, "{text:?} on {agent:?}");
    assert_eq!(again.matches(&agent), expected, "{printed:?} on {agent:?}");
    // Now and then amid many others, so that the other way of matching is taken. It is slow, and no
    // name holds a line break.
    if !data.len().is_multiple_of(4) {
        return;
    }
    agent.resize(agent.len() + 300, Attribute::text("\n", ""));
    assert_eq!(constraint.matches(&agent), expected, "{text:?} on {agent:?} (many)");
}

fn check_error(text: &str, message: &str, offset: Option<usize>) {
    assert!(!valid_naively(text), "refused: {text:?}: {message}");
    assert!(text.is_char_boundary(offset.expect("an offset")));
    assert!(message.len() < 8_000, "{message}");
    assert!(message.chars().all(|c| c == '\n' || !c.is_control()), "{message:?}");
    let repaired = message.split_once("\nnearest valid form: ").map(|(_, repaired)| repaired);
    // What was abbreviated or escaped can't be read back.
    if let Some(repaired) = repaired.filter(|text| !text.contains(['…', '\\']))
        && repaired != "the empty string, for no constraint"
    {
        assert!(Constraint::parse(repaired).is_ok(), "{message}");
    }
}

/// Whether the grammar admits the text.
fn valid_naively(text: &str) -> bool {
    let mut names = Vec::new();
    let mut entry_is_valid = |entry: &str| {
        let parts: Vec<&str> = entry.trim().split(':').collect();
        let valid = parts.len() == 2 && !names.contains(&parts[0].to_owned());
        names.push(parts[0].to_owned());
        valid
    };
    text.is_empty() || text.len() <= 65_536 && text.split(';').all(&mut entry_is_valid)
}

/// The documented rules, straight from the text, one pair at a time.
fn matches_naively(text: &str, attributes: &[Attribute<'_>]) -> bool {
    let holds = |entry: &str| {
        let (name, values) = entry.trim().split_once(':').expect("the text is valid");
        let mut values: Vec<&str> = values.split(',').collect();
        while values.last() == Some(&"") {
            values.pop();
        }
        attributes.iter().filter(|attribute| attribute.name == name).any(|attribute| {
            values.is_empty()
                || match attribute.value {
                    AttributeValue::Text(text) => values.contains(&text),
                    AttributeValue::Scalar(scalar) => values
                        .iter()
                        .any(|value| number_naively(value).is_some_and(|least| least <= scalar)),
                    AttributeValue::Ranges(ranges) => values.iter().any(|value| {
                        let number = value.parse::<i128>().ok().filter(|_| !value.is_empty());
                        let inside = |range: &PortRange| {
                            number.is_some_and(|number| {
                                i128::from(range.begin) <= number && number <= i128::from(range.end)
                            })
                        };
                        ranges.iter().any(inside)
                    }),
                    AttributeValue::Set(items) => values.iter().all(|value| items.contains(value)),
                }
        })
    };
    text.is_empty() || text.split(';').all(holds)
}

/// Java's decimal numbers by their grammar: white space, sign, digits with a point, exponent,
/// suffix.
fn number_naively(text: &str) -> Option<f64> {
    let text = text.trim_matches(|c| c <= '\u{20}');
    let (sign, rest) = match text.chars().next()? {
        '-' => (-1.0, &text[1..]),
        '+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    if rest == "NaN" {
        return Some(f64::NAN);
    }
    if rest == "Infinity" {
        return Some(sign * f64::INFINITY);
    }
    let mut digits = rest;
    if let 'd' | 'D' | 'f' | 'F' = rest.chars().last()? {
        digits = &rest[..rest.len() - 1];
    }
    let (mantissa, exponent) = match digits.find(['e', 'E']) {
        Some(at) => (&digits[..at], Some(&digits[at + 1..])),
        None => (digits, None),
    };
    let all_digits = |part: &str| part.chars().all(|c| c.is_ascii_digit());
    let (whole, decimals) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + decimals.len() == 0 || !all_digits(whole) || !all_digits(decimals) {
        return None;
    }
    if let Some(exponent) = exponent {
        let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if unsigned.is_empty() || !all_digits(unsigned) {
            return None;
        }
    }
    digits.parse::<f64>().ok().map(|number| sign * number)
}

fn owned(entry: &str) -> Option<Owned<'_>> {
    let (name, value) = entry.split_once(':')?;
    let within = |open, close| value.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    let kind = if let Some(number) = value.strip_prefix('#') {
        Kind::Scalar(number.parse().ok()?)
    } else if let Some(ranges) = within('[', ']') {
        let range = |range: &str| {
            let (begin, end) = range.split_once('-')?;
            Some(PortRange::new(begin.parse().ok()?, end.parse().ok()?))
        };
        Kind::Ranges(ranges.split(',').filter_map(range).collect())
    } else if let Some(items) = within('{', '}') {
        Kind::Set(items.split(',').collect())
    } else {
        Kind::Text(value)
    };
    Some(Owned { name, kind })
}

impl Owned<'_> {
    fn borrow(&self) -> Attribute<'_> {
        let value = match &self.kind {
            Kind::Text(text) => AttributeValue::Text(text),
            Kind::Scalar(scalar) => AttributeValue::Scalar(*scalar),
            Kind::Ranges(ranges) => AttributeValue::Ranges(ranges),
            Kind::Set(items) => AttributeValue::Set(items),
        };
        Attribute { name: self.name, value }
    }
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| check(data));

/// Without a fuzzer: replays the files that are named on the command line.
#[cfg(not(fuzzing))]
fn main() -> std::io::Result<()> {
    let mut replayed = 0;
    for path in std::env::args_os().skip(1) {
        check(&std::fs::read(&path)?);
        replayed += 1;
    }
    println!("replayed {replayed} files");
    Ok(())
}
