//! Whom a resource is reserved for, in the two forms that Mesos has had for it.

use super::DEFAULT_ROLE;

/// How a resource is reserved, in the form of the wire, which what is cut from it has to bear, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reservations<'a> {
    /// The form for frameworks without the capability `RESERVATION_REFINEMENT`.
    Old {
        /// The role that the resource is reserved for, or [`DEFAULT_ROLE`].
        role: &'a str,
        /// Who reserved it, if it was reserved while the agent ran; nobody in particular if by the agent's settings.
        dynamic: Option<&'a ReservedBy<'a>>,
    },
    /// The form with that capability: each reservation refines the one before it, and the last one's role counts. None
    /// is unreserved.
    Refined(&'a [Reservation<'a>]),
}

/// One of a stack of reservations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation<'a> {
    /// How it came about.
    pub kind: ReservationKind,
    /// The role reserved for.
    pub role: &'a str,
    /// Who reserved.
    pub by: ReservedBy<'a>,
}

/// How a reservation came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationKind {
    /// By the agent's settings.
    Static,
    /// By a framework or an operator, while the agent ran.
    Dynamic,
}

/// Who made a reservation, and what they wrote on it. Nothing of it matters to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReservedBy<'a> {
    /// Who.
    pub principal: Option<&'a str>,
    /// Their labels.
    pub labels: &'a [Label<'a>],
}

/// A key, and its value if it has one.
pub type Label<'a> = (&'a str, Option<&'a str>);

impl<'a> Reservations<'a> {
    /// Reserved for nobody, in the old form.
    pub const NONE: Reservations<'static> = Reservations::Old { role: DEFAULT_ROLE, dynamic: None };

    /// The role that the resource is reserved for in effect, or [`DEFAULT_ROLE`].
    #[inline]
    #[must_use]
    pub fn role(&self) -> &'a str {
        match self {
            Reservations::Old { role, .. } => role,
            Reservations::Refined(stack) => stack.last().map_or(DEFAULT_ROLE, |last| last.role),
        }
    }

    /// Whether frameworks may use the resource in an offer to `role`: it is reserved for nobody, for that role, or for
    /// one above it. To the role [`DEFAULT_ROLE`] every resource is open.
    #[inline]
    #[must_use]
    pub fn open_to(&self, role: &str) -> bool {
        let own = self.role();
        // Most resources are reserved for nobody.
        own == DEFAULT_ROLE || is_or_is_above(own, role)
    }
}

/// Whether `own` is `role` or an ancestor of it, as `eng` is of `eng/etl`; or whether anything goes for `role`.
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
        /// Goal: both forms say the same, and a resource is open to its role and to those below. Method: random
        /// paths of roles; the rule told anew, name by name.
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
                Reservations::Old { role: &own, dynamic: None },
                Reservations::Old { role: &own, dynamic: Some(&by) },
                Reservations::Refined(&stack),
            ];
            let (names, path): (Vec<&str>, Vec<&str>) = (own.split('/').collect(), offered.split('/').collect());
            let open = own == "*" || offered == "*" || path.starts_with(&names);
            for form in forms {
                prop_assert_eq!(form.role(), &own);
                prop_assert_eq!(form.open_to(&offered), open, "{:?} to {}", form, &offered);
            }
            prop_assert!(Reservations::Refined(&[]).open_to(&offered));
        }
    }
}
