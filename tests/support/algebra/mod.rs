//! The resource algebra against a naive one: cases as text, and a judge. The property test in `tests/kernel/` and the
//! fuzz target `resource_algebra` share it.

mod case;
mod judge;
mod naive;

pub(crate) use case::{Amount, By, Case, Entry, Layer, OfferLine, Reserved, Settings};
pub(crate) use judge::judge;
