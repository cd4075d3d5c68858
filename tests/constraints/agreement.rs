//! Property tests of constraints: they are parsed according to the grammar, their canonical form parses back, and they
//! match like a naive matcher.

use offermill::constraint::Memo;
use offermill::resources::PortRange;
use offermill::{Attribute, AttributeValue, Constraint, Offer};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use crate::naive;

/// Pattern of lists of values, many of which are numbers in some syntax.
const VALUES: &str = "([a1 3]{0,2}|[0-4]d?)(,([a1 ]{0,2}|[0-9])){0,3}";

/// Tokens of expressions, and parts of tokens.
fn token() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a", "b", "1", "2.5", "1-3", "3-1", "a*", "?b", "and", "or", "not", "in", "like",
        "matches", "AND", "&&", "||", "!", "=", "==", "!=", "<", "<=", ">", ">=", "(", ")", "{",
        "}", "[", "]", ",", "@zone", "@region", "@", "\"", "'", "\\", "\"a b\"", "'in'", ":", ";",
        "&", " ", "é",
    ])
}

/// The text of a valid expression.
fn expression() -> impl Strategy<Value = String> {
    let subject = prop_oneof![
        4 => "[ab]",
        1 => "@(hostname|region|zone)",
        1 => Just("'a'".to_owned()),
        1 => Just("instance-type".to_owned()),
    ];
    let value = "[a1]{1,2}|\"[a1 ,]{0,2}\"|[0-3]";
    let test = prop_oneof![
        Just(String::new()),
        ("=|==|!=", value).prop_map(|(mark, value)| format!("{mark}{value}")),
        ("<|<=|>|>=", "-?[0-3](\\.5)?").prop_map(|(mark, number)| format!("{mark} {number}")),
        (" in| not in| !in", vec(value, 1..4))
            .prop_map(|(word, values)| format!("{word} {{{}}}", values.join(", "))),
        (" in| not in", vec("[0-2]|[0-1]-[1-4]", 1..3))
            .prop_map(|(word, intervals)| format!("{word} [{},]", intervals.join(","))),
        (" like| not like", "[a1*?]{1,3}").prop_map(|(word, glob)| format!("{word} {glob}")),
        pattern(),
    ];
    let condition = (subject, test).prop_map(|(subject, test)| format!("{subject}{test}"));
    let tree = condition.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            (vec(inner.clone(), 1..4), " and | && ").prop_map(|(all, and)| all.join(&and)),
            (vec(inner.clone(), 1..4), prop::sample::select(vec![" or ", "||"]))
                .prop_map(|(all, or)| format!("({})", all.join(or))),
            inner.clone().prop_map(|one| format!("not ({one})")),
            inner.prop_map(|one| format!("!!{one}")),
        ]
    });
    tree.prop_map(|tree| format!("expr::{tree}"))
}

#[cfg(feature = "regex")]
fn pattern() -> impl Strategy<Value = String> {
    prop::sample::select(vec![" matches '(a|1)[a1]?'", " not matches a", " matches '^1*$'"])
        .prop_map(str::to_owned)
}

#[cfg(not(feature = "regex"))]
fn pattern() -> impl Strategy<Value = String> {
    Just(String::new())
}

fn entries() -> impl Strategy<Value = String> {
    btree_map("[abc]", VALUES, 0..3).prop_map(|entries| {
        let entry = |(name, values): (&String, &String)| format!("{name}:{values}");
        entries.iter().map(entry).collect::<Vec<_>>().join(";")
    })
}

pub(crate) fn constraint() -> impl Strategy<Value = String> {
    prop_oneof![entries(), expression()]
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

/// An agent's attributes and place, as offers show them.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    attributes: Vec<(String, OwnedValue)>,
    hostname: String,
    region: Option<String>,
    zone: Option<String>,
}

pub(crate) fn agent() -> impl Strategy<Value = Agent> {
    let place = || "[a1]{0,2}";
    let name = prop_oneof![8 => "[abc]".boxed(), 1 => Just("instance-type".to_owned()).boxed()];
    (vec((name, value()), 0..6), place(), prop::option::of(place()), prop::option::of(place()))
        .prop_map(|(attributes, hostname, region, zone)| Agent {
            attributes,
            hostname,
            region,
            zone,
        })
}

impl Agent {
    /// Returns the same agent with only the first attribute of each name.
    pub(crate) fn without_repeats(mut self) -> Agent {
        let mut seen = std::collections::BTreeSet::new();
        self.attributes.retain(|(name, _)| seen.insert(name.clone()));
        self
    }

