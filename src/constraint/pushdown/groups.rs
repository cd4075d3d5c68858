//! Groups of checks, of which an agent must pass one: their representation, and joining them within limits.

use std::collections::HashMap;

use super::{Check, Predicate};

/// The maximum number of groups, of checks in all groups, and of bytes in the checks' texts. The limits exist because
/// the master evaluates the checks for each agent repeatedly.
const GROUPS_MAX: usize = 64;
const CHECKS_MAX: usize = 256;
const BYTES_MAX: usize = 256 * 1024;

/// The number of a check in the [`CheckTable`].
pub(super) type Id = u32;

/// Interns checks: each distinct check once.
#[derive(Default)]
pub(super) struct CheckTable {
    all: Vec<Check>,
    ids: HashMap<Check, Id>,
    /// For each check, the weaker check that follows from it, which is that its subject exists.
    weaker: Vec<Option<Id>>,
}

/// Checks that must all be passed. Every agent passes an empty group.
#[derive(Clone, Debug, Default)]
pub(super) struct CheckGroup {
    /// Sorted; no check follows from another.
    ids: Vec<Id>,
    /// The checks and those that follow from them, sorted.
    known: Vec<Id>,
    /// A bit for each known check (its number modulo 64), to reject quickly.
    marks: u64,
}

/// Groups of which one must be passed. If the list is empty, no agent passes.
pub(super) type Either = Vec<CheckGroup>;

impl CheckGroup {
    pub(super) fn ids(&self) -> &[Id] {
        &self.ids
    }

    /// Whether every agent that passes this group passes `other`.
    fn implies(&self, other: &CheckGroup) -> bool {
        mark(&other.ids) & !self.marks == 0
            && other.ids.iter().all(|id| self.known.binary_search(id).is_ok())
    }
}

fn mark(ids: &[Id]) -> u64 {
    ids.iter().fold(0, |marks, id| marks | 1 << (id % 64))
}

/// Whether every agent that passes one of `some` passes one of `others`.
pub(super) fn implies(some: &[CheckGroup], others: &[CheckGroup]) -> bool {
    some.iter().all(|group| others.iter().any(|other| group.implies(other)))
}

impl CheckTable {
    pub(super) fn get(&self, id: Id) -> Option<&Check> {
        self.all.get(id as usize)
    }

    pub(super) fn id(&mut self, check: Check) -> Id {
        if let Some(id) = self.ids.get(&check) {
            return *id;
        }
        let weaker = match check.predicate {
            Predicate::TextEquals(_) | Predicate::TextMatches(_) => {
                let subject = check.subject.clone();
                Some(self.id(Check { subject, predicate: Predicate::Exists }))
            }
            _ => None,
        };
        let id = self.all.len() as Id;
        self.all.push(check.clone());
        self.ids.insert(check, id);
        self.weaker.push(weaker);
        id
    }

    pub(super) fn group(&self, mut ids: Vec<Id>) -> CheckGroup {
        ids.sort_unstable();
        ids.dedup();
        let weaker = |id: &Id| self.weaker.get(*id as usize).copied().flatten();
        let mut implied: Vec<Id> = ids.iter().filter_map(weaker).collect();
        implied.sort_unstable();
        implied.dedup();
        ids.retain(|id| implied.binary_search(id).is_err());
        let mut known = [ids.clone(), implied].concat();
        known.sort_unstable();
        CheckGroup { marks: mark(&known), ids, known }
    }

    /// Returns the groups that require one of `first` and one of `second`. Returns `None` if there would be far too
    /// many.
    pub(super) fn both(&self, first: &[CheckGroup], second: &[CheckGroup]) -> Option<Either> {
        if first.len().saturating_mul(second.len()) > 4 * GROUPS_MAX {
            return None;
        }
        let pairs = first.iter().flat_map(|one| second.iter().map(move |other| (one, other)));
        Some(pairs.map(|(one, other)| self.group([&*one.ids, &*other.ids].concat())).collect())
    }

    /// Removes the groups that others make redundant. Returns `None` if the rest exceeds the limits.
    pub(super) fn within_bounds(&self, groups: Either) -> Option<Either> {
        let mut kept: Either = Vec::new();
        for group in groups {
            if kept.iter().any(|other| group.implies(other)) {
                continue;
            }
            kept.retain(|other| !other.implies(&group));
            kept.push(group);
        }
        let ids = || kept.iter().flat_map(|group| &group.ids);
        let bytes: usize = ids().filter_map(|id| self.get(*id)).map(Check::bytes).sum();
        let fits = kept.len() <= GROUPS_MAX && ids().count() <= CHECKS_MAX && bytes <= BYTES_MAX;
        fits.then_some(kept)
    }

    /// Returns the checks that are in all groups or follow from them. Every agent that passes one of the groups passes
    /// these.
    pub(super) fn common(&self, groups: &[CheckGroup]) -> CheckGroup {
        let mut groups = groups.iter();
        let first = groups.next().map(|group| group.known.clone()).unwrap_or_default();
        let common = groups.fold(first, |mut common, group| {
            common.retain(|id| group.known.binary_search(id).is_ok());
            common
        });
        self.group(common)
    }
}

/// Returns the groups that every agent passes.
pub(super) fn always() -> Either {
    vec![CheckGroup::default()]
}

/// Whether every agent passes because a group is empty.
pub(super) fn is_always(groups: &[CheckGroup]) -> bool {
    groups.iter().any(|group| group.ids.is_empty())
}

/// Whether the groups have no room for another check.
pub(super) fn are_full(groups: &[CheckGroup]) -> bool {
    groups.iter().map(|group| group.ids.len()).sum::<usize>() >= CHECKS_MAX
}
