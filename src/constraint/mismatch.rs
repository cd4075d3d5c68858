//! Why an agent doesn't meet a constraint: the deciding condition, and how it fails.

use std::fmt;

/// Which condition decided that an agent doesn't meet a constraint, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// Its number, for [`Constraint::condition`](super::Constraint::condition). Where alternatives
    /// failed, it is the last that was asked.
    pub condition: u32,
    /// How.
    pub mismatch: Mismatch,
}

/// How a condition and an agent's attribute don't go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mismatch {
    /// The agent doesn't have the attribute.
    Absent,
    /// It has another value.
    Differs,
    /// Its type is one that the condition can't be true of: a number is asked of a text, or none of
    /// the values is a number and the attribute is one.
    Incomparable,
    /// The condition is negated and it is just so, or it holds within something that is negated.
    Excluded,
}

impl Mismatch {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Mismatch; 4] =
        [Mismatch::Absent, Mismatch::Differs, Mismatch::Incomparable, Mismatch::Excluded];

    /// In a few words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Mismatch::Absent => "the agent has no such attribute",
            Mismatch::Differs => "the attribute's value differs",
            Mismatch::Incomparable => "the attribute's type can't be compared with it",
            Mismatch::Excluded => "the agent is one of those left out",
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
