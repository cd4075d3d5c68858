//! Tests of the translation of common constraints and of its limits. `tests/constraints/` checks that no matching agent
//! is hidden.

use super::*;
use crate::constraint::CONSTRAINT_BYTES_MAX;

fn of(text: &str, repeats: DuplicateAttributes) -> ConstraintPushdown {
    Constraint::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}")).pushdown(repeats)
}

/// Common constraints, and the checks for the master if names may repeat and if they don't.
const COMMON: [(&str, &str, &str); 21] = [
    ("", "everything", "everything"),
    ("rack:", "`rack` exists", "`rack` exists"),
    ("zone:east,west", "`zone` exists", "`zone` is `east` or `zone` is `west`"),
    (
        "zone:east;rack:;tier:3",
        "`rack` exists and `tier` exists and `zone` exists",
        "`rack` exists and `tier` is `3` and `zone` is `east`",
    ),
    (
        "expr:: zone in {east, west} and rack like r1*",
        "`rack` exists and `zone` exists",
        "`rack` matches `r1\\C*` and `zone` is `east` or `rack` matches `r1\\C*` and `zone` is `west`",
    ),
    ("expr:: not @hostname = x", "@hostname isn't `x`", "@hostname isn't `x`"),
    ("expr:: @zone in {a, b}", "@zone is `a` or @zone is `b`", "@zone is `a` or @zone is `b`"),
    (
        "expr:: @hostname like 'web-?'",
        "@hostname matches `web-(?s:.)`",
        "@hostname matches `web-(?s:.)`",
    ),
    ("expr:: zone != east", "`zone` isn't `east`", "`zone` isn't `east`"),
    (
        "expr:: zone not in {a, b}",
        "`zone` isn't `a` and `zone` isn't `b`",
        "`zone` isn't `a` and `zone` isn't `b`",
    ),
    ("expr:: not rack like r1*", "`rack` doesn't match `r1\\C*`", "`rack` doesn't match `r1\\C*`"),
    ("expr:: not gpu", "`gpu` doesn't exist", "`gpu` doesn't exist"),
    (
        "expr:: zone and zone != a",
        "`zone` exists and `zone` isn't `a`",
        "`zone` exists and `zone` isn't `a`",
    ),
    ("expr:: tier >= 3", "`tier` exists", "`tier` exists"),
    ("expr:: not tier >= 3", "everything", "everything"),
    ("expr:: a or not a", "`a` exists or `a` doesn't exist", "`a` exists or `a` doesn't exist"),
    (
        "expr:: (zone = east or @region = eu) and gpu",
        "`gpu` exists and `zone` exists or `gpu` exists and @region is `eu`",
        "`gpu` exists and `zone` is `east` or `gpu` exists and @region is `eu`",
    ),
    (
        "expr:: not (zone = east and rack = r1)",
        "`rack` isn't `r1` or `zone` isn't `east`",
        "`rack` isn't `r1` or `zone` isn't `east`",
    ),
    ("expr:: a = x or tier < 3 or not tier < 3", "everything", "everything"),
    (
        "expr:: not @region",
        "@region doesn't exist or @region is ``",
        "@region doesn't exist or @region is ``",
    ),
    ("expr:: @zone != '' and not @zone like *", "everything", "everything"),
];

/// Goal: everything that the master can check is sent to it. Method: compare the checks for common constraints, with
/// and without repeats.
#[test]
fn common_constraints_are_pushed_down() {
    for (text, with_repeats, without) in COMMON {
        let sorted = |pushdown: ConstraintPushdown| {
            let group = |group: &Vec<Check>| {
                let mut checks: Vec<String> = group.iter().map(ToString::to_string).collect();
                checks.sort_by_key(|check| check.replace('@', "~"));
                checks.join(" and ")
            };
            let groups: Vec<String> = pushdown.groups().iter().map(group).collect();
            if groups.is_empty() { pushdown.to_string() } else { groups.join(" or ") }
        };
        assert_eq!(sorted(of(text, DuplicateAttributes::Allowed)), with_repeats, "{text}");
        assert_eq!(
            sorted(of(text, DuplicateAttributes::RuledOut)),
            without,
            "{text}, without repeats"
        );
    }
}

/// Goal: regular expressions are passed on only if RE2 gives them the same meaning. Method: one that is and one that
/// isn't, plain and negated.
#[cfg(feature = "regex")]
#[test]
fn regular_expressions_are_pushed_down_if_they_are_plain() {
    for (text, wanted) in [
        ("expr:: rack matches 'r1[0-9]+'", "`rack` matches `r1[0-9]+`"),
        ("expr:: rack matches 'r\\d+'", "`rack` exists"),
        ("expr:: rack matches r1", "`rack` is `r1`"),
        ("expr:: rack not matches 'r1|r2'", "`rack` doesn't match `r1|r2`"),
        ("expr:: rack not matches '(?i)r1'", "everything"),
        ("expr:: @zone not matches 'a*'", "everything"),
    ] {
        assert_eq!(of(text, DuplicateAttributes::RuledOut).to_string(), wanted, "{text}");
    }
}

fn sizes(pushdown: &ConstraintPushdown) -> (usize, usize) {
    (pushdown.groups().len(), pushdown.groups().iter().map(Vec::len).sum())
}

/// Goal: pushdowns stay small and fast to compute, and if a limit is exceeded, the checks are weakened rather than
/// dropped. Method: constraints with many entries, values and alternatives, up to the maximum length.
#[test]
fn pushdowns_are_bounded() {
    let list =
        |items: &mut dyn Iterator<Item = String>, by: &str| items.collect::<Vec<_>>().join(by);
    let entries = list(&mut (0..9000).map(|n| format!("a{n}:")), ";");
    let values = list(&mut (0..20).map(|n| format!("v{n}")), ",");
    let many = list(&mut (0..12_000).map(|n| n.to_string()), ",");
    let either = list(&mut (0..500).map(|n| format!("zone = a{n} and rack = b{n}")), " or ");
    let mixed =
        list(&mut (0..170).map(|n| format!("(a{n} or not (b{n} and (c{n} or d{n}=1)))")), " and ");
    let long = format!("z:{};y:{}", "x".repeat(30_000), "y".repeat(30_000));
    for (text, groups, checks) in [
        (entries, 1, 256),
        (format!("zone:{values}"), 20, 20),
        // The values of one attribute, and the existence of the other.
        (format!("rack:{values};zone:{values}"), 20, 40),
        (format!("zone:{many}"), 1, 1),
        (format!("expr:: {either}"), 1, 2),
        (long, 1, 2),
    ] {
        assert!(text.len() <= CONSTRAINT_BYTES_MAX);
        assert_eq!(
            sizes(&of(&text, DuplicateAttributes::RuledOut)),
            (groups, checks),
            "{:.80}",
            text
        );
    }
    let (groups, checks) = sizes(&of(&format!("expr:: {mixed}"), DuplicateAttributes::RuledOut));
    assert!((1..=64).contains(&groups) && checks <= 256, "{groups}, {checks}");
}
