//! Constraints on agent attributes: an agent's offers are used only if its attributes meet the constraint.
//!
//! There are two syntaxes. A constraint that begins with `expr::` is an expression. Any other constraint is parsed
//! exactly as Spark parses `spark.mesos.constraints`; no valid constraint in Spark's syntax begins with `expr::`.
//!
//! # Spark's syntax
//!
//! ```text
//! constraint = "" | entry *( ";" entry )
//! entry      = name ":" [ value *( "," value ) ]
//! ```
//!
//! White space around an entry is ignored; any other white space is significant.
//!
//! Every entry must hold. An entry without values holds if the agent has the attribute. An entry with values is
//! evaluated by the attribute's type:
//!
//! | attribute | the entry holds if                         | an example that holds           |
//! |-----------|--------------------------------------------|---------------------------------|
//! | text      | it equals one of the values                | `zone:east,west` on `zone:east` |
//! | scalar    | it is at least one of the values           | `kernel:4.4` on `kernel:5`      |
//! | ranges    | a value is a whole number in one of them   | `slots:3,11` on `slots:[1-10]`  |
//! | set       | it contains all the values                 | `disk:ssd` on `disk:{ssd,nvme}` |
//!
//! An entry never holds if the agent lacks the attribute. A value that isn't a number doesn't match a scalar, and a
//! value that isn't a whole number doesn't match ranges. These aren't parse errors: an attribute's type is known only
//! when an offer arrives, and a bad value must not fail the batch. If the first failing entry fails for this reason,
//! the decline reports [`Mismatch::Incomparable`]. Numbers are written as Java's `Double.parseDouble` accepts them
//! (`4.4`, `1e1`, `5d`, `-Infinity`), except in hexadecimal form.
//!
//! Two rules deliberately differ from Spark's. If an agent has several attributes of one name, it suffices that one of
//! them satisfies the entry (Spark uses only the last). And ranges are matched (Spark has code for this, but never
//! reaches it).
//!
//! As in Spark, each name may occur only once in a constraint, a trailing `;` is an error, and trailing commas are
//! dropped: `zone:,` requires only that the agent has a `zone`.
//!
//! # Expressions
//!
//! ```text
//! constraint = "expr::" either
//! either     = all *( or all )
//! all        = one *( and one )
//! one        = *not ( condition | "(" either ")" )
//! condition  = subject
//!            | subject ( "=" | "==" | "!=" ) value
//!            | subject ( "<" | "<=" | ">" | ">=" ) number
//!            | subject [ "not" ] "in" "{" value *( "," value ) [ "," ] "}"
//!            | subject [ "not" ] "in" "[" interval *( "," interval ) [ "," ] "]"
//!            | subject [ "not" ] "like" glob
//!            | subject [ "not" ] "matches" regex
//! subject    = name | "@hostname" | "@region" | "@zone"
//! interval   = whole [ "-" whole ]
//! or         = "or" | "||"
//! and        = "and" | "&&"
//! not        = "not" | "!"
//! ```
//!
//! For example `expr:: (zone in {east, west} or @region = eu) and tier >= 3 and not rack like r1*`.
//!
//! Names, values, globs and regular expressions are words, or texts in single or double quotation marks. Within
//! quotation marks a backslash escapes a quotation mark or a backslash; before any other character it stands for
//! itself. A word contains no white space and none of `()[]{},;:=!<>~&|@#$`, quotation marks, backslashes and
//! backticks. It must not be a keyword of the grammar (in upper or lower case). If it is a value, it must not contain
//! `*` or `?`. White space between words and marks is ignored. An interval is one word.
//!
//! | condition | holds if some attribute of this name …                                            |
//! |-----------|-----------------------------------------------------------------------------------|
//! | a name alone | exists                                                                         |
//! | `=`, `in {}` | is a text that equals one of the values, a scalar that equals one of the numbers among them, ranges that contain one of the whole numbers among them, or a set that contains one of the values |
//! | `<` and so on | is a scalar for which the comparison is true, or ranges that contain such a number |
//! | `in []`   | is a scalar in one of the intervals (inclusive), or ranges that overlap one         |
//! | `like`    | is a text, or a set with an item, that matches the glob: `*` stands for any characters, `?` for one; `\*`, `\?` and `\\` stand for `*`, `?` and `\` |
//! | `matches` | is a text, or a set with an item, that the regular expression matches as a whole (crate feature `regex`) |
//!
//! `!=`, `not in`, `not like` and `not matches` are the negations of these. Therefore they also hold for an agent that
//! lacks the attribute; `rack and rack != r1` requires that it has one. `not` binds more closely than `and`, and `and`
//! more closely than `or`.
//!
//! An expression has at most 1024 conditions and 32 regular expressions of at most 256 KiB each when compiled. Its
//! patterns have at most 4096 bytes together, and its canonical form has at most [`CONSTRAINT_BYTES_MAX`] bytes.
//! Therefore evaluating an expression takes at most linear time in the size of the agent's attributes; an adversarial
//! expression may take a thousand times as long as a usual one.

mod condition;
mod expression;
mod facts;
mod fingerprint;
mod glob;
mod memo;
mod mismatch;
mod numbers;
mod pattern;
mod program;
mod pushdown;
mod spark;
mod syntax_error;
#[cfg(test)]
mod tests;
mod verdict;
mod word;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::Error;
use crate::offer::{Attribute, Offer};
use facts::OfferFacts;
pub(crate) use fingerprint::AttributeFingerprints;
use fingerprint::Fingerprints;
use program::Program;
use syntax_error::SyntaxError;

