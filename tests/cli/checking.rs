//! Tests of `offermill constraints check`.

use crate::support::{Ended, Folder, finish};

fn check(arguments: &[&str]) -> Ended {
    let all: Vec<&str> = ["constraints", "check"].iter().chain(arguments).copied().collect();
    finish(&Folder::new(), &all)
}

/// Goal: a constraint without an agent is parsed and printed in canonical form. Method: print both syntaxes, and an
/// empty one.
#[test]
fn a_constraint_is_read() {
    for (text, expected) in [
        ("zone:west,east;rack:", "valid, 2 conditions: rack:;zone:east,west\n"),
        ("expr:: zone==east", "valid, 1 condition: expr:: zone = east\n"),
        ("", "no constraint: every agent meets it\n"),
    ] {
        let ended = check(&[text]);
        assert_eq!((ended.code, &*ended.output), (Some(0), expected));
    }
}

/// Goal: a condition on an attribute with the name `expr` stays valid, and a hint says how expressions begin. Method:
/// one colon less than an expression, with and without other conditions; an expression, and other names.
#[test]
fn an_expression_with_one_colon_gets_a_hint() {
    for text in ["expr: zone = east", "expr:", "zone:east; expr:a=b"] {
        let ended = check(&[text]);
        assert_eq!(ended.code, Some(0), "{text}");
        assert!(ended.output.starts_with("valid, "), "{}", ended.output);
        let hint = "offermill: the constraint asks for an attribute with the name \"expr\"; expressions begin with \
                    \"expr::\"\n";
        assert_eq!(ended.errors, hint, "{text}");
    }
    for text in ["expr:: zone = east", "expression:a", "a:expr", "zone:east"] {
        assert_eq!(check(&[text]).errors, "", "{text}");
    }
}

/// Goal: an agent is checked condition by condition, and the exit code is the result. Method: check a match and a
/// mismatch in each syntax against an agent with a location and an attribute of each type.
#[test]
fn an_agent_is_held_against_it() {
    let agent = [
        "--attributes",
        "zone:east;zone:south;tier:3;ports:[1-9];disk:{ssd,nvme}",
        "--hostname",
        "node-7",
        "--region",
        "eu",
    ];
    let with_agent = |text| check(&[&[text], &agent[..]].concat());
    let ended = with_agent("zone:south;tier:2;ports:5;disk:ssd");
    let expected = "\
holds  disk:ssd    set {ssd,nvme}
holds  ports:5     ranges [1-9]
holds  tier:2      scalar 3
holds  zone:south  text `east`; text `south`
match
";
    assert_eq!((ended.code, &*ended.output), (Some(0), expected));
    let ended = with_agent("expr:: @zone or @hostname like db-* or (@region = eu and tier > 3)");
    let expected = "\
fails  @zone                the agent has no such attribute
fails  @hostname like db-*  the attribute's value differs: text `node-7`
holds  @region = eu         text `eu`
fails  tier > 3             the attribute's value differs: scalar 3
no match
";
    assert_eq!((ended.code, &*ended.output), (Some(1), expected));
}

/// Goal: an invalid constraint is explained on standard error, and nothing is printed. Method: a bad constraint in each
/// syntax, bad attributes, and both at once.
#[test]
fn mistakes_are_explained() {
    for (arguments, told) in [
        (&["zone;rack:r1"][..], "      ^ expected ':'\nnearest valid form: zone:;rack:r1\n"),
        (&["expr:: (a"], "         ^ expected a ) for it\nnearest valid form: expr:: (a)\n"),
        (&["expr:: a matches '('"], "this is not a regular expression: unclosed group"),
        (&["a:", "--attributes", "zone"], "attributes is \"zone\", but must be NAME:VALUE"),
        (&["a", "--attributes", "p:[2-1]"], "bad constraint: `a` has no ':'"),
        (&["a", "--attributes", "p:[2-1]"], "attributes is \"p:[2-1]\""),
    ] {
        let ended = check(arguments);
        assert_eq!((ended.code, &*ended.output), (Some(2), ""));
        assert!(ended.errors.contains(told), "{}", ended.errors);
    }
    assert_eq!(check(&[]).code, Some(2));
}
