//! What seldom changes of what an agent offers: texts, the size of executors, and what was offered to each role if
//! that is not one sum.

use std::sync::Arc;

use super::offered_amounts::{AmountKind, OfferedAmounts, ResourceSums, Thousandths};
use crate::offer::DEFAULT_ROLE;
use crate::offer::attributes::OwnedAttribute;

/// An agent's attributes, copied, with a hash of them.
#[derive(Debug, Default)]
pub(crate) struct RecordedAttributes {
    pub(crate) fingerprint: u64,
    pub(crate) list: Box<[OwnedAttribute]>,
}

/// What an agent offered to one role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfferedToRole {
    /// None is the default role.
    pub(crate) role: Option<Arc<str>>,
    pub(crate) amounts: OfferedAmounts,
}

/// What is recorded of an agent's offers beside its [numbers](super::offered_numbers::OfferedNumbers). The lock of a
/// record guards it.
#[derive(Clone, Debug, Default)]
pub(crate) struct OfferedDetails {
    /// The first role that it was offered to; none is the default role.
    pub(crate) role: Option<Arc<str>>,
    /// None if the agent has no attributes.
    pub(crate) attributes: Option<Arc<RecordedAttributes>>,
    /// What was offered to each role, each once; empty if all was offered to one role and is of one kind, as almost all
    /// offers are.
    #[expect(clippy::box_collection, reason = "a vector itself would make each record larger")]
    parts: Option<Box<Vec<OfferedToRole>>>,
    /// The size of an executor if it is fixed; otherwise nothing.
    pub(crate) size: ResourceSums,
    /// Whether something changed since the last [`OfferedDetails::take_change`].
    is_changed: bool,
}

fn is_role(known: Option<&Arc<str>>, role: &str) -> bool {
    known.map_or(DEFAULT_ROLE, |known| known) == role
}

fn own(role: &str) -> Option<Arc<str>> {
    (role != DEFAULT_ROLE).then(|| role.into())
}

impl OfferedDetails {
    /// Replaces the size of executors.
    pub(crate) fn set_size(&mut self, size: ResourceSums) {
        self.is_changed |= self.size != size;
        self.size = size;
    }

    pub(crate) fn set_attributes(&mut self, attributes: Option<Arc<RecordedAttributes>>) {
        self.is_changed = true;
        self.attributes = attributes;
    }

    /// What was offered to each role; empty if all was offered to one role and is of one kind.
    pub(crate) fn parts(&self) -> &[OfferedToRole] {
        self.parts.as_ref().map_or(&[], |parts| parts)
    }

    /// Whether something changed since the last call.
    pub(super) fn take_change(&mut self) -> bool {
        // What is in parts isn't compared.
        let is_changed = self.is_changed || !self.parts().is_empty();
        self.is_changed = false;
        is_changed
    }

    /// Replaces what was offered by amounts of one kind that were offered to one role. Returns the sum.
    pub(crate) fn set_one(&mut self, role: &str, amounts: &OfferedAmounts) -> ResourceSums {
        self.set_first_role(role);
        self.clear_parts();
        amounts.sum()
    }

    /// Replaces what was offered by these amounts; those of one role, if it isn't the first one's, must follow each
    /// other. Allocates if there are more roles than ever before. Returns the sum, and its kind if there is one role.
    pub(crate) fn set_parts<'a>(
        &mut self,
        amounts: impl Iterator<Item = (&'a str, OfferedAmounts)>,
    ) -> (ResourceSums, AmountKind) {
        self.is_changed |= !self.parts().is_empty();
        let parts = self.parts.get_or_insert_default();
        let mut roles = 0;
        for (role, amounts) in amounts {
            match same_role(&mut parts[..roles], role) {
                Some(same) => same.amounts.add(amounts),
                None => {
                    // What is there is used again, so that nothing is allocated.
                    if parts.len() == roles {
                        parts.push(OfferedToRole::default());
                    }
                    parts[roles].replace(role, amounts);
                    roles += 1;
                }
            }
        }
        parts.truncate(roles);
        let sum = parts.iter().fold(Thousandths::default(), |mut sum, part| {
            let OfferedAmounts { reserved, unreserved, revocable } = part.amounts;
            [reserved, unreserved, revocable].into_iter().for_each(|more| sum.add(more));
            sum
        });
        let first = parts.first().and_then(|part| part.role.clone());
        let kind = match self.parts() {
            [] => AmountKind::Unreserved,
            [one] => one.amounts.kind(),
            _ => AmountKind::Several,
        };
        if kind != AmountKind::Several {
            self.clear_parts();
        }
        self.set_first_role(first.as_deref().unwrap_or(DEFAULT_ROLE));
        (sum.rounded_down(), kind)
    }

    /// A role that is the same keeps its text, so that nothing is allocated.
    fn set_first_role(&mut self, role: &str) {
        if !is_role(self.role.as_ref(), role) {
            self.is_changed = true;
            self.role = own(role);
        }
    }

    fn clear_parts(&mut self) {
        if let Some(parts) = self.parts.as_mut().filter(|parts| !parts.is_empty()) {
            self.is_changed = true;
            parts.clear();
        }
    }
}

/// The part of this role, if it is the first or the last.
fn same_role<'a>(parts: &'a mut [OfferedToRole], role: &str) -> Option<&'a mut OfferedToRole> {
    let last = parts.len().checked_sub(1)?;
    let same = [0, last].into_iter().find(|at| parts[*at].is_to(role))?;
    parts.get_mut(same)
}

impl OfferedToRole {
    /// Replaces the role and the amounts. A role that is the same keeps its text, so that nothing is allocated.
    fn replace(&mut self, role: &str, amounts: OfferedAmounts) {
        if !self.is_to(role) {
            self.role = own(role);
        }
        self.amounts = amounts;
    }

    fn is_to(&self, role: &str) -> bool {
        is_role(self.role.as_ref(), role)
    }
}
