//! Amounts of an offer's resources, added and taken as Spark does: in doubles, in the order of the offer.

use offermill::DEFAULT_ROLE;

use crate::scenario::answer::PieceLine;
use crate::scenario::offer::{Number, ResourceLine};

/// Returns the sum of a resource over all roles.
pub(super) fn sum(resources: &[ResourceLine], name: &str) -> f64 {
    resources.iter().filter(|it| it.name == name).map(scalar).sum()
}

/// Takes an amount of a resource from whatever roles come first, or less if there isn't as much. Removes what is used
/// up.
pub(super) fn take(resources: &mut Vec<ResourceLine>, name: &str, amount: f64) -> Vec<PieceLine> {
    let mut wanted = amount;
    let mut taken = Vec::new();
    for resource in resources.iter_mut() {
        let there = scalar(resource);
        if wanted > 0.0 && there > 0.0 && resource.name == name {
            let used = wanted.min(there);
            taken.push(piece(resource, used));
            wanted -= used;
            resource.scalar = Some(Number(there - used));
        }
    }
    resources.retain(|it| it.scalar.is_none() || scalar(it) > 0.0);
    taken
}

/// Returns the sum of an amount over the pieces of a resource.
pub(super) fn sum_of_pieces(pieces: &[PieceLine], name: &str) -> f64 {
    // The standard library's sum of nothing is -0.
    let amounts = pieces.iter().filter(|it| it.name == name).filter_map(|it| it.scalar);
    amounts.fold(0.0, |sum, amount| sum + amount)
}

/// The amount of a resource; of ranges and sets 0.
fn scalar(resource: &ResourceLine) -> f64 {
    resource.scalar.map_or(0.0, |scalar| scalar.0)
}

/// A piece of a resource. What is for any role has no reservation.
fn piece(resource: &ResourceLine, amount: f64) -> PieceLine {
    let refined = resource.reservations.as_ref().and_then(|all| all.last());
    let role = resource.role.as_ref().or(refined.map(|last| &last.role));
    let role = role.map_or(DEFAULT_ROLE, String::as_str).to_owned();
    let is_reserved = role != DEFAULT_ROLE;
    PieceLine {
        name: resource.name.clone(),
        reservation: resource.reservation.clone().filter(|_| is_reserved),
        reservations: resource.reservations.clone().filter(|_| is_reserved),
        role,
        scalar: Some(amount),
        ..PieceLine::default()
    }
}
