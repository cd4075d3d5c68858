//! Owned attributes of agents, and their text form, such as `zone:east;tier:3;ports:[1-9]`.
//!
//! ```text
//! attributes = [ attribute ] *( ";" [ attribute ] )
//! attribute  = name ":" value
//! value      = number | "[" [ whole "-" whole *( "," whole "-" whole ) ] "]"
//!            | "{" [ item *( "," item ) ] "}" | text
//! ```
//!
//! As with the `--attributes` of a Mesos agent, a value that is a finite number becomes a scalar,
//! intervals become ranges, and everything else is text; names may repeat. A stock Mesos agent
//! rejects sets; they are parsed here because offers can carry them. White space around names,
//! values and items is removed.

use std::fmt;

use super::{Attribute, AttributeValue};
use crate::error::Error;

use crate::resources::PortRange;

/// The maximum length of an attribute text, in bytes.
pub const ATTRIBUTES_BYTES_MAX: usize = 64 * 1024;

const ALLOWED: &str = "NAME:VALUE[;...], where a value is a number, [FROM-TO,...], {ITEM,...} or \
                       text, at most 65536 bytes without control characters";

/// An [`Attribute`] that owns its parts.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OwnedAttribute {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: OwnedAttributeValue,
}

/// An [`AttributeValue`] that owns its parts. Parsing and printing round-trip.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum OwnedAttributeValue {
    /// Text.
    Text(String),
    /// A number. With the feature `serde`, text formats such as JSON have an infinite number or none as text: `inf`,
    /// `-inf`, `NaN`.
    Scalar(#[cfg_attr(feature = "serde", serde(with = "scalar"))] f64),
    /// Intervals.
    Ranges(Vec<PortRange>),
    /// Named items.
    Set(Vec<String>),
}

/// Numbers that JSON can't express, too: it would have `null`, which can't be read back.
#[cfg(feature = "serde")]
mod scalar {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum NumberOrText {
        Number(f64),
        Text(String),
    }

    pub(super) fn serialize<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() && !number.is_finite() {
            return serializer.collect_str(number);
        }
        number.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        if !deserializer.is_human_readable() {
            return f64::deserialize(deserializer);
        }
        match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Number(number) => Ok(number),
            NumberOrText::Text(text) => match &*text {
                "inf" => Ok(f64::INFINITY),
                "-inf" => Ok(f64::NEG_INFINITY),
                "NaN" => Ok(f64::NAN),
                _ => Err(D::Error::custom("expected a number, \"inf\", \"-inf\" or \"NaN\"")),
            },
        }
    }
}

/// Parses attributes; an empty text means none.
///
/// # Errors
/// Fails if an attribute has no name or no value, if intervals or a set can't be parsed, or if the
/// text is longer than [`ATTRIBUTES_BYTES_MAX`] or contains control characters.
pub fn parse(text: &str) -> Result<Vec<OwnedAttribute>, Error> {
    let refused = |what: &str| {
        let shown: String = what.chars().take(80).collect();
        Error::setting("attributes", shown, ALLOWED)
    };
    if !is_readable(text) {
        return Err(refused(text));
    }
    let attributes = text.split(';').map(str::trim).filter(|one| !one.is_empty());
    attributes.map(|one| attribute(one).ok_or_else(|| refused(one))).collect()
}

/// Returns whether a text is short enough and free of control characters.
pub(crate) fn is_readable(text: &str) -> bool {
    text.len() <= ATTRIBUTES_BYTES_MAX && !text.chars().any(char::is_control)
}

fn attribute(text: &str) -> Option<OwnedAttribute> {
    let (name, value) = text.split_once(':')?;
    let name = name.trim_end();
    let value = OwnedAttributeValue::parse(value)?;
    (!name.is_empty()).then(|| OwnedAttribute { name: name.to_owned(), value })
}

impl OwnedAttributeValue {
    /// Parses one value. `None` if it is empty, or begins like intervals or a set but isn't one.
    pub(crate) fn parse(text: &str) -> Option<OwnedAttributeValue> {
        let text = text.trim();
        let items = |inside: &str| -> Vec<String> {
            let items = inside.split(',').map(|item| item.trim().to_owned());
            if inside.trim().is_empty() { Vec::new() } else { items.collect() }
        };
        if let Some(inside) = text.strip_prefix('[') {
            let intervals = items(inside.strip_suffix(']')?);
            let intervals = intervals.iter().map(|interval| PortRange::parse(interval));
            return Some(OwnedAttributeValue::Ranges(intervals.collect::<Option<_>>()?));
        }
        if let Some(inside) = text.strip_prefix('{') {
            let items = items(inside.strip_suffix('}')?);
            let is_item = |item: &String| !item.is_empty() && !item.contains(['{', '}']);
            return items.iter().all(is_item).then_some(OwnedAttributeValue::Set(items));
        }
        // "nan", "infinity" and hexadecimal numbers are text.
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        match number {
            Some(number) => Some(OwnedAttributeValue::Scalar(number)),
            None => (!text.is_empty()).then(|| OwnedAttributeValue::Text(text.to_owned())),
        }
    }
}

impl From<&Attribute<'_>> for OwnedAttribute {
    fn from(attribute: &Attribute<'_>) -> OwnedAttribute {
        let value = match attribute.value {
            AttributeValue::Text(text) => OwnedAttributeValue::Text(text.to_owned()),
            AttributeValue::Scalar(number) => OwnedAttributeValue::Scalar(number),
            AttributeValue::Ranges(ranges) => OwnedAttributeValue::Ranges(ranges.to_vec()),
            AttributeValue::Set(items) => {
                OwnedAttributeValue::Set(items.iter().map(|item| (*item).to_owned()).collect())
            }
        };
        OwnedAttribute { name: attribute.name.to_owned(), value }
    }
}

