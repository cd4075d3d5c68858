//! Tests that the offer constraints sent to a Mesos master hide no agent that meets the constraint.

use std::collections::BTreeSet;

use offermill::constraint::{Check, ConstraintPushdown, DuplicateAttributes, Predicate, Subject};
use offermill::{AttributeValue, Constraint, Offer};
use proptest::prelude::*;

use crate::agreement::{agent, constraint};

/// The value that a predicate is applied to.
enum Asked<'a> {
    Nothing,
    Text(&'a str),
    /// An attribute of another type.
    Other,
}

/// Evaluates a check like the master: only the first attribute of a name counts, and attributes that aren't text pass
/// text checks. The host name always exists, but may be empty.
fn passes(check: &Check, offer: &Offer<'_>) -> bool {
    let place = |place: Option<_>| place.map_or(Asked::Nothing, Asked::Text);
    let asked = match &check.subject {
        Subject::Attribute(name) => {
            match offer.attributes.iter().find(|attribute| *attribute.name == **name) {
                None => Asked::Nothing,
                Some(attribute) => match attribute.value {
                    AttributeValue::Text(text) => Asked::Text(text),
                    _ => Asked::Other,
                },
            }
        }
        Subject::Hostname => Asked::Text(offer.hostname),
        Subject::Region => place(offer.region),
        Subject::Zone => place(offer.zone),
    };
    match (&check.predicate, asked) {
        (Predicate::Exists, asked) => !matches!(asked, Asked::Nothing),
        (Predicate::NotExists, asked) => matches!(asked, Asked::Nothing),
        (_, Asked::Other) => true,
        (Predicate::TextEquals(value), Asked::Text(text)) => **value == *text,
        (Predicate::TextNotEquals(value), Asked::Text(text)) => **value != *text,
        (Predicate::TextMatches(regex), Asked::Text(text)) => matches_all(regex, text),
        (Predicate::TextNotMatches(regex), Asked::Text(text)) => !matches_all(regex, text),
        (Predicate::TextEquals(_) | Predicate::TextMatches(_), Asked::Nothing) => false,
        (Predicate::TextNotEquals(_) | Predicate::TextNotMatches(_), Asked::Nothing) => true,
    }
}

fn lets_pass(pushdown: &ConstraintPushdown, offer: &Offer<'_>) -> bool {
    let group = |group: &Vec<Check>| group.iter().all(|check| passes(check, offer));
    pushdown.is_everything() || pushdown.groups().iter().any(group)
}

/// A matcher for the part of RE2's syntax that pushdowns use. It computes the set of all possible ends of a match.
struct Reader<'a> {
    rest: &'a str,
    text: &'a [u8],
}

type Ends = BTreeSet<usize>;

fn matches_all(regex: &str, text: &str) -> bool {
    let mut reader = Reader { rest: regex, text: text.as_bytes() };
    let ends = reader.either(&Ends::from([0]));
    assert!(reader.rest.is_empty(), "{regex} is read up to {}", reader.rest);
    ends.contains(&text.len())
}

impl Reader<'_> {
    fn take(&mut self, mark: &str) -> bool {
        let rest = self.rest.strip_prefix(mark);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn either(&mut self, from: &Ends) -> Ends {
        let mut ends = self.all(from);
        while self.take("|") {
            ends.extend(self.all(from));
        }
        ends
    }

    fn all(&mut self, from: &Ends) -> Ends {
        let mut ends = from.clone();
        while !self.rest.is_empty() && !self.rest.starts_with(['|', ')']) {
            let begin = self.rest;
            let once = self.atom(&ends);
            let atom = begin;
            if self.take("?") {
                ends.extend(once);
            } else if self.rest.starts_with(['*', '+']) {
                let none = if self.take("*") { ends } else { Ends::new() };
                self.take("+");
                let after = self.rest;
                let mut all = once;
                loop {
                    self.rest = atom;
                    let more = self.atom(&all);
                    if more.is_subset(&all) {
                        break;
                    }
                    all.extend(more);
                }
                self.rest = after;
                all.extend(none);
                ends = all;
            } else {
                ends = once;
            }
        }
        ends
    }

    fn atom(&mut self, from: &Ends) -> Ends {
        if self.take("\\C") {
            return self.step(from, |left| (!left.is_empty()).then_some(1));
        }
        if self.take("(?s:.)") {
            return self.step(from, letter);
        }
        if self.take("(") {
            self.take("?:");
            let ends = self.either(from);
            assert!(self.take(")"));
            return ends;
        }
        if self.take(".") {
            return self.step(from, |left| letter(left).filter(|_| left[0] != b'\n'));
        }
        if self.take("[") {
            let (class, rest) = self.rest.split_once(']').expect("a class ends");
            self.rest = rest;
            return self.step(from, |left| in_class(class.as_bytes(), *left.first()?).then_some(1));
        }
        let mut letters = self.rest.chars();
        let mut wanted = letters.next().expect("there is more");
        if wanted == '\\' {
            wanted = letters.next().expect("something is escaped");
        }
        self.rest = letters.as_str();
        if wanted == 'x' && self.take("{") {
            let (digits, rest) = self.rest.split_once('}').expect("a number ends");
            self.rest = rest;
            let number = u32::from_str_radix(digits, 16).expect("it is a number");
            wanted = char::from_u32(number).expect("it is a letter's");
        }
        let wanted = wanted.to_string();
        self.step(from, |left| left.starts_with(wanted.as_bytes()).then_some(wanted.len()))
    }

    /// Returns all ends after one more step. `taken` returns how many of the remaining bytes the step consumes, if it
    /// matches.
    fn step(&self, from: &Ends, taken: impl Fn(&[u8]) -> Option<usize>) -> Ends {
        from.iter().filter_map(|at| Some(at + taken(&self.text[*at..])?)).collect()
    }
}

