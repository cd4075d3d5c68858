//! The expression syntax: conditions joined by `and`, `or` and `not`. The grammar is in the documentation of
//! [`constraint`](super).

mod errors;
mod lexer;
mod parser;
mod token;
mod tree;

use super::condition::Condition;
use super::program::Program;
use super::syntax_error::SyntaxError;

/// The prefix of an expression. It can't begin a constraint in Spark's syntax, where no entry has two colons.
pub(super) const PREFIX: &str = "expr::";

/// The maximum number of conditions in an expression. Several may examine one attribute, and an agent may repeat it, so
/// this limits the cost of evaluating all of them.
const CONDITIONS_MAX: usize = 1024;

/// The maximum length of all patterns of an expression together, in bytes. The cost of evaluating them is at most this
/// times the length of the examined text.
const PATTERN_BYTES_MAX: usize = 4096;

/// A parsed expression and its canonical form.
pub(super) struct Read {
    pub(super) program: Program,
    pub(super) text: String,
}

/// Returns where the expression begins after the prefix, if `text` has one.
pub(super) fn after_prefix(text: &str) -> Option<usize> {
    let rest = text.trim_start().strip_prefix(PREFIX)?;
    Some(text.len() - rest.len())
}

/// Parses the expression that begins at `start` of `text`.
pub(super) fn read(text: &str, start: usize) -> Result<Read, SyntaxError> {
    let (tree, conditions) = parser::parse(text, start)?;
    let printed = tree.print(&conditions);
    if printed.len() > super::CONSTRAINT_BYTES_MAX {
        return Err(errors::too_long(text, printed.len()));
    }
    let steps = tree.compile();
    Ok(Read { program: Program::new(conditions, steps), text: printed })
}

/// The index of the next condition of an expression.
fn place(conditions: &[Condition]) -> u32 {
    u32::try_from(conditions.len()).unwrap_or(u32::MAX)
}
