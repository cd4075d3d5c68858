//! The tokens of an expression.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A name or value as it stands there.
    Word(&'a str),
    /// One that stood in quotation marks.
    Quoted(String),
    /// A word of the syntax, in small letters; `&&`, `||` and `!` are those that they stand for.
    Keyword(&'static str),
    /// `@` and a name.
    Place(&'a str),
    Mark(&'static str),
    End,
}

/// A token with where it begins and ends, in bytes.
#[derive(Clone, Debug)]
pub(super) struct Spot<'a> {
    pub(super) token: Token<'a>,
    pub(super) start: usize,
    pub(super) end: usize,
}
