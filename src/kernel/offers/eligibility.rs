//! Which resources of an offer executors may use: by reservation, revocability and configuration.

use crate::config::Config;
use crate::offer::{Offer, Resource, Revocability};

/// The rule for the resources of one offer, or of several offers to one role.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Eligibility<'a> {
    role: &'a str,
    revocable: bool,
    any_role: bool,
}

/// The two kinds of resources that executors may use. Mesos lets no task mix them within one resource name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Supply {
    /// Used first, because Mesos doesn't revoke them.
    NonRevocable,
    Revocable,
}

/// The supplies from which a task takes its cores, memory and GPUs: one bit each, in this order, set if the supply is
/// the revocable one. In one byte, because three that are written apart and copied together keep the processor waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskSupplies(u8);

impl TaskSupplies {
    /// Nothing revocable.
    pub(crate) const FIRM: TaskSupplies = TaskSupplies(0);

    pub(crate) fn new(each: [Supply; 3]) -> TaskSupplies {
        let bits =
            each.iter().zip(0..).map(|(supply, at)| u8::from(*supply == Supply::Revocable) << at);
        TaskSupplies(bits.sum())
    }

    /// The supplies of cores, memory and GPUs.
    pub(crate) fn each(self) -> [Supply; 3] {
        let is_revocable = |at: u8| self.0 >> at & 1 != 0;
        [0, 1, 2].map(|at| if is_revocable(at) { Supply::Revocable } else { Supply::NonRevocable })
    }
}

impl<'a> Eligibility<'a> {
    pub(crate) fn new(offer: &Offer<'a>, config: &Config) -> Eligibility<'a> {
        Eligibility {
            role: offer.role,
            revocable: config.revocable,
            any_role: config.compatibility.any_role,
        }
    }

    /// The supply that `resource` belongs to, or `None` if it must not be used.
    #[inline]
    pub(crate) fn supply(self, resource: &Resource<'_>) -> Option<Supply> {
        let supply = match resource.revocability {
            Revocability::NonRevocable => Supply::NonRevocable,
            Revocability::Revocable if self.revocable => Supply::Revocable,
            Revocability::Revocable | Revocability::Shared | Revocability::Disk => return None,
        };
        let is_open = resource.reservations.open_to(self.role) || self.any_role;
        is_open.then_some(supply)
    }
}
