//! Constraints in both syntaxes. Parsing never panics and accepts exactly the grammar; a printed constraint parses to
//! the same constraint; matching agrees with a naive matcher, both with and without a memo.
//!
//! Input: a constraint, and after the last line break the agent to match, as
//! `name:text;name:#number;name:[begin-end,begin-end];name:{item,item}`, with `@hostname:`, `@region:` and `@zone:` for
//! its location.

#![cfg_attr(fuzzing, no_main)]

#[path = "../../tests/constraints/naive/mod.rs"]
mod naive;

use offermill::constraint::Memo;
use offermill::resources::PortRange;
use offermill::{Attribute, AttributeValue, Constraint, Offer};

/// The maximum nesting depth that is compared. The naive parser recurses for parentheses and negations.
const DEPTH_MAX: usize = 200;

/// An attribute and the memory that its borrowed form refers to.
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
    let (text, agent) = input.rsplit_once('\n').unwrap_or((input, ""));
    let read = Constraint::parse(text);
    // The naive parser doesn't check the expanded size of an expression.
    let is_compared = text.matches('(').count() <= DEPTH_MAX && text.len() < 32_768;
    let expected = if is_compared { naive::read(text) } else { None };
    let constraint = match read {
        Ok(constraint) => constraint,
        Err(error) => {
            assert!(expected.is_none(), "refused: {text:?}: {error}");
            return check_error(text, &error.to_string(), error.offset());
        }
    };
    assert!(expected.is_some() || !is_compared, "accepted: {text:?}");
    assert_eq!(constraint.is_none(), text.is_empty());

    let printed = constraint.to_string();
    let again = Constraint::parse(&printed).expect("what was printed is read");
    assert_eq!(again, constraint, "{text:?} printed as {printed:?}");
    if !text.trim_start().starts_with("expr::") {
        assert!(printed.len() <= text.len(), "{text:?} grew to {printed:?}");
    }
    let owned: Vec<Owned<'_>> = agent.split(';').filter_map(owned).collect();
    check_matches(&constraint, &again, expected.as_ref(), &owned, data.len().is_multiple_of(4));
}

/// If `many` is set, matches among many other attributes as well, to use the other matching algorithm. That is slow. No
/// name contains a line break.
fn check_matches(
    constraint: &Constraint,
    again: &Constraint,
    expected: Option<&naive::Naive>,
    owned: &[Owned<'_>],
    many: bool,
) {
    let mut attributes: Vec<Attribute<'_>> = owned.iter().map(Owned::borrow).collect();
    let mut memo = Memo::default();
    for more in if many { &[0, 300][..] } else { &[0] } {
        attributes.resize(attributes.len() + more, Attribute::text("\n", ""));
        let offer = offer(&attributes);
        let verdict = constraint.check(&offer);
        if let Some(expected) = expected {
            let expected = naive::holds(expected, &offer);
            assert_eq!(verdict.is_ok(), expected, "{constraint} on {offer:?}");
        }
        assert_eq!(again.check(&offer), verdict, "{constraint} on {offer:?}");
        assert_eq!(constraint.check_with(&mut memo, &offer), verdict);
        // The memo returns neither another constraint's result nor an old one.
        let other = Offer::new("o", "a", "other", &[], attributes.get(1..).unwrap_or_default());
        assert_eq!(constraint.check_with(&mut memo, &other), constraint.check(&other));
        assert_eq!(constraint.check_with(&mut memo, &offer), verdict);
        let told = constraint.examine(&offer);
        assert_eq!(told.met, verdict.is_ok());
        assert!(told.to_string().chars().all(|c| c == '\n' || !c.is_control()));
        if let Err(unmet) = verdict {
            assert!(constraint.condition(unmet.condition).is_some());
        }
    }
}

/// Creates the agent's offer. Attributes with the names of locations become its location.
fn offer<'a>(attributes: &'a [Attribute<'a>]) -> Offer<'a> {
    let place = |name: &str| {
        attributes.iter().find_map(|attribute| match attribute.value {
            AttributeValue::Text(text) if attribute.name == name => Some(text),
            _ => None,
        })
    };
    let mut offer = Offer::new("o", "a", place("@hostname").unwrap_or(""), &[], attributes);
    offer.region = place("@region");
    offer.zone = place("@zone");
    offer
}

fn check_error(text: &str, message: &str, offset: Option<usize>) {
    assert!(text.is_char_boundary(offset.expect("an offset")));
    assert!(message.len() < 8_000, "{message}");
    assert!(message.chars().all(|c| c == '\n' || !c.is_control()), "{message:?}");
    let repaired = message.split_once("\nnearest valid form: ").map(|(_, repaired)| repaired);
    // Abbreviated or escaped text can't be parsed again.
    if let Some(repaired) = repaired.filter(|text| !text.contains(['…', '\\']))
        && repaired != "the empty string, for no constraint"
    {
        assert!(Constraint::parse(repaired).is_ok(), "{message}");
    }
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

offermill_fuzz::harness!(check);