pub use facts::Subject;
pub use memo::Memo;
pub use mismatch::{Mismatch, Unmet};
pub use pushdown::{Check, ConstraintPushdown, DuplicateAttributes, Predicate};
pub(crate) use syntax_error::{quoted, visible};
pub use verdict::{Finding, Verdict};

/// The maximum length of a constraint, in bytes.
pub const CONSTRAINT_BYTES_MAX: usize = 64 * 1024;

/// A compiled constraint on agents. The [module documentation](self) describes the syntax and the rules.
///
/// Clones share the compiled form. `Display` prints the canonical form, which is the same for all constraints that
/// differ only in the order of entries, the order or repetition of values, or spelling. Parsing the canonical form
/// returns an equal constraint. Two constraints are equal if their canonical forms are.
///
/// ```
/// use offermill::{Attribute, Constraint};
///
/// let constraint = Constraint::parse("zone:east,west;rack:")?;
/// let agent = [Attribute::text("rack", "r7"), Attribute::text("zone", "west")];
/// assert!(constraint.matches(&agent));
/// assert!(!constraint.matches(&agent[1..])); // no rack
/// assert!(Constraint::none().matches(&[]));
///
/// let expression = Constraint::parse("expr:: zone != east and (rack like r* or tier >= 3)")?;
/// assert!(expression.matches(&agent));
/// # Ok::<(), offermill::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Constraint(Option<Arc<Compiled>>);

/// The compiled form of both syntaxes. `None` in its place means the constraint that all agents meet.
#[derive(Debug)]
struct Compiled {
    /// The canonical form, the same for all equal constraints.
    text: Box<str>,
    fingerprints: Fingerprints,
    program: Program,
}

impl PartialEq for Compiled {
    fn eq(&self, other: &Compiled) -> bool {
        self.text == other.text
    }
}

impl Eq for Compiled {}

impl Constraint {
    /// Returns the constraint that every agent meets.
    #[must_use]
    pub const fn none() -> Constraint {
        Constraint(None)
    }

    /// Parses a constraint. The empty string is [`Constraint::none`].
    ///
    /// Takes linear time except for sorting, and doesn't recurse.
    ///
    /// # Errors
    /// Fails if the text isn't a constraint or is longer than [`CONSTRAINT_BYTES_MAX`]. The message shows where parsing
    /// failed and, if possible, the nearest valid constraint. [`Error::offset`] returns the position in bytes.
    pub fn parse(text: &str) -> Result<Constraint, Error> {
        if text.is_empty() {
            return Ok(Constraint::none());
        }
        match read(text) {
            Ok(compiled) => Ok(Constraint(Some(Arc::new(compiled)))),
            Err(syntax_error) => Err(syntax_error.into_error(text)),
        }
    }

    /// Returns whether this is the empty constraint, which every agent meets.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Returns whether an agent with these attributes meets the constraint. The agent's host name, region and zone are
    /// treated as unknown. The attributes may be in any order and repeat names. Never allocates, except in regular
    /// expressions.
    #[must_use]
    pub fn matches(&self, attributes: &[Attribute<'_>]) -> bool {
        self.decide(&OfferFacts::of_attributes(attributes)).is_ok()
    }

    /// Checks whether an offer's agent meets the constraint. Unlike [`Constraint::matches`], this uses the agent's host
    /// name, region and zone as well.
    ///
    /// # Errors
    /// Returns the condition that decided that the agent doesn't meet the constraint, and how it failed.
    pub fn check(&self, offer: &Offer<'_>) -> Result<(), Unmet> {
        self.decide(&OfferFacts::of_offer(offer))
    }

    /// Evaluates the constraint against an offer's agent, and reports every condition's result for display.
    #[must_use]
    pub fn examine(&self, offer: &Offer<'_>) -> Verdict {
        Verdict::of(
            self.0.as_deref().map(|compiled| &compiled.program),
            &OfferFacts::of_offer(offer),
        )
    }

    /// Returns the text of the condition with this number, as in [`Unmet::condition`]; `None` if there is no such
    /// condition.
    #[must_use]
    pub fn condition(&self, number: u32) -> Option<String> {
        self.0.as_ref()?.program.condition(number).map(ToString::to_string)
    }

    fn decide(&self, facts: &OfferFacts<'_>) -> Result<(), Unmet> {
        self.0.as_ref().map_or(Ok(()), |compiled| compiled.program.run(facts))
    }
}

/// Parses a constraint that isn't empty.
fn read(text: &str) -> Result<Compiled, SyntaxError> {
    if text.len() > CONSTRAINT_BYTES_MAX {
        return Err(SyntaxError {
            offset: CONSTRAINT_BYTES_MAX,
            sentence: format!("it has {} bytes", text.len()),
            expected: format!("expected no more than {CONSTRAINT_BYTES_MAX} bytes").into(),
            repaired: None,
        });
    }
    let (program, text) = match expression::after_prefix(text) {
        Some(start) => {
            let read = expression::read(text, start)?;
            (read.program, read.text)
        }
        None => {
            let conditions = spark::read(text)?;
            let entries: Vec<String> = conditions.iter().map(ToString::to_string).collect();
            (Program::all_of(conditions), entries.join(";"))
        }
    };
    let fingerprints = Fingerprints::new(program.subjects());
    Ok(Compiled { text: text.into(), fingerprints, program })
}

impl FromStr for Constraint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Constraint, Error> {
        Constraint::parse(text)
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_ref().map_or("", |compiled| &compiled.text))
    }
}

impl fmt::Debug for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Constraint").field(&format_args!("{self}")).finish()
    }
}
