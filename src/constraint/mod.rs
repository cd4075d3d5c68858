//! Constraints: what an agent's attributes must say before its offers are used.
//!
//! The syntax is that of `spark.mesos.constraints`, to the letter:
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
//! known only when an offer comes, and a bad value must not cost the batch its answer. Numbers are
//! written as Java's `Double.parseDouble` takes them (`4.4`, `1e1`, `5d`, `-Infinity`), its
//! hexadecimal form excepted.
//!
//! Two rules differ from Spark's on purpose. Where an agent repeats an attribute, one of the
//! repeats has to satisfy the entry (Spark keeps the last and forgets the rest). And ranges are
//! matched (Spark means to, but its code for it is never reached).
//!
//! As in Spark, a name may stand in a constraint only once, a trailing `;` is an error, and
//! trailing commas are dropped: `zone:,` asks only that the agent has a `zone`.

mod fingerprint;
mod matching;
mod parse;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::Error;
use crate::offer::Attribute;

pub(crate) use fingerprint::fingerprint;

/// The longest constraint that is read, in bytes.
pub const CONSTRAINT_BYTES_MAX: usize = 64 * 1024;

/// A compiled constraint on agents' attributes; the module's head has its syntax and rules.
///
/// Clones share the compiled form. Two constraints are equal if they say the same: neither the
/// order of entries nor that of values counts, nor does a repeated value. `Display` prints one form
/// for all equal constraints, names and values in the order of their bytes, and parsing it gives
/// the constraint back.
///
/// ```
/// use offermill::{Attribute, Constraint};
///
/// let constraint = Constraint::parse("zone:east,west;rack:")?;
/// let agent = [Attribute::text("rack", "r7"), Attribute::text("zone", "west")];
/// assert!(constraint.matches(&agent));
/// assert!(!constraint.matches(&agent[1..])); // no rack
/// assert!(Constraint::none().matches(&[]));
/// # Ok::<(), offermill::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Constraint(Option<Arc<Compiled>>);

/// What every syntax compiles to. `None` in its place is the constraint that all agents meet.
#[derive(PartialEq, Eq)]
struct Compiled {
    /// All must hold. Sorted by name; no name twice; never empty.
    terms: Box<[Term]>,
}

/// What one attribute must satisfy, with everything that can be known before an offer comes worked
/// out.
#[derive(Debug)]
struct Term {
    name: Box<str>,
    /// Sorted, each once. Empty: the attribute must be there, whatever its value.
    values: Box<[Box<str>]>,
    /// The least of the values that are numbers: a scalar that reaches any of them reaches this
    /// one.
    least: Option<f64>,
    /// The values that are whole numbers, sorted.
    integers: Box<[u64]>,
}

impl PartialEq for Term {
    /// The numbers follow from the values.
    fn eq(&self, other: &Term) -> bool {
        self.name == other.name && self.values == other.values
    }
}

impl Eq for Term {}

impl Constraint {
    /// The constraint that every agent meets.
    #[must_use]
    pub const fn none() -> Constraint {
        Constraint(None)
    }

    /// Reads a constraint; the empty string is [`Constraint::none`].
    ///
    /// Takes linear time but for sorting, and refuses more than [`CONSTRAINT_BYTES_MAX`].
    ///
    /// # Errors
    /// When the string is not a constraint. The error's text shows the place and, where it can, the
    /// nearest constraint that is one; [`Error::offset`] is the place in bytes.
    pub fn parse(text: &str) -> Result<Constraint, Error> {
        if text.is_empty() {
            return Ok(Constraint::none());
        }
        let terms = parse::parse(text)?;
        Ok(Constraint(Some(Arc::new(Compiled { terms }))))
    }

    /// Whether every agent meets it.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Whether an agent with these attributes meets it. Never allocates; any attributes will do.
    #[must_use]
    pub fn matches(&self, attributes: &[Attribute<'_>]) -> bool {
        match &self.0 {
            None => true,
            Some(compiled) => matching::all_hold(&compiled.terms, attributes),
        }
    }

    fn terms(&self) -> &[Term] {
        self.0.as_ref().map_or(&[], |compiled| &compiled.terms)
    }
}

impl FromStr for Constraint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Constraint, Error> {
        Constraint::parse(text)
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms().iter().enumerate() {
            if index > 0 {
                f.write_str(";")?;
            }
            term.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Constraint").field(&format_args!("{self}")).finish()
    }
}

impl fmt::Display for Term {
    /// An entry loses the white space and the commas at its end when it is read. So a value that
    /// ends in neither is put last; if there is none, a comma keeps the white space in. Either way
    /// it gets no longer than what was read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last =
            self.values.iter().rposition(|value| !value.is_empty() && value.trim_end() == &**value);
        write!(f, "{}:", self.name)?;
        let mut separator = "";
        let others = self.values.iter().enumerate().filter(|(index, _)| Some(*index) != last);
        for (_, value) in
            others.chain(last.and_then(|index| Some((index, self.values.get(index)?))))
        {
            write!(f, "{separator}{value}")?;
            separator = ",";
        }
        if last.is_none() && !self.values.is_empty() {
            f.write_str(",")?;
        }
        Ok(())
    }
}
