//! The extended syntax: conditions joined by `and`, `or` and `not`. The grammar is in the head of
//! [`constraint`](super).

mod errors;
mod lexer;
mod parser;
mod token;
mod tree;

use super::condition::Condition;
use super::program::Program;
use super::syntax_error::SyntaxError;

/// What an expression begins with. In Spark's syntax no entry has two colons, so no constraint of
/// Spark's does.
pub(super) const PREFIX: &str = "expr::";

/// The most conditions of an expression. Several may be on one attribute, and an agent may repeat
/// it: this bounds what asking all of them costs.
const CONDITIONS_MAX: usize = 1024;

/// The most bytes of all patterns of an expression together: asking them costs at most this times
/// the length of what is asked.
const PATTERN_BYTES_MAX: usize = 4096;

/// An expression and the text that all equal ones print as.
pub(super) struct Read {
    pub(super) program: Program,
    pub(super) text: String,
}

/// Where the expression proper begins, if `text` is one.
pub(super) fn after_prefix(text: &str) -> Option<usize> {
    let rest = text.trim_start().strip_prefix(PREFIX)?;
    Some(text.len() - rest.len())
}

/// Reads an expression, whose text proper begins at `start`.
pub(super) fn read(text: &str, start: usize) -> Result<Read, SyntaxError> {
    let (tree, conditions) = parser::parse(text, start)?;
    let printed = tree.print(&conditions);
    if printed.len() > super::CONSTRAINT_BYTES_MAX {
        return Err(errors::too_long(text, printed.len()));
    }
    let steps = tree.compile();
    Ok(Read { program: Program::new(conditions, steps), text: printed })
}

/// A condition's place among those of its expression.
fn place(conditions: &[Condition]) -> u32 {
    u32::try_from(conditions.len()).unwrap_or(u32::MAX)
}
