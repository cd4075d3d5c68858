//! The resource algebra against a naive one: cases as text, and a judge. The property test in `tests/kernel/` and the
//! fuzz target `resource_algebra` share it.

pub(crate) mod case;
mod judge;
mod naive;

pub(crate) use judge::judge;
