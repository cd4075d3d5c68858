//! [`NodeChoice`]: the nodes that a pod may get, as its manifest says them.
//!
//! A pod keeps the affinity with which it was created. While it waits for a node the choice may become another:
//!
//! | what has changed since | the pod that waits |
//! |---|---|
//! | another node meets the constraint, or the exclusion of one has ended | is made anew: it doesn't name that node |
//! | a node that it names meets the constraint no more | is made anew: it could get that node |
//! | the constraint from which its affinity follows | is made anew |
//! | a node is gone, or another one is excluded | stays: the kernel takes an executor on an excluded agent as it is |
//!
//! A pod for which the scheduler has preempted others, which aren't gone yet, is made anew only if it could get a node
//! that it mustn't: else they would end for nothing, and others for the pod that takes its place.
//!
//! A creation under way isn't repeated if its pod could get a node by then that it mustn't: one that meets the
//! constraint no more, or that is excluded.

use std::collections::HashSet;

use serde_json::Value;

use super::affinity::NodeSelection;

/// The nodes of a selection without the excluded ones.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NodeChoice {
    pub(super) selection: NodeSelection,
    /// The excluded ones, the latest first.
    pub(super) avoided: Vec<String>,
}

impl NodeChoice {
    /// Whether no node is left, as far as is known.
    pub(super) fn is_empty(&self) -> bool {
        self.selection.is_empty(&self.avoided)
    }

    /// The node affinity of the pod of this executor. `None` if any node will do.
    pub(super) fn affinity(&self, executor: &str) -> Option<Value> {
        self.selection.affinity(self.avoided.iter().map(String::as_str), executor)
    }

    /// Whether a pod that waits with this choice must be made anew with the present one, by the table above.
    /// `is_there` says whether there is a node of this name.
    pub(super) fn is_outdated(&self, now: &NodeChoice, is_there: impl Fn(&str) -> bool) -> bool {
        let [avoided_then, avoided_now]: [HashSet<&String>; 2] =
            [self, now].map(|choice| choice.avoided.iter().collect());
        match (&self.selection, &now.selection) {
            (NodeSelection::Named(then), NodeSelection::Named(names)) => {
                let named = |name: &String| {
                    then.binary_search(name).is_ok() && !avoided_then.contains(name)
                };
                let is_more = |name: &String| !avoided_now.contains(name) && !named(name);
                names.iter().any(is_more) || self.names_one_beside(then, names, is_there)
            }
            (then, selection) => then != selection || !avoided_then.is_subset(&avoided_now),
        }
    }

    /// Whether a pod that is created with this choice could get a node that it mustn't get by the present one.
    pub(super) fn is_too_wide(&self, now: &NodeChoice, is_there: impl Fn(&str) -> bool) -> bool {
        let is_new = |name: &&String| !self.avoided.contains(name);
        let mut excluded_since = now.avoided.iter().filter(is_new);
        match (&self.selection, &now.selection) {
            (NodeSelection::Named(then), NodeSelection::Named(names)) => {
                let named = |name: &String| then.binary_search(name).is_ok();
                excluded_since.any(named) || self.names_one_beside(then, names, is_there)
            }
            (then, selection) => then != selection || excluded_since.next().is_some(),
        }
    }

    /// Whether one of its nodes (`then`) is there, isn't excluded, and isn't among `names`.
    fn names_one_beside(
        &self,
        then: &[String],
        names: &[String],
        is_there: impl Fn(&str) -> bool,
    ) -> bool {
        let is_beside = |name: &String| {
            names.binary_search(name).is_err() && is_there(name) && !self.avoided.contains(name)
        };
        then.iter().any(is_beside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::kubernetes::pod_placement::PodPlacement;
    use crate::constraint::Constraint;

    fn named(names: &[&str], avoided: &[&str]) -> NodeChoice {
        let own = |names: &[&str]| -> Vec<String> { names.iter().map(|&it| it.into()).collect() };
        NodeChoice { selection: NodeSelection::Named(own(names).into()), avoided: own(avoided) }
    }

    fn of(constraint: &str, avoided: &[&str]) -> NodeChoice {
        let PodPlacement::Affinity(selection) =
            PodPlacement::of(&Constraint::parse(constraint).unwrap())
        else {
            panic!("{constraint} is checked on labels")
        };
        NodeChoice { selection, ..named(&[], avoided) }
    }

    /// Goal: a creation isn't repeated if its pod could get a wrong node, and otherwise it is. Method: nodes and
    /// exclusions that come and go, with a cluster whose node `gone` isn't there.
    #[test]
    fn a_choice_is_too_wide() {
        let rows = [
            (named(&["a"], &[]), named(&["a"], &[]), false),
            (named(&["a"], &[]), named(&["a", "b"], &[]), false),
            (named(&["a"], &[]), named(&["a", "b"], &["b"]), false),
            (named(&["a", "b"], &["b"]), named(&["a", "b"], &[]), false),
            (named(&["a", "b"], &["b"]), named(&["a", "b"], &["a", "b"]), true),
            (named(&["a", "b"], &[]), named(&["b"], &[]), true),
            (named(&["a", "b"], &["b"]), named(&["a"], &[]), false),
            (named(&["a", "gone"], &[]), named(&["a"], &[]), false),
            (of("zone:eu", &[]), of("zone:us", &[]), true),
            (of("zone:eu", &[]), of("zone:eu", &["a"]), true),
            (of("zone:eu", &["a"]), of("zone:eu", &[]), false),
            (of("", &[]), named(&["a"], &[]), true),
        ];
        for (at, (then, now, expected)) in rows.iter().enumerate() {
            let is_too_wide = then.is_too_wide(now, |name| name != "gone");
            assert_eq!(is_too_wide, *expected, "row {at}: {then:?}, {now:?}");
        }
    }

    /// Goal: a pod that waits is made anew if it lacks a node or could get a wrong one, and otherwise not. Method: each
    /// row of the table, with a cluster whose node `gone` isn't there.
    #[test]
    fn a_choice_is_outdated_by_each_row() {
        let is_outdated =
            |then: &NodeChoice, now: &NodeChoice| then.is_outdated(now, |name| name != "gone");
        let rows = [
            (named(&["a"], &[]), named(&["a"], &[]), false),
            (named(&["a"], &[]), named(&["a", "b"], &[]), true),
            (named(&["a"], &[]), named(&["a", "b"], &["b"]), false),
            (named(&["a", "b"], &["b"]), named(&["a", "b"], &[]), true),
            (named(&["a", "b"], &["b"]), named(&["a", "b"], &["b", "x"]), false),
            (named(&["a", "b"], &[]), named(&["a", "b"], &["a"]), false),
            (named(&["a", "b"], &[]), named(&["a"], &[]), true),
            (named(&["a", "b"], &["b"]), named(&["a"], &[]), false),
            (named(&["a", "gone"], &[]), named(&["a"], &[]), false),
            (of("zone:eu", &[]), of("zone:eu", &[]), false),
            (of("zone:eu", &[]), of("zone:us", &[]), true),
            (of("zone:eu", &[]), of("", &[]), true),
            (of("", &["a"]), of("", &[]), true),
            (of("", &["a"]), of("", &["b", "a"]), false),
            (of("", &["a"]), of("", &["b"]), true),
            (of("", &[]), named(&["a"], &[]), true),
            (named(&["a"], &[]), of("", &[]), true),
        ];
        for (at, (then, now, expected)) in rows.iter().enumerate() {
            assert_eq!(is_outdated(then, now), *expected, "row {at}: {then:?}, {now:?}");
        }
    }
}
