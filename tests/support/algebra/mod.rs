//! Checks of resource allocation against a naive implementation: cases written as text, and a judge. The property test
//! in `tests/kernel/` and the fuzz target `resource_algebra` share them.

pub(crate) mod case;
mod judge;
mod naive;

pub(crate) use judge::judge;