/// Returns the length in bytes of the first character of a text, if the text begins with a character.
fn letter(text: &[u8]) -> Option<usize> {
    (1..=4).find(|bytes| text.get(..*bytes).is_some_and(|one| str::from_utf8(one).is_ok()))
}

fn in_class(class: &[u8], byte: u8) -> bool {
    match class {
        [begin, b'-', end, rest @ ..] => (*begin..=*end).contains(&byte) || in_class(rest, byte),
        [one, rest @ ..] => *one == byte || in_class(rest, byte),
        [] => false,
    }
}

/// Globs, regular expressions and lists with characters of one and of several bytes, each as the only condition, and a
/// host name.
fn pattern_alone() -> impl Strategy<Value = (String, String)> {
    let glob = "[a*?é.\\\\]{0,6}".prop_map(|glob| format!("like {}", quoted(&glob)));
    let regex = "[ab.](\\[[ab]-?[bc]\\]|[a.é][*+?]?|\\(a\\|b?\\)\\??|\\\\\\.){0,4}"
        .prop_map(|regex| format!("matches {}", quoted(&regex)));
    let regex =
        if cfg!(feature = "regex") { regex.boxed() } else { Just("= a".to_owned()).boxed() };
    let value = "[\\[ab|é\u{1}.\n$]{0,4}".prop_map(|value| format!("in {{{}, x}}", quoted(&value)));
    (prop_oneof![glob, regex, value], "[abé.c|\n]{0,5}")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

proptest! {
    /// Goal: no agent that meets the constraint is hidden. Method: random constraints in both syntaxes and random
    /// agents with attributes of all types and repeated names, compared with a model of the master; without repeats,
    /// only the agents' first attributes. Attributes of different types and unknown places are frequent.
    #[test]
    fn what_matches_is_never_hidden(text in constraint(), agent in agent()) {
        let constraint = Constraint::parse(&text).unwrap();
        let pushdown = constraint.pushdown(DuplicateAttributes::Allowed);
        prop_assert!(pushdown.groups().iter().all(|group| !group.is_empty()));
        let met = agent.offer(0, |offer| (constraint.check(offer).is_ok(), lets_pass(&pushdown, offer)));
        prop_assert!(!met.0 || met.1, "{} asks for {}", text, pushdown);

        let pushdown = constraint.pushdown(DuplicateAttributes::RuledOut);
        let met = agent.without_repeats().offer(0, |offer| {
            (constraint.check(offer).is_ok(), lets_pass(&pushdown, offer))
        });
        prop_assert!(!met.0 || met.1, "{} asks for {} without repeats", text, pushdown);
    }

    /// Goal: if a text is checked at all, it is checked exactly. Method: a random pattern or list, plain and negated,
    /// with a random text as the host name; every check that is made agrees with the constraint.
    #[test]
    fn patterns_mean_the_same_to_the_master((question, hostname) in pattern_alone()) {
        for (constraint, known) in [
            (format!("expr:: @hostname {question}"), !hostname.is_empty()),
            (format!("expr:: @hostname not {question}"), !hostname.is_empty()),
        ] {
            let Ok(constraint) = Constraint::parse(&constraint) else { return Ok(()) };
            let pushdown = constraint.pushdown(DuplicateAttributes::Allowed);
            let offer = Offer::new("o", "S1", &hostname, &[], &[]);
            let (met, passed) = (constraint.check(&offer).is_ok(), lets_pass(&pushdown, &offer));
            prop_assert!(!met || passed, "{} asks for {}", constraint, pushdown);
            let text = pushdown.to_string();
            if known && !text.contains("exists") && !pushdown.is_everything() {
                prop_assert_eq!(met, passed, "{} asks for {}", constraint, text);
            }
        }
    }
}
