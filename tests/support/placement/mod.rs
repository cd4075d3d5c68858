//! The naive placement, and checks of resource allocation against it: cases written as text, and a checker.
//!
//! The reference model of the kernel uses [`naive`]; the property test in `tests/kernel/` and the fuzz target
//! `resource_algebra` share the rest.

pub(crate) mod case;
pub(crate) mod checker;
pub(crate) mod naive;
