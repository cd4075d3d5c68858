//! Groups of checks of which one has to be passed: what they are made of, and how they are joined within bounds.

use std::collections::HashMap;

use super::{Check, Predicate};

/// The most groups, checks in all of them, and bytes of what the checks say: the master asks them of each agent, again
/// and again.
const GROUPS_MAX: usize = 64;
const CHECKS_MAX: usize = 256;
const BYTES_MAX: usize = 256 * 1024;

/// A check, by its number.
pub(super) type Id = u32;

/// Every check that came up, once.
#[derive(Default)]
pub(super) struct CheckTable {
    all: Vec<Check>,
    ids: HashMap<Check, Id>,
    /// For each: what else holds if it does, namely that its subject exists.
    weaker: Vec<Option<Id>>,
}

/// Checks that all have to be passed; none are passed by every agent.
#[derive(Clone, Debug, Default)]
pub(super) struct CheckGroup {
    /// Sorted, none of them following from another.
    ids: Vec<Id>,
    /// Sorted, with what follows from them.
    known: Vec<Id>,
    /// A bit for each that is known, several sharing one.
    marks: u64,
}

/// Groups of which one has to be passed: none if there are none.
pub(super) type Either = Vec<CheckGroup>;

impl CheckGroup {
    pub(super) fn ids(&self) -> &[Id] {
        &self.ids
    }

    /// Whether an agent that passes this one passes `other`.
    fn implies(&self, other: &CheckGroup) -> bool {
        mark(&other.ids) & !self.marks == 0
            && other.ids.iter().all(|id| self.known.binary_search(id).is_ok())
    }
}

fn mark(ids: &[Id]) -> u64 {
    ids.iter().fold(0, |marks, id| marks | 1 << (id % 64))
}

/// Whether an agent that passes one of `some` passes one of `others`.
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

    /// One of `first` and one of `second`. `None` if these are far too many.
    pub(super) fn both(&self, first: &[CheckGroup], second: &[CheckGroup]) -> Option<Either> {
        if first.len().saturating_mul(second.len()) > 4 * GROUPS_MAX {
            return None;
        }
        let pairs = first.iter().flat_map(|one| second.iter().map(move |other| (one, other)));
        Some(pairs.map(|(one, other)| self.group([&*one.ids, &*other.ids].concat())).collect())
    }

    /// One of the groups, without those that others make superfluous. `None` if that is too much.
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

    /// What all of the groups ask for, or follows from what they do. So every agent that passes one of them passes it.
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

/// What every agent passes.
pub(super) fn always() -> Either {
    vec![CheckGroup::default()]
}

/// Whether it is that.
pub(super) fn is_always(groups: &[CheckGroup]) -> bool {
    groups.iter().any(|group| group.ids.is_empty())
}

/// Whether there is no room for another check.
pub(super) fn are_full(groups: &[CheckGroup]) -> bool {
    groups.iter().map(|group| group.ids.len()).sum::<usize>() >= CHECKS_MAX
}
