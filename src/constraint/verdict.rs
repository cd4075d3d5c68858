//! A readable report of how an agent's attributes compare with each condition of a constraint.

use std::fmt;

use super::condition::Condition;
use super::facts::OfferFacts;
use super::mismatch::Mismatch;
use super::program::Program;
use crate::offer::AttributeValue;

/// Whether an agent meets a constraint, with the result of each condition. Returned by
/// [`Constraint::examine`](super::Constraint::examine). `Display` prints one line per condition and one for the result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Verdict {
    /// Whether the agent meets the constraint.
    pub met: bool,
    /// The result of each condition, in the order of evaluation.
    pub findings: Vec<Finding>,
}

/// The result of one condition for one agent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Finding {
    /// The condition, in the syntax in which it was written.
    pub condition: String,
    /// How the condition fails; `None` if it holds.
    pub mismatch: Option<Mismatch>,
    /// The agent's values of the attribute, each with its type, at most 8 of them and shortened. Empty if the attribute
    /// is absent.
    pub values: Vec<String>,
}

/// The maximum number of values, and of items of one value, that a finding shows; and the maximum number of characters
/// of each text.
const VALUES_SHOWN: usize = 8;
const CHARACTERS_SHOWN: usize = 80;

/// The maximum width of the column of conditions, in characters. Longer conditions don't widen it.
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
    /// Writes one line per condition, then `match` or `no match`.
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

/// Shortens a text to [`CHARACTERS_SHOWN`] characters and escapes characters that a terminal would interpret.
fn cut(text: &str) -> String {
    let mut shown: String =
        text.chars().take(CHARACTERS_SHOWN).flat_map(super::syntax_error::visible_char).collect();
    if text.chars().nth(CHARACTERS_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}
