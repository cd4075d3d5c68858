//! Constraints: what an agent's attributes must say before its offers are used.
//!
//! There are two syntaxes. What begins with `expr::` is an expression; everything else is read as
//! `spark.mesos.constraints` is, to the letter. No constraint of Spark's begins so.
//!
//! # Spark's syntax
//!
//! ```text
//! constraint = "" | entry *( ";" entry )
//! entry      = name ":" [ value *( "," value ) ]
//! ```
//!
//! White space around an entry is dropped; any other counts.
//!
//! Every entry must hold. An entry without values holds if the agent has the attribute at all; with
//! values it depends on the attribute's type:
//!
//! | attribute | the entry holds if                         | an example that holds           |
//! |-----------|--------------------------------------------|---------------------------------|
//! | text      | it equals one of the values                | `zone:east,west` on `zone:east` |
//! | scalar    | it is at least one of the values           | `kernel:4.4` on `kernel:5`      |
//! | ranges    | a value is a whole number inside of them   | `slots:3,11` on `slots:[1-10]`  |
//! | set       | it has all the values                      | `disk:ssd` on `disk:{ssd,nvme}` |
//!
//! An attribute that the agent lacks never holds. A value that is no number does not match a
//! scalar, and one that is no whole number does not match a range: the type of an attribute is
//! known only when an offer comes, and a bad value must not cost the batch its answer. If that is
//! what the first failing entry fails for, the decline says so ([`Mismatch::Incomparable`]). Numbers are written as
//! Java's `Double.parseDouble` takes them (`4.4`, `1e1`, `5d`, `-Infinity`), its hexadecimal form
//! excepted.
//!
//! Two rules differ from Spark's on purpose. Where an agent repeats an attribute, one of the
//! repeats has to satisfy the entry (Spark keeps the last and forgets the rest). And ranges are
//! matched (Spark means to, but its code for it is never reached).
//!
//! As in Spark, a name may stand in a constraint only once, a trailing `;` is an error, and
//! trailing commas are dropped: `zone:,` asks only that the agent has a `zone`.
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
//! Names, values, globs and regular expressions are words, or stand in single or double quotation
//! marks, in which a backslash takes a quotation mark or a backslash as it is, and stands for itself
//! before anything else. A word has no white space and
//! none of `()[]{},;:=!<>~&|@#$` or quotation marks, backslashes and backticks in it, is none of
//! the words of the grammar (in large or small letters), and as a value has no `*` and no `?`.
//! White space between words and marks does not count; an interval is one word.
//!
//! | condition | holds if some attribute of the name …                                             |
//! |-----------|-----------------------------------------------------------------------------------|
//! | a name alone | is there                                                                       |
//! | `=`, `in {}` | is a text that equals one of the values, a scalar that is one of those that are numbers, ranges with one of the whole ones inside, or a set that has one |
//! | `<` and so on | is a scalar of which it is true, or ranges with a number inside of which it is |
//! | `in []`   | is a scalar in one of the intervals (ends included), or ranges that overlap one     |
//! | `like`    | is a text, or a set with an item, that is as the glob says: `*` stands for any characters, `?` for one, `\*`, `\?` and `\\` for themselves |
//! | `matches` | is a text, or a set with an item, all of which the regular expression matches (crate feature `regex`) |
//!
//! `!=`, `not in`, `not like` and `not matches` are the negations of these. So they hold for an
//! agent that lacks the attribute; `rack and rack != r1` asks for one. `not` binds closer than
//! `and`, and `and` closer than `or`.
//!
//! An expression has at most 1024 conditions and 32 regular expressions, of at most 256 KiB each when
//! compiled; its patterns have at most 4096 bytes together, and its one printed form is bound by
//! [`CONSTRAINT_BYTES_MAX`], too. So asking one takes at most time in proportion to what the agent
//! says, if an adverse one a thousand times as much.

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
mod spark;
mod superset;
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
use fingerprint::Fingerprints;
use program::Program;
use syntax_error::SyntaxError;

pub use facts::Subject;
pub use memo::Memo;
pub use mismatch::{Mismatch, Unmet};
pub use superset::{Check, Predicate, Repeats, Superset};
pub(crate) use syntax_error::{quoted, visible};
pub use verdict::{Finding, Verdict};

/// The longest constraint that is read, in bytes.
pub const CONSTRAINT_BYTES_MAX: usize = 64 * 1024;

/// A compiled constraint on agents; the module's head has its syntax and rules.
///
/// Clones share the compiled form. `Display` prints one form for all constraints that differ only
/// in the order of entries, the order or repetition of values, and spelling; parsing it gives the
/// constraint back. Two constraints are equal if they print the same.
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

/// What both syntaxes compile to. `None` in its place is the constraint that all agents meet.
#[derive(Debug)]
struct Compiled {
    /// The one text of all equal constraints.
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
    /// The constraint that every agent meets.
    #[must_use]
    pub const fn none() -> Constraint {
        Constraint(None)
    }

    /// Reads a constraint; the empty string is [`Constraint::none`].
    ///
    /// Takes linear time but for sorting, does not recurse, and refuses more than
    /// [`CONSTRAINT_BYTES_MAX`].
    ///
    /// # Errors
    /// When the string is not a constraint. The error's text shows the place and, where it can, the
    /// nearest constraint that is one; [`Error::offset`] is the place in bytes.
    pub fn parse(text: &str) -> Result<Constraint, Error> {
        if text.is_empty() {
            return Ok(Constraint::none());
        }
        match read(text) {
            Ok(compiled) => Ok(Constraint(Some(Arc::new(compiled)))),
            Err(syntax_error) => Err(syntax_error.into_error(text)),
        }
    }

    /// Whether every agent meets it.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Whether an agent with these attributes, of which nothing else is known, meets it. Never
    /// allocates, but for regular expressions; any attributes will do.
    #[must_use]
    pub fn matches(&self, attributes: &[Attribute<'_>]) -> bool {
        self.decide(&OfferFacts::of_attributes(attributes)).is_ok()
    }

    /// Whether the agent of an offer meets it. Like [`Constraint::matches`], but with its host name,
    /// region and zone.
    ///
    /// # Errors
    /// Which condition decided that it doesn't, and how.
    pub fn check(&self, offer: &Offer<'_>) -> Result<(), Unmet> {
        self.decide(&OfferFacts::of_offer(offer))
    }

    /// The same answer, condition by condition, for people.
    #[must_use]
    pub fn examine(&self, offer: &Offer<'_>) -> Verdict {
        Verdict::of(
            self.0.as_deref().map(|compiled| &compiled.program),
            &OfferFacts::of_offer(offer),
        )
    }

    /// The text of the condition with the number that an [`Unmet`] of this constraint has.
    #[must_use]
    pub fn condition(&self, number: u32) -> Option<String> {
        self.0.as_ref()?.program.condition(number).map(ToString::to_string)
    }

    fn decide(&self, facts: &OfferFacts<'_>) -> Result<(), Unmet> {
        self.0.as_ref().map_or(Ok(()), |compiled| compiled.program.run(facts))
    }
}

/// Reads a constraint that is not empty.
fn read(text: &str) -> Result<Compiled, SyntaxError> {
    if text.len() > CONSTRAINT_BYTES_MAX {
        return Err(SyntaxError {
            offset: CONSTRAINT_BYTES_MAX,
            sentence: format!("it has {} bytes", text.len()),
            expected: "expected no more than 65536 bytes".into(),
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
