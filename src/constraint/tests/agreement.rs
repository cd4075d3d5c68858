//! Properties of all constraints: they read back as printed, and match as a naive matcher says.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::{parse, ranges, set};
use crate::constraint::Constraint;
use crate::offer::{Attribute, AttributeValue};
use crate::resources::PortRange;

/// Lists of values, many of them numbers of some sort.
const VALUES: &str = "([a1 3]{0,2}|[0-4]d?)(,([a1 ]{0,2}|[0-9])){0,3}";

/// The rules of the module's head, straight from the text, one pair at a time.
fn matches_naively(text: &str, attributes: &[Attribute<'_>]) -> bool {
    let holds = |entry: &str| {
        let (name, values) = entry.trim().split_once(':').unwrap();
        let mut values: Vec<&str> = values.split(',').collect();
        while values.last() == Some(&"") {
            values.pop();
        }
        attributes.iter().filter(|attribute| attribute.name == name).any(|attribute| {
            let number = |value: &str| value.trim().trim_end_matches(['d', 'f']).parse::<f64>();
            values.is_empty()
                || match attribute.value {
                    AttributeValue::Text(text) => values.contains(&text),
                    AttributeValue::Set(items) => values.iter().all(|value| items.contains(value)),
                    AttributeValue::Scalar(scalar) => {
                        values.iter().any(|value| number(value).is_ok_and(|least| least <= scalar))
                    }
                    AttributeValue::Ranges(ranges) => values.iter().any(|value| {
                        let inside = |number| ranges.iter().any(|range| range.contains(number));
                        value.parse().is_ok_and(inside)
                    }),
                }
        })
    };
    text.is_empty() || text.split(';').all(holds)
}

#[derive(Clone, Debug)]
enum OwnedValue {
    Text(String),
    Scalar(f64),
    Ranges(Vec<PortRange>),
    Set(Vec<String>),
}

fn value() -> impl Strategy<Value = OwnedValue> {
    let range = (0_u64..6, 0_u64..6).prop_map(|(begin, end)| PortRange::new(begin, end));
    prop_oneof![
        "[a1 ]{0,2}".prop_map(OwnedValue::Text),
        (-1_i8..6).prop_map(|number| OwnedValue::Scalar(f64::from(number) / 2.0)),
        vec(range, 0..3).prop_map(OwnedValue::Ranges),
        vec("[a1 ]{0,2}", 0..4).prop_map(OwnedValue::Set),
    ]
}

proptest! {
    /// Goal: reading is total, and what is printed reads back the same and no longer than what was
    /// read. Method: arbitrary strings and strings of nothing but marks.
    #[test]
    fn printing_reads_back(text in prop_oneof![any::<String>(), "[ab1:;, \t\u{2003}.]{0,40}"]) {
        match Constraint::parse(&text) {
            Ok(constraint) => {
                let printed = constraint.to_string();
                prop_assert!(printed.len() <= text.len());
                prop_assert_eq!(Constraint::parse(&printed).unwrap(), constraint);
            }
            Err(error) => {
                prop_assert!(text.is_char_boundary(error.offset().unwrap()));
                let message = error.to_string();
                let proposed = message.split_once("nearest valid form: ");
                // What was abbreviated or escaped can't be read back.
                if let Some((_, valid)) = proposed.filter(|(_, text)| !text.contains(['…', '\\']))
                    && !valid.starts_with("the empty string")
                {
                    prop_assert!(Constraint::parse(valid).is_ok(), "{}", message);
                }
            }
        }
    }

    /// Goal: matching agrees with the rules as written. Method: random constraints and agents over
    /// few names and values, so that about half of the pairs match, against the naive matcher; once
    /// as they are and once amid so many other attributes that the other way of matching is taken.
    #[test]
    fn matching_agrees_with_a_naive_matcher(
        entries in btree_map("[abc]", VALUES, 0..3),
        owned in vec(("[abc]", value()), 0..6),
    ) {
        let entry = |(name, values): (&String, &String)| format!("{name}:{values}");
        let text = entries.iter().map(entry).collect::<Vec<_>>().join(";");
        let items: Vec<Vec<&str>> = owned
            .iter()
            .map(|(_, value)| match value {
                OwnedValue::Set(items) => items.iter().map(|item| &**item).collect(),
                _ => Vec::new(),
            })
            .collect();
        let mut agent: Vec<Attribute<'_>> = owned
            .iter()
            .zip(&items)
            .map(|((name, value), items)| match value {
                OwnedValue::Text(value) => Attribute::text(name, value),
                OwnedValue::Scalar(value) => Attribute::scalar(name, *value),
                OwnedValue::Ranges(value) => ranges(name, value),
                OwnedValue::Set(_) => set(name, items),
            })
            .collect();
        let constraint = parse(&text);
        let expected = matches_naively(&text, &agent);
        prop_assert_eq!(constraint.matches(&agent), expected);
        agent.resize(300, Attribute::text("other", "x"));
        prop_assert_eq!(constraint.matches(&agent), expected);
    }
}
