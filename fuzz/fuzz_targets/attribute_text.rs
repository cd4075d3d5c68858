//! Attributes as text. Parsing never panics and accepts exactly the grammar; a parsed value prints as text that parses
//! to the same value; the attributes of an offer keep their values when they are borrowed, and a constraint matches
//! them.
//!
//! Input: attributes in the format of `--attributes`.

#![cfg_attr(fuzzing, no_main)]

use offermill::attributes::{self, Items, OwnedAttribute, OwnedAttributeValue};
use offermill::{AttributeValue, Constraint};

fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = attributes::parse(text);
    assert_eq!(read.is_ok(), valid_naively(text), "{text:?}: {read:?}");
    let read = match read {
        Ok(read) => read,
        Err(error) => {
            let message = error.to_string();
            assert!(message.len() < 2_000 && !message.contains(char::is_control), "{message:?}");
            return;
        }
    };
    let printed: Vec<String> = read.iter().map(ToString::to_string).collect();
    let again = attributes::parse(&printed.join(";"));
    assert_eq!(again.as_ref().ok(), Some(&read), "{text:?} printed as {printed:?}");

    let items = Items::of(&read);
    let borrowed = attributes::borrow(&read, &items);
    assert_eq!(borrowed.len(), read.len());
    for (owned, borrowed) in read.iter().zip(&borrowed) {
        assert_eq!(owned.name, borrowed.name);
        assert!(same(&owned.value, &borrowed.value), "{owned:?} {borrowed:?}");
    }
    for owned in read.iter().take(ASKED_FOR) {
        let asking = asking_for(owned);
        let constraint = Constraint::parse(&asking).expect("a constraint");
        assert!(constraint.matches(&borrowed), "{asking} on {owned:?}");
    }
}

/// The maximum number of attributes that are looked up one by one.
const ASKED_FOR: usize = 20;

/// Returns an expression that an agent with this attribute meets.
fn asking_for(attribute: &OwnedAttribute) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let name = quoted(&attribute.name);
    match &attribute.value {
        OwnedAttributeValue::Text(text) => format!("expr:: {name} = {}", quoted(text)),
        OwnedAttributeValue::Scalar(number) => {
            format!("expr:: {name} = {}", quoted(&number.to_string()))
        }
        OwnedAttributeValue::Ranges(ranges) => match ranges.last() {
            Some(range) => format!("expr:: {name} in [{range}]"),
            None => format!("expr:: {name}"),
        },
        OwnedAttributeValue::Set(items) => match items.last() {
            Some(item) => format!("expr:: {name} in {{{}}}", quoted(item)),
            None => format!("expr:: {name}"),
        },
    }
}

fn same(owned: &OwnedAttributeValue, borrowed: &AttributeValue<'_>) -> bool {
    match (owned, borrowed) {
        (OwnedAttributeValue::Text(own), AttributeValue::Text(text)) => own == text,
        (OwnedAttributeValue::Scalar(own), AttributeValue::Scalar(number)) => own == number,
        (OwnedAttributeValue::Ranges(own), AttributeValue::Ranges(ranges)) => own == ranges,
        (OwnedAttributeValue::Set(own), AttributeValue::Set(items)) => own == items,
        _ => false,
    }
}

/// Whether the text conforms to the documented grammar.
fn valid_naively(text: &str) -> bool {
    let valid_attribute = |attribute: &str| {
        let Some(colon) = attribute.find(':') else { return false };
        let (name, value) = (attribute[..colon].trim(), attribute[colon + 1..].trim());
        !name.is_empty() && valid_value(value)
    };
    let mut attributes = text.split(';').filter(|attribute| !attribute.trim().is_empty());
    text.len() <= 65_536 && !text.contains(char::is_control) && attributes.all(valid_attribute)
}

fn valid_value(value: &str) -> bool {
    let listed = |valid: fn(&str) -> bool| {
        let inside = value[1..value.len() - 1].trim();
        value.len() > 1 && (inside.is_empty() || inside.split(',').all(|item| valid(item.trim())))
    };
    match (value.chars().next(), value.chars().next_back()) {
        (Some('['), Some(']')) => listed(valid_interval),
        (Some('{'), Some('}')) => listed(|item| !item.is_empty() && !item.contains(['{', '}'])),
        (Some('[' | '{') | None, _) => false,
        _ => true,
    }
}

fn valid_interval(interval: &str) -> bool {
    let parts: Vec<&str> = interval.split('-').map(str::trim).collect();
    let whole = |part: &str| {
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        if digits { part.parse::<u64>().ok() } else { None }
    };
    let [begin, end] = parts[..] else { return false };
    whole(begin).zip(whole(end)).is_some_and(|(begin, end)| begin <= end)
}

offermill_fuzz::harness!(check);
