//! (stub)
use super::config::Least;
use super::wire::messages::{OfferConstraints, OfferFilters};
use crate::constraint::Constraint;
use std::collections::BTreeMap;
pub(super) fn of(_c: &Constraint, _roles: &[String]) -> Option<OfferConstraints> {
    None
}
pub(super) fn filters(_roles: &[String], _least: &Least) -> BTreeMap<String, OfferFilters> {
    BTreeMap::new()
}
