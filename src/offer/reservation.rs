//! Reservations of a resource, in the pre- and the post-refinement form of Mesos' API.

use super::DEFAULT_ROLE;

/// The reservations of a resource, in the form of the wire. A task's resources must carry the same form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reservations<'a> {
    /// The form for frameworks without the capability `RESERVATION_REFINEMENT`.
    PreRefinement {
        /// The role that the resource is reserved for, or [`DEFAULT_ROLE`].
        role: &'a str,
        /// Who made the reservation, if it is dynamic; `None` if it is static.
        dynamic: Option<&'a ReservedBy<'a>>,
    },
    /// The form with that capability: each reservation refines the one before it, and the role of the last one counts.
    /// An empty stack means unreserved.
    PostRefinement(&'a [Reservation<'a>]),
}

/// One reservation of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation<'a> {
    /// Static or dynamic.
    pub kind: ReservationKind,
    /// The role that the resource is reserved for.
    pub role: &'a str,
    /// Who made the reservation.
    pub by: ReservedBy<'a>,
}

/// Whether a reservation is static or dynamic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum ReservationKind {
    /// Made by the agent's configuration.
    Static,
    /// Made by a framework or an operator while the agent was running.
    Dynamic,
}

/// Who made a reservation, and its labels. The kernel doesn't interpret them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReservedBy<'a> {
    /// The principal.
    pub principal: Option<&'a str>,
    /// The labels.
    pub labels: &'a [Label<'a>],
}

/// A label: a key and an optional value.
pub type Label<'a> = (&'a str, Option<&'a str>);

impl<'a> Reservations<'a> {
    /// Unreserved, in the pre-refinement form.
    pub const NONE: Reservations<'static> =
        Reservations::PreRefinement { role: DEFAULT_ROLE, dynamic: None };

    /// Returns the role that the resource is effectively reserved for, or [`DEFAULT_ROLE`].
    #[inline]
    #[must_use]
    pub fn role(&self) -> &'a str {
        match self {
            Reservations::PreRefinement { role, .. } => role,
            Reservations::PostRefinement(stack) => {
                stack.last().map_or(DEFAULT_ROLE, |last| last.role)
            }
        }
    }

    /// Returns whether the resource may be used in an offer to `role`: it is unreserved, or reserved for that role or
    /// one of its ancestors. If `role` is [`DEFAULT_ROLE`], every resource may be used.
    #[inline]
    #[must_use]
    pub fn open_to(&self, role: &str) -> bool {
        let own = self.role();
        // Most resources are unreserved.
        own == DEFAULT_ROLE || is_or_is_above(own, role)
    }
}

/// Returns whether `own` is `role` or an ancestor of it (`eng` of `eng/etl`), or `role` is the default role.
#[inline(never)]
fn is_or_is_above(own: &str, role: &str) -> bool {
    let rest = role.strip_prefix(own);
    role == DEFAULT_ROLE || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stack<'a>(roles: &'a [String]) -> Vec<Reservation<'a>> {
        let by = ReservedBy::default();
        let kind = ReservationKind::Dynamic;
        roles.iter().map(|role| Reservation { kind, role, by }).collect()
    }

    proptest! {
        /// Goal: both forms agree, and a resource is open to its role and that role's descendants. Method: random role
        /// paths against the rule on path components.
        #[test]
        fn roles_below_may_use_what_is_reserved_above(
            own in "(\\*|[ab]{1,2}(/[ab]{1,2}){0,2})",
            offered in "(\\*|[ab]{1,2}(/[ab]{1,2}){0,3})",
            before in prop::collection::vec("[ab]", 0..3),
        ) {
            let roles: Vec<String> = before.into_iter().chain([own.clone()]).collect();
            let stack = stack(&roles);
            let by = ReservedBy::default();
            let forms = [
                Reservations::PreRefinement { role: &own, dynamic: None },
                Reservations::PreRefinement { role: &own, dynamic: Some(&by) },
                Reservations::PostRefinement(&stack),
            ];
            let (names, path): (Vec<&str>, Vec<&str>) = (own.split('/').collect(), offered.split('/').collect());
            let open = own == "*" || offered == "*" || path.starts_with(&names);
            for form in forms {
                prop_assert_eq!(form.role(), &own);
                prop_assert_eq!(form.open_to(&offered), open, "{:?} to {}", form, &offered);
            }
            prop_assert!(Reservations::PostRefinement(&[]).open_to(&offered));
        }
    }
}
