//! Node affinities against the constraints that they stand for.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;

use crate::cluster::kubernetes::affinity::{NodeSelection, REGION_LABEL, ZONE_LABEL};
use crate::cluster::kubernetes::objects::Metadata;
use crate::cluster::kubernetes::pod_placement::{Nodes, PodPlacement, meets};
use crate::constraint::Constraint;

/// A node: its name and its labels.
type Node = (String, BTreeMap<String, String>);

/// Whether Kubernetes would place a pod with this affinity on the node: by the documented rules of node affinity.
fn admits(affinity: Option<&Value>, (name, labels): &Node) -> bool {
    let Some(affinity) = affinity else { return true };
    let required = &affinity["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = required["nodeSelectorTerms"].as_array().unwrap();
    let met = |requirement: &Value, value: Option<&str>| {
        let values = requirement["values"].as_array();
        let contains = |value: &str| values.unwrap().iter().any(|it| it == value);
        match requirement["operator"].as_str().unwrap() {
            "In" => value.is_some_and(contains),
            "NotIn" => value.is_none_or(|value| !contains(value)),
            "Exists" => value.is_some() && values.is_none(),
            "DoesNotExist" => value.is_none() && values.is_none(),
            other => panic!("{other}"),
        }
    };
    terms.iter().any(|term| {
        let list = |key: &str| term[key].as_array().cloned().unwrap_or_default();
        let (expressions, fields) = (list("matchExpressions"), list("matchFields"));
        assert!(!expressions.is_empty() || !fields.is_empty(), "an empty term admits no node");
        let label = |it: &Value| labels.get(it["key"].as_str().unwrap()).map(String::as_str);
        let field = |it: &Value| {
            assert_eq!(it["key"], "metadata.name");
            assert_eq!(it["values"].as_array().unwrap().len(), 1, "the server takes one value");
            met(it, Some(name))
        };
        expressions.iter().all(|it| met(it, label(it))) && fields.iter().all(field)
    })
}

fn affinity(text: &str, excluded: &[&str]) -> Option<Value> {
    let constraint = Constraint::parse(text).unwrap();
    NodeSelection::of(&constraint).affinity(excluded.iter().copied(), "1")
}

/// Goal: the affinity is what one would write by hand. Method: common constraints and their JSON.
#[test]
fn common_constraints_are_written_plainly() {
    let terms = |text: &str| match affinity(text, &[]) {
        Some(affinity) => {
            affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
                .to_string()
        }
        None => "any".to_owned(),
    };
    assert_eq!(terms(""), "any");
    let exists = r#"[{"matchExpressions":[{"key":"gpu","operator":"Exists"}]}]"#;
    assert_eq!(terms("gpu:"), exists);
    assert_eq!(terms("expr:: gpu like a*"), exists);
    assert_eq!(terms("expr:: not gpu like a*"), "any");
    assert_eq!(
        terms("zone:east,west"),
        r#"[{"matchExpressions":[{"key":"zone","operator":"In","values":["east"]}]},"#.to_owned()
            + r#"{"matchExpressions":[{"key":"zone","operator":"In","values":["west"]}]}]"#
    );
    let host = r#"[{"matchFields":[{"key":"metadata.name","operator":"NotIn","values":["n1"]}]}]"#;
    assert_eq!(terms("expr:: @hostname != n1"), host);
}

/// Goal: a constraint that no node can meet admits none, rather than all or a request that the server refuses. Method:
/// names and values that can't be labels.
#[test]
fn what_can_be_no_label_is_nowhere() {
    let of = |text: &str| NodeSelection::of(&Constraint::parse(text).unwrap());
    for text in ["zone:a b", "expr:: 'my zone' = a", "expr:: @hostname = 'A b'"] {
        assert_eq!(of(text), NodeSelection::Nowhere, "{text}");
    }
    for text in ["expr:: zone != 'a b'", "expr:: not 'my zone'", "expr:: zone = a or not 'a b'"] {
        assert_eq!(of(text), NodeSelection::Everywhere, "{text}");
    }
}

/// Goal: excluded nodes are left out in each term, the latest ones if they are too many, and manifests stay small.
/// Method: one hundred excluded nodes with one term and with sixty-four; a name that is no node's.
#[test]
fn excluded_nodes_are_left_out() {
    let names: Vec<String> = (0..100).map(|at| format!("n{at}")).collect();
    let excluded: Vec<&str> = names.iter().map(String::as_str).collect();
    let node = |at: usize| (names[at].clone(), BTreeMap::from([("z".into(), "v1".into())]));
    let one = affinity("", &excluded);
    assert!((0..64).all(|at| !admits(one.as_ref(), &node(at))));
    assert!((64..100).all(|at| admits(one.as_ref(), &node(at))));
    let values: Vec<String> = (0..64).map(|at| format!("v{at}")).collect();
    let many = affinity(&format!("z:{}", values.join(",")), &excluded);
    assert!((0..16).all(|at| !admits(many.as_ref(), &node(at))));
    assert!(many.unwrap().to_string().len() < 128 * 1024);
    assert_eq!(affinity("", &["not a node"]), None);
}

/// Goal: which constraints are exact is known. Method: one of each kind.
#[test]
fn exact_constraints_are_known() {
    let is_exact = |text: &str| Constraint::parse(text).unwrap().is_exact_in_labels();
    for text in ["", "zone:a,b", "gpu:", "expr:: zone != a and (rack or @zone in {x, y})"] {
        assert!(is_exact(text), "{text}");
    }
    let many = format!("zone:{}", (0..40).map(|at| at.to_string()).collect::<Vec<_>>().join(","));
    for text in ["expr:: zone like a*", "expr:: tier >= 3", "expr:: not tier < 3", &many] {
        assert!(!is_exact(text), "{text}");
    }
}

fn constraints() -> impl Strategy<Value = String> {
    let subject = prop::sample::select(vec!["a", "b", "c.d/e", "@hostname", "@zone", "@region"]);
    let value = prop::sample::select(vec!["x", "y", "n1", "3", "X"]);
    let leaf = (subject, value.clone(), value, 0..8_u8).prop_map(|(subject, one, other, kind)| {
        let subject =
            if subject.contains('/') { format!("'{subject}'") } else { subject.to_owned() };
        match kind {
            0 => subject,
            1 => format!("{subject} = {one}"),
            2 => format!("{subject} != {one}"),
            3 => format!("{subject} in {{{one}, {other}}}"),
            4 => format!("{subject} not in {{{one}, {other}}}"),
            5 => format!("{subject} like {one}*"),
            6 => format!("{subject} >= 3"),
            _ => format!("not {subject}"),
        }
    });
    leaf.prop_recursive(3, 8, 2, |inner| {
        (inner.clone(), inner, 0..3_u8).prop_map(|(one, other, kind)| match kind {
            0 => format!("({one} and {other})"),
            1 => format!("({one} or {other})"),
            _ => format!("not ({one} and {other})"),
        })
    })
}

fn nodes() -> impl Strategy<Value = Node> {
    let key = prop::sample::select(vec!["a", "b", "c.d/e", ZONE_LABEL, REGION_LABEL]);
    let value = prop::sample::select(vec!["x", "y", "3", "X", "xy", "n1"]);
    let labels = prop::collection::btree_map(
        key.prop_map(str::to_owned),
        value.prop_map(str::to_owned),
        0..5,
    );
    let name = prop::sample::select(vec!["n1", "n2", "x", "y"]).prop_map(str::to_owned);
    (name, labels)
}

/// A node's metadata, as an API server shows it.
fn metadata((name, labels): &Node) -> Metadata {
    Metadata { name: name.clone(), labels: labels.clone(), ..Metadata::default() }
}

/// Goal: pods stay small however many nodes meet the constraint, and together they may use all of them but the excluded
/// ones. Method: six hundred nodes, of which one hundred are excluded; the pods of one hundred executors.
#[test]
fn each_pod_names_some_of_many_nodes() {
    let constraint = Constraint::parse("expr:: rack like r*").unwrap();
    let mut nodes = Nodes::new(PodPlacement::of(&constraint));
    let rack = BTreeMap::from([("rack".to_owned(), "r1".to_owned())]);
    let names: Vec<String> = (0..600).map(|at| format!("n{at}")).collect();
    nodes.listed(names.iter().map(|name| metadata(&(name.clone(), rack.clone()))).collect());
    let excluded = &names[..100];
    let mut used = std::collections::BTreeSet::new();
    for executor in 0..100 {
        let excluded = excluded.iter().map(String::as_str);
        let selection = &nodes.choice().selection;
        let affinity = selection.affinity(excluded, &format!("etl-1-{executor}.0"));
        let affinity = affinity.unwrap();
        assert!(affinity.to_string().len() < 32 * 1024);
        let nodes = names.iter().map(|name| (name.clone(), rack.clone()));
        let admitted: Vec<String> =
            nodes.filter(|node| admits(Some(&affinity), node)).map(|(name, _)| name).collect();
        assert_eq!(admitted.len(), 256);
        used.extend(admitted);
    }
    assert_eq!(used, names[100..].iter().cloned().collect());
    let selection = &nodes.choice().selection;
    assert!(selection.is_empty(&names) && !selection.is_empty(excluded));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// Goal: where the labels of nodes are read, exactly the nodes are admitted that meet the constraint and aren't
    /// excluded, whatever happened before; and a pod that waits since the last change is outdated if there is another
    /// node or one less, but not because one is gone. Method: random constraints, nodes that come, change and go at
    /// random; the kernel's matcher on those that are there.
    #[test]
    fn named_nodes_are_those_that_meet_the_constraint(
        text in constraints(),
        first in prop::collection::vec(nodes(), 0..4),
        steps in prop::collection::vec((nodes(), any::<bool>()), 0..6),
    ) {
        let constraint = Constraint::parse(&format!("expr:: {text}")).unwrap();
        let mut nodes = Nodes::new(PodPlacement::Labels(constraint.clone()));
        let mut there: BTreeMap<String, BTreeMap<String, String>> = first.iter().cloned().collect();
        let met = |there: &BTreeMap<String, BTreeMap<String, String>>| {
            let met = there.iter().filter(|(name, labels)| meets(&constraint, name, labels));
            met.map(|(name, _)| name.clone()).collect::<std::collections::BTreeSet<_>>()
        };
        nodes.listed(there.clone().into_iter().map(|node| metadata(&node)).collect());
        for (node, is_gone) in steps {
            let (before, choice) = (met(&there), Arc::clone(nodes.choice()));
            if is_gone {
                nodes.deleted(&node.0);
                there.remove(&node.0);
            } else {
                there.insert(node.0.clone(), node.1.clone());
                nodes.seen(metadata(&node));
            }
            let now = met(&there);
            prop_assert_eq!(Arc::ptr_eq(&choice, nodes.choice()), now == before);
            let is_more = !now.is_subset(&before);
            let is_less = before.iter().any(|name| !now.contains(name) && there.contains_key(name));
            let is_outdated = choice.is_outdated(nodes.choice(), |name| nodes.is_there(name));
            prop_assert_eq!(is_outdated, is_more || is_less);
            nodes.avoid(vec!["n1".to_owned()]);
            let affinity = nodes.choice().affinity("1");
            let is_empty = nodes.choice().is_empty();
            nodes.avoid(Vec::new());
            prop_assert_eq!(is_empty, affinity.is_none());
            for node in &there {
                let node = (node.0.clone(), node.1.clone());
                let is_admitted = !is_empty && admits(affinity.as_ref(), &node);
                prop_assert_eq!(is_admitted, now.contains(&node.0) && node.0 != "n1");
            }
        }
    }

    /// Goal: no node that meets the constraint is left out, and where the constraint is exact, no other is admitted; an
    /// excluded node never is. Method: random constraints against random nodes, with the kernel's matcher.
    #[test]
    fn affinities_admit_what_meets_the_constraint(
        text in constraints(),
        nodes in prop::collection::vec(nodes(), 1..6),
    ) {
        let constraint = Constraint::parse(&format!("expr:: {text}")).unwrap();
        let selection = NodeSelection::of(&constraint);
        let affinity = selection.affinity([], "1");
        let excluding = selection.affinity(["n1"], "1");
        for node in &nodes {
            let is_admitted = selection != NodeSelection::Nowhere && admits(affinity.as_ref(), node);
            let is_met = meets(&constraint, &node.0, &node.1);
            prop_assert!(is_admitted || !is_met, "{text} hides {node:?}: {affinity:?}");
            if constraint.is_exact_in_labels() {
                prop_assert_eq!(is_admitted, is_met, "{} {:?}: {:?}", text, node, affinity);
            }
            if selection != NodeSelection::Nowhere {
                let is_admitted_still = admits(excluding.as_ref(), node);
                prop_assert_eq!(is_admitted_still, is_admitted && node.0 != "n1");
            }
        }
    }
}
