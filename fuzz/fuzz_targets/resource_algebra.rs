//! The resource algebra: what executors take and what is left is what was offered, and every answer is the naive one's.
//!
//! Input: a line of settings, then a line an offer; `tests/support/algebra/case.rs` has the grammar and
//! `tests/support/algebra/judge.rs` the checks.

#![cfg_attr(fuzzing, no_main)]

#[path = "../../tests/support/algebra/mod.rs"]
mod algebra;

fn check(data: &[u8]) {
    let Ok(input) = std::str::from_utf8(data) else { return };
    let case = algebra::case::Case::parse(input);
    algebra::judge(&case);
    let printed = case.to_string();
    assert_eq!(algebra::case::Case::parse(&printed).to_string(), printed);
}

offermill_fuzz::harness!(check);
