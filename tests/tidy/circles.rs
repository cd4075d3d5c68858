//! Circles in a directed graph: its strongly connected components of more than one node.

use std::collections::{BTreeMap, BTreeSet};

/// The circles that the arrows form. Arrows from a node to itself don't count.
pub(crate) fn find<'a>(arrows: &BTreeSet<(&'a str, &'a str)>) -> Vec<BTreeSet<&'a str>> {
    let mut next: BTreeMap<&str, Vec<&'a str>> = BTreeMap::new();
    for (from, to) in arrows {
        next.entry(from).or_default().push(to);
    }
    let reached: BTreeMap<&'a str, BTreeSet<&'a str>> =
        arrows.iter().map(|(from, _)| (*from, reach(from, &next))).collect();
    let mut found: Vec<BTreeSet<&'a str>> = Vec::new();
    for (node, onwards) in &reached {
        if found.iter().any(|circle| circle.contains(node)) {
            continue;
        }
        let returns =
            |other: &&&'a str| reached.get(**other).is_some_and(|back| back.contains(node));
        let mut circle: BTreeSet<&'a str> = onwards.iter().filter(returns).copied().collect();
        circle.insert(*node);
        if circle.len() > 1 {
            found.push(circle);
        }
    }
    found
}

/// All nodes to which a way leads from `start`.
fn reach<'a>(start: &str, next: &BTreeMap<&str, Vec<&'a str>>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = vec![start];
    while let Some(node) = open.pop() {
        for to in next.get(node).into_iter().flatten() {
            if found.insert(*to) {
                open.push(to);
            }
        }
    }
    found
}

/// Goal: circles are found, and only they. Method: two circles, an arrow between them, and a tail.
#[test]
fn circles_are_found() {
    let arrows = [
        ("a", "b"),
        ("b", "a"),
        ("b", "c"),
        ("c", "d"),
        ("d", "e"),
        ("e", "c"),
        ("e", "f"),
        ("f", "f"),
    ];
    let found = find(&BTreeSet::from(arrows));
    assert_eq!(found, [BTreeSet::from(["a", "b"]), BTreeSet::from(["c", "d", "e"])]);
}
