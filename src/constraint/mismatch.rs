//! The reason why an agent doesn't meet a constraint: the deciding condition and how it fails.

use std::fmt;

/// The condition that decided that an agent doesn't meet a constraint, and how it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Unmet {
    /// The number of the condition, for [`Constraint::condition`](super::Constraint::condition). If several
    /// alternatives failed, this is the one evaluated last.
    pub condition: u32,
    /// How the condition failed.
    pub mismatch: Mismatch,
}

/// How an agent's attribute fails a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Mismatch {
    /// The agent doesn't have the attribute.
    Absent,
    /// The attribute has another value.
    Differs,
    /// The condition can't hold for the attribute's type: a number is compared with a text, or the attribute is a
    /// number and none of the condition's values is one.
    Incomparable,
    /// The attribute has an excluded value: the condition is negated, or it holds within a negated expression.
    Excluded,
}

impl Mismatch {
    /// All variants, in the order of their discriminants.
    pub(crate) const ALL: [Mismatch; 4] =
        [Mismatch::Absent, Mismatch::Differs, Mismatch::Incomparable, Mismatch::Excluded];

    /// Returns a short description.
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
