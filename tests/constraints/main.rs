//! Tests of constraints in both syntaxes against the documented rules.

#![allow(clippy::panic, clippy::expect_used, reason = "tests panic when they fail")]

mod agreement;
mod expressions;
mod naive;
mod pushdown;
