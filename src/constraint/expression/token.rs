//! The tokens of an expression.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A name or value without quotation marks.
    Word(&'a str),
    /// A name or value in quotation marks, unescaped.
    Quoted(String),
    /// A keyword, in lower case; `&&`, `||` and `!` become `and`, `or` and `not`.
    Keyword(&'static str),
    /// `@` and a name.
    Place(&'a str),
    Mark(&'static str),
    End,
}

/// A token with its position, in bytes.
#[derive(Clone, Debug)]
pub(super) struct SpannedToken<'a> {
    pub(super) token: Token<'a>,
    pub(super) start: usize,
    pub(super) end: usize,
}
