//! Why an agent meets a constraint or doesn't, for people.

use std::fmt;

use super::condition::Condition;
use super::facts::OfferFacts;
use super::mismatch::Mismatch;
use super::program::Program;
use crate::offer::AttributeValue;

/// Whether an agent meets a constraint, and each condition's part in it. From
/// [`Constraint::examine`](super::Constraint::examine).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Verdict {
    /// Whether the agent meets the constraint.
    pub met: bool,
    /// The conditions in the order in which they are asked.
    pub findings: Vec<Finding>,
}

/// One condition of a constraint, against one agent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Finding {
    /// The condition, in the syntax that it was written in.
    pub condition: String,
    /// Nothing if it holds.
    pub mismatch: Option<Mismatch>,
    /// What the agent has, each with its type; nothing if the attribute is absent.
    pub values: Vec<String>,
}

/// The most values of an agent that a finding shows, and the most characters of each.
const VALUES_SHOWN: usize = 8;
const CHARACTERS_SHOWN: usize = 80;

/// Conditions longer than this, in characters, don't push the others' columns apart.
const COLUMN_MAX: usize = 32;

impl Verdict {
    pub(super) fn of(program: Option<&Program>, facts: &OfferFacts<'_>) -> Verdict {
        let Some(program) = program else { return Verdict { met: true, findings: Vec::new() } };
        let sorted = facts.sorted_attributes();
        let finding = |condition: &Condition| {
            let own = facts.about(&condition.subject, &sorted);
            let mismatch = (!condition.holds(&own)).then(|| condition.mismatch(&own));
            let values = own.values(&condition.subject).take(VALUES_SHOWN).map(|v| shown(&v));
            Finding { condition: condition.to_string(), mismatch, values: values.collect() }
        };
        Verdict {
            met: program.run(facts).is_ok(),
            findings: program.in_order().map(finding).collect(),
        }
    }
}

impl fmt::Display for Verdict {
    /// One line a condition and one for the whole.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> = self.findings.iter().map(|one| cut(&one.condition)).collect();
        let widths = shown.iter().map(|condition| condition.chars().count());
        let width = widths.max().unwrap_or_default().min(COLUMN_MAX);
        for (Finding { mismatch, values, .. }, condition) in self.findings.iter().zip(&shown) {
            let has = values.join("; ");
            match mismatch {
                None => writeln!(f, "holds  {condition:width$}  {has}")?,
                Some(mismatch) if has.is_empty() => {
                    writeln!(f, "fails  {condition:width$}  {mismatch}")?;
                }
                Some(mismatch) => {
                    writeln!(f, "fails  {condition:width$}  {mismatch}: {has}")?;
                }
            }
        }
        f.write_str(if self.met { "match" } else { "no match" })
    }
}

fn shown(value: &AttributeValue<'_>) -> String {
    let list = |items: &mut dyn Iterator<Item = String>| {
        let mut shown: Vec<String> = items.take(VALUES_SHOWN + 1).collect();
        if shown.len() > VALUES_SHOWN {
            shown.truncate(VALUES_SHOWN);
            shown.push("…".to_owned());
        }
        shown.join(",")
    };
    match *value {
        AttributeValue::Text(text) => format!("text `{}`", cut(text)),
        AttributeValue::Scalar(scalar) => format!("scalar {scalar}"),
        AttributeValue::Ranges(ranges) => {
            format!("ranges [{}]", list(&mut ranges.iter().map(ToString::to_string)))
        }
        AttributeValue::Set(items) => {
            format!("set {{{}}}", list(&mut items.iter().map(|item| cut(item))))
        }
    }
}

/// So much of a text as there is room for, with nothing that a terminal would take for a command.
fn cut(text: &str) -> String {
    let mut shown: String =
        text.chars().take(CHARACTERS_SHOWN).flat_map(super::syntax_error::visible_char).collect();
    if text.chars().nth(CHARACTERS_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}
