//! The result of a check: the number of a violated invariant, and what was observed.

/// A violated invariant: its number in the table of the crate's documentation, and what was observed.
pub(in super::super) type RuleViolation = (u8, String);