impl fmt::Display for OwnedAttribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.value)
    }
}

impl fmt::Display for OwnedAttributeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OwnedAttributeValue::Text(text) => f.write_str(text),
            OwnedAttributeValue::Scalar(number) => number.fmt(f),
            OwnedAttributeValue::Ranges(ranges) => {
                let ranges: Vec<String> = ranges.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", ranges.join(","))
            }
            OwnedAttributeValue::Set(items) => write!(f, "{{{}}}", items.join(",")),
        }
    }
}

/// The items of all sets of some attributes, borrowed side by side for [`borrow`].
#[derive(Debug)]
pub struct Items<'a>(Vec<&'a str>);

impl<'a> Items<'a> {
    /// Collects the items of these attributes, in their order.
    pub fn of(attributes: impl IntoIterator<Item = &'a OwnedAttribute>) -> Items<'a> {
        let items = attributes.into_iter().flat_map(|attribute| match &attribute.value {
            OwnedAttributeValue::Set(items) => &items[..],
            _ => &[],
        });
        Items(items.map(String::as_str).collect())
    }
}

/// Borrows attributes in the form of an [`Offer`](super::Offer). `items` must come from the same
/// attributes in the same order; a set whose items are missing is empty.
pub fn borrow<'a>(
    attributes: impl IntoIterator<Item = &'a OwnedAttribute>,
    items: &'a Items<'a>,
) -> Vec<Attribute<'a>> {
    let mut items = &items.0[..];
    let borrow = |attribute: &'a OwnedAttribute| {
        let value = match &attribute.value {
            OwnedAttributeValue::Text(text) => AttributeValue::Text(text),
            OwnedAttributeValue::Scalar(number) => AttributeValue::Scalar(*number),
            OwnedAttributeValue::Ranges(ranges) => AttributeValue::Ranges(ranges),
            OwnedAttributeValue::Set(set) => {
                let (own, rest) = items.split_at_checked(set.len()).unwrap_or_default();
                items = rest;
                AttributeValue::Set(own)
            }
        };
        Attribute { name: &attribute.name, value }
    };
    attributes.into_iter().map(borrow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(text: &str) -> Vec<OwnedAttributeValue> {
        parse(text).unwrap().into_iter().map(|attribute| attribute.value).collect()
    }

    /// Goal: values have the types that a Mesos agent gives them. Method: one of each type, and
    /// words that look like numbers.
    #[test]
    fn values_have_their_kinds() {
        let set = |items: &[&str]| {
            OwnedAttributeValue::Set(items.iter().map(|item| (*item).to_owned()).collect())
        };
        let ranges = |ranges: &[(u64, u64)]| {
            let ranges = ranges.iter().map(|(begin, end)| PortRange::new(*begin, *end));
            OwnedAttributeValue::Ranges(ranges.collect())
        };
        let text = |text: &str| OwnedAttributeValue::Text(text.to_owned());
        assert_eq!(
            values(
                "tier:3;load: -0.5 ;p:[1-2, 10 - 10];s:{a, b};none:[];of:{ };a:nan;b:0x1f;c:x:y;"
            ),
            [
                OwnedAttributeValue::Scalar(3.0),
                OwnedAttributeValue::Scalar(-0.5),
                ranges(&[(1, 2), (10, 10)]),
                set(&["a", "b"]),
                ranges(&[]),
                set(&[]),
                text("nan"),
                text("0x1f"),
                text("x:y"),
            ]
        );
        assert!(parse("").unwrap().is_empty());
        assert_eq!(parse(" zone : east ; zone:west").unwrap()[0].name, "zone");
    }

    /// Goal: malformed text is rejected with a sentence. Method: each kind of mistake.
    #[test]
    fn mistakes_are_refused() {
        for text in [
            "zone", "zone:", ":east", "p:[1-2", "p:[2-1]", "p:[x-y]", "p:[1]", "p:[1-2,]", "s:{a",
            "s:{a,,b}", "s:{{}", "z:a;rack", "z:a\nb",
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.is_setting());
            assert!(error.to_string().starts_with("attributes is "), "{error}");
        }
        let late = format!("{}p:[3-1]", "zone:east;".repeat(100));
        assert!(parse(&late).unwrap_err().to_string().contains("\"p:[3-1]\""));
        assert!(parse(&format!("z:{}", "x".repeat(ATTRIBUTES_BYTES_MAX))).is_err());
    }

    proptest! {
        /// Goal: parsing is total, printed attributes parse to the same, and lending changes
        /// nothing. Method: strings of punctuation and names.
        #[test]
        fn printing_reads_back(text in "[az1.:;,\\[\\]{} -]{0,40}") {
            let Ok(attributes) = parse(&text) else { return Ok(()) };
            let printed: Vec<String> = attributes.iter().map(ToString::to_string).collect();
            prop_assert_eq!(&parse(&printed.join(";")).unwrap(), &attributes);
            let items = Items::of(&attributes);
            for (owned, lent) in attributes.iter().zip(borrow(&attributes, &items)) {
                prop_assert_eq!(&*owned.name, lent.name);
                let same = match (&owned.value, lent.value) {
                    (OwnedAttributeValue::Text(own), AttributeValue::Text(text)) => own == text,
                    (OwnedAttributeValue::Scalar(own), AttributeValue::Scalar(number)) => *own == number,
                    (OwnedAttributeValue::Ranges(own), AttributeValue::Ranges(ranges)) => own == ranges,
                    (OwnedAttributeValue::Set(own), AttributeValue::Set(items)) => own == items,
                    _ => false,
                };
                prop_assert!(same, "{:?} {:?}", owned, lent);
            }
        }
    }
}
