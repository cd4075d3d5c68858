//! The nodes on which a pod may be placed, as a required node affinity: those that may meet the constraint, without
//! those that are excluded.
//!
//! A node's labels are its attributes, all of them text; its name is its host name; its region and zone are the labels
//! `topology.kubernetes.io/region` and `…/zone`. Labels have one value each, so of a constraint is said what a master
//! of Mesos would be told of agents without repeated names ([`Constraint::pushdown`]):
//!
//! | check | requirement |
//! |---|---|
//! | exists, doesn't exist | `Exists`, `DoesNotExist` |
//! | is this text, isn't this text | `In`, `NotIn` with one value |
//! | matches a regular expression | `Exists`: affinities know none |
//! | doesn't match a regular expression | nothing |
//! | the host name is, or isn't | the field `metadata.name`, `In` or `NotIn` |
//!
//! What can't be the key or the value of a label is on no node: such a check passes everywhere, or nowhere. The result
//! is a superset of the nodes that meet the constraint. Nothing else checks it, so it is used only where it is exact.
//! Otherwise the nodes' labels are read ([`PodPlacement`](super::pod_placement::PodPlacement)), and the affinity is the
//! names of the nodes that meet the constraint: a term for each, without those that are excluded. A pod has at most 256
//! of them; if there are more, each pod has others, so that all together may use all.
//!
//! Excluded nodes are named by the field `metadata.name` with `NotIn`, because the label `kubernetes.io/hostname` may
//! differ from the name. The field takes one value for each requirement.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::names::{fnv_1a, is_domain, is_label_key, is_label_value};
use crate::constraint::{Check, Constraint, DuplicateAttributes, Predicate, Subject};

/// The label with a node's zone.
pub(super) const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// The label with a node's region.
pub(super) const REGION_LABEL: &str = "topology.kubernetes.io/region";

/// The maximum number of excluded nodes that a pod names.
const EXCLUDED_MAX: usize = 64;

/// The maximum number of requirements for excluded nodes in all terms, because each term repeats them.
const EXCLUDING_REQUIREMENTS_MAX: usize = 1024;

/// The maximum number of nodes that a pod names as those on which it may be placed: 24 KiB with names of 30 bytes.
const NAMED_MAX: usize = 256;

/// The nodes that may meet a constraint.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NodeSelection {
    /// Any node.
    Everywhere,
    /// The nodes that meet one of these terms.
    Terms(Vec<NodeTerm>),
    /// The nodes with these names. May be empty.
    Named(Arc<[String]>),
    /// No node that Kubernetes can have.
    Nowhere,
}

/// Requirements that a node must all meet. Never empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NodeTerm {
    labels: Vec<Value>,
    fields: Vec<Value>,
}

impl NodeSelection {
    /// The nodes that may meet `constraint`.
    pub(super) fn of(constraint: &Constraint) -> NodeSelection {
        let pushdown = constraint.pushdown(DuplicateAttributes::RuledOut);
        if pushdown.is_everything() {
            return NodeSelection::Everywhere;
        }
        let terms: Vec<NodeTerm> =
            pushdown.groups().iter().filter_map(|group| NodeTerm::of(group)).collect();
        if terms.iter().any(NodeTerm::is_empty) {
            NodeSelection::Everywhere
        } else if terms.is_empty() {
            NodeSelection::Nowhere
        } else {
            NodeSelection::Terms(terms)
        }
    }

    /// Whether no node is left without the excluded ones, as far as is known.
    pub(super) fn is_empty(&self, excluded: &[String]) -> bool {
        match self {
            NodeSelection::Everywhere | NodeSelection::Terms(_) => false,
            NodeSelection::Nowhere => true,
            NodeSelection::Named(names) => names.iter().all(|name| excluded.contains(name)),
        }
    }

    /// The affinity for these nodes without the excluded ones, of which the latest come first, for this executor.
    /// `None` if any node will do (or none, for which no pod should be created).
    pub(super) fn affinity<'a>(
        &self,
        excluded: impl IntoIterator<Item = &'a str>,
        executor: &str,
    ) -> Option<Value> {
        let everywhere = [NodeTerm::default()];
        let terms = match self {
            NodeSelection::Everywhere => everywhere.as_slice(),
            NodeSelection::Terms(terms) => terms.as_slice(),
            NodeSelection::Nowhere => return None,
            NodeSelection::Named(names) => {
                return required(named(names, &excluded.into_iter().collect(), executor));
            }
        };
        let excluded_max = EXCLUDED_MAX.min(EXCLUDING_REQUIREMENTS_MAX / terms.len().max(1));
        let excluded = excluded.into_iter().filter(|name| is_domain(name)).take(excluded_max);
        let excluding: Vec<Value> =
            excluded.map(|name| requirement("metadata.name", "NotIn", Some(name))).collect();
        required(terms.iter().filter_map(|term| term.to_json(&excluding)).collect())
    }
}