    /// Calls `with` with an offer of the agent that has `more` irrelevant attributes.
    pub(crate) fn offer<T>(&self, more: usize, with: impl FnOnce(&Offer<'_>) -> T) -> T {
        let items: Vec<Vec<&str>> = self
            .attributes
            .iter()
            .map(|(_, value)| match value {
                OwnedValue::Set(items) => items.iter().map(|item| &**item).collect(),
                _ => Vec::new(),
            })
            .collect();
        let own = self.attributes.iter().zip(&items).map(|((name, value), items)| {
            let value = match value {
                OwnedValue::Text(value) => AttributeValue::Text(value),
                OwnedValue::Scalar(value) => AttributeValue::Scalar(*value),
                OwnedValue::Ranges(value) => AttributeValue::Ranges(value),
                OwnedValue::Set(_) => AttributeValue::Set(items),
            };
            Attribute { name, value }
        });
        let mut attributes: Vec<Attribute<'_>> = own.collect();
        attributes.resize(attributes.len() + more, Attribute::text("other", "x"));
        let mut offer = Offer::new("o", "S1", &self.hostname, &[], &attributes);
        (offer.region, offer.zone) = (self.region.as_deref(), self.zone.as_deref());
        with(&offer)
    }
}

proptest! {
    /// Goal: parsing never panics, the canonical form parses back to the same constraint, errors point into the text,
    /// and the suggested repairs are valid. Method: arbitrary strings, and strings of special characters only.
    #[test]
    fn printing_reads_back(text in prop_oneof![
        any::<String>(),
        "[ab1:;, \t\u{2003}.<&]{0,40}",
        vec(token(), 0..12).prop_map(|tokens| format!("expr::{}", tokens.concat())),
        vec(token(), 0..12).prop_map(|tokens| format!(" expr:: {}", tokens.join(" "))),
        expression(),
    ]) {
        match Constraint::parse(&text) {
            Ok(constraint) => {
                let printed = constraint.to_string();
                let again = Constraint::parse(&printed);
                prop_assert_eq!(again.map_err(|error| error.to_string()), Ok(constraint.clone()));
                if !text.trim_start().starts_with("expr::") {
                    prop_assert!(printed.len() <= text.len());
                }
            }
            Err(error) => {
                prop_assert!(text.is_char_boundary(error.offset().unwrap()));
                let message = error.to_string();
                prop_assert!(message.chars().all(|c| c == '\n' || !c.is_control()), "{message:?}");
                let proposed = message.split_once("nearest valid form: ");
                // Abbreviated or escaped texts don't parse back.
                if let Some((_, valid)) = proposed.filter(|(_, text)| !text.contains(['…', '\\']))
                    && !valid.starts_with("the empty string")
                {
                    prop_assert!(Constraint::parse(valid).is_ok(), "{}", message);
                }
            }
        }
    }

    /// Goal: exactly the texts that the grammar allows are parsed. Method: compare with a recursive parser for
    /// sequences of tokens, valid expressions, and valid expressions with an insertion.
    #[test]
    fn reading_agrees_with_the_grammar(
        text in prop_oneof![
            vec(token(), 0..8).prop_map(|tokens| format!("expr::{}", tokens.concat())),
            vec(token(), 0..8).prop_map(|tokens| format!("expr::{}", tokens.join(" "))),
            constraint(),
            "[ab1:;, ]{0,12}",
        ],
        token in token(),
        place in any::<prop::sample::Index>(),
        disturbed in any::<bool>(),
    ) {
        let mut text = text;
        if disturbed && text.is_ascii() {
            text.insert_str(place.index(text.len() + 1), token);
        }
        let read = Constraint::parse(&text);
        prop_assert_eq!(read.is_ok(), naive::read(&text).is_some(), "{}: {:?}", text, read);
    }

    /// Goal: both matching algorithms agree with the documented rules. Method: compare with the naive matcher for
    /// random constraints and agents with few names and values, so that about half of the pairs match; once alone and
    /// once among enough other attributes to use the second algorithm.
    #[test]
    fn matching_agrees_with_a_naive_matcher(text in constraint(), agent in agent()) {
        let constraint = Constraint::parse(&text).unwrap();
        let reread = Constraint::parse(&constraint.to_string()).unwrap();
        let book = naive::read(&text).unwrap();
        for more in [0, 300] {
            agent.offer(more, |offer| {
                let expected = naive::holds(&book, offer);
                let verdict = constraint.check(offer);
                prop_assert_eq!(verdict.is_ok(), expected, "{}", text);
                prop_assert_eq!(reread.check(offer), verdict);
                prop_assert_eq!(constraint.examine(offer).met, expected);
                if let Err(unmet) = verdict {
                    prop_assert!(constraint.condition(unmet.condition).is_some());
                }
                if !text.contains('@') {
                    prop_assert_eq!(constraint.matches(offer.attributes), expected);
                }
                Ok(())
            })?;
        }
    }

    /// Goal: a memo never returns the result of another question. Method: use one memo for random constraints and
    /// random agents, and compare with results computed without it.
    #[test]
    fn memory_answers_what_is_asked(
        texts in vec(constraint(), 1..3),
        agents in vec(agent(), 1..3),
        order in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..20),
    ) {
        let constraints: Vec<_> = texts.iter().map(|text| Constraint::parse(text).unwrap()).collect();
        let mut memo = Memo::default();
        for (constraint, agent) in order {
            let constraint = &constraints[constraint.index(constraints.len())];
            agents[agent.index(agents.len())].offer(0, |offer| {
                prop_assert_eq!(constraint.check_with(&mut memo, offer), constraint.check(offer));
                Ok(())
            })?;
        }
    }
}
