//! The resource algebra: executors' resources and the leftovers add up to the offers, and every result equals that of a
//! naive implementation.
//!
//! Input: a line of settings, then one line per offer. `tests/support/placement/case.rs` documents the grammar, and
//! `tests/support/placement/checker.rs` the checks.

#![cfg_attr(fuzzing, no_main)]

#[path = "../../tests/support/placement/mod.rs"]
mod placement;

fn check(data: &[u8]) {
    let Ok(input) = std::str::from_utf8(data) else { return };
    let case = placement::case::Case::parse(input);
    placement::checker::check(&case);
    let printed = case.to_string();
    assert_eq!(placement::case::Case::parse(&printed).to_string(), printed);
}

offermill_fuzz::harness!(check);