/// An affinity to the nodes that meet one of these terms.
fn required(terms: Vec<Value>) -> Option<Value> {
    (!terms.is_empty()).then(|| {
        let required = json!({ "nodeSelectorTerms": terms });
        json!({ "requiredDuringSchedulingIgnoredDuringExecution": required })
    })
}

/// A term for each of these nodes without the excluded ones, in order. If they are too many, for as many as may be,
/// which are others for each executor and lie anywhere: nodes with similar names are often alike, and full together.
fn named(names: &[String], excluded: &HashSet<&str>, executor: &str) -> Vec<Value> {
    let mut chosen: Vec<&String> =
        names.iter().filter(|name| !excluded.contains(name.as_str())).collect();
    if chosen.len() > NAMED_MAX {
        // The hash mixes its low bits best: they decide the order.
        let rank =
            |name: &&String| fnv_1a(executor.bytes().chain([0]).chain(name.bytes())).swap_bytes();
        chosen.sort_by_cached_key(rank);
        chosen.truncate(NAMED_MAX);
        chosen.sort_unstable();
    }
    let term =
        |name: &String| json!({ "matchFields": [requirement("metadata.name", "In", Some(name))] });
    chosen.into_iter().map(term).collect()
}

impl NodeTerm {
    /// The requirements of a group of checks. `None` if no node can meet them.
    fn of(group: &[Check]) -> Option<NodeTerm> {
        let mut term = NodeTerm::default();
        for check in group {
            match Translated::of(check) {
                Translated::Always => {}
                Translated::Never => return None,
                Translated::Label(requirement) => term.labels.push(requirement),
                Translated::Field(requirement) => term.fields.push(requirement),
            }
        }
        Some(term)
    }

    fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// `None` if there is nothing to require: an empty term would be met by no node.
    fn to_json(&self, excluding: &[Value]) -> Option<Value> {
        let fields = [&*self.fields, excluding].concat();
        let mut term = serde_json::Map::new();
        for (name, requirements) in [("matchExpressions", &self.labels), ("matchFields", &fields)] {
            if !requirements.is_empty() {
                term.insert(name.to_owned(), requirements.as_slice().into());
            }
        }
        (!term.is_empty()).then_some(Value::Object(term))
    }
}

/// A check of one subject as a requirement of a node.
enum Translated {
    Always,
    Never,
    Label(Value),
    Field(Value),
}

impl Translated {
    fn of(check: &Check) -> Translated {
        match &check.subject {
            Subject::Attribute(key) => Translated::of_label(key, &check.predicate),
            Subject::Region => Translated::of_label(REGION_LABEL, &check.predicate),
            Subject::Zone => Translated::of_label(ZONE_LABEL, &check.predicate),
            Subject::Hostname => Translated::of_name(&check.predicate),
        }
    }

    fn of_label(key: &str, predicate: &Predicate) -> Translated {
        use Predicate::{
            Exists, NotExists, TextEquals, TextMatches, TextNotEquals, TextNotMatches,
        };
        let can_exist = is_label_key(key);
        let label = |operator, value| Translated::Label(requirement(key, operator, value));
        match predicate {
            TextNotMatches(_) => Translated::Always,
            Exists | TextMatches(_) if can_exist => label("Exists", None),
            NotExists if can_exist => label("DoesNotExist", None),
            TextEquals(value) if can_exist && is_label_value(value) => label("In", Some(value)),
            TextNotEquals(value) if can_exist && is_label_value(value) => {
                label("NotIn", Some(value))
            }
            Exists | TextMatches(_) | TextEquals(_) => Translated::Never,
            NotExists | TextNotEquals(_) => Translated::Always,
        }
    }

    /// Each node has a name.
    fn of_name(predicate: &Predicate) -> Translated {
        use Predicate::{
            Exists, NotExists, TextEquals, TextMatches, TextNotEquals, TextNotMatches,
        };
        let field = |operator, value| {
            Translated::Field(requirement("metadata.name", operator, Some(value)))
        };
        match predicate {
            Exists | TextMatches(_) | TextNotMatches(_) => Translated::Always,
            NotExists => Translated::Never,
            TextEquals(name) if is_domain(name) => field("In", name),
            TextNotEquals(name) if is_domain(name) => field("NotIn", name),
            TextEquals(_) => Translated::Never,
            TextNotEquals(_) => Translated::Always,
        }
    }
}

fn requirement(key: &str, operator: &str, value: Option<&str>) -> Value {
    match value {
        Some(value) => json!({ "key": key, "operator": operator, "values": [value] }),
        None => json!({ "key": key, "operator": operator }),
    }
}
