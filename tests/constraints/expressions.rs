//! Tests of the expression syntax: meaning, canonical form, and error messages.

use offermill::constraint::{CONSTRAINT_BYTES_MAX, Mismatch, Unmet};
use offermill::resources::PortRange;
use offermill::{Attribute, AttributeValue, Constraint, Error, Offer};

fn parse(text: &str) -> Constraint {
    Constraint::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> Error {
    let error = Constraint::parse(text).expect_err(text);
    assert!(error.is_constraint());
    error
}

/// Conditions that hold for the agent of `each_condition_means_what_is_documented`.
const HOLD: &[&str] = &[
    "zone",
    "zone = us-east-1b",
    "zone==us-east-1b",
    "zone in {us-east-1a, us-east-1b,}",
    "zone like us-*-1?",
    "zone like *",
    "tier = 3",
    "tier = 3.0",
    "tier in {x, 3}",
    "tier in [1-2, 3]",
    "tier in [0-18446744073709551615]",
    "tier >= 3 and tier <= 3 and tier > -1e3 and tier < 3.5",
    "slots = 15",
    "slots in [1-10]",
    "slots in [25-40]",
    "slots > 29 and slots < 11 and not slots > 30 and not slots < 10",
    "disk = ssd",
    "disk in {hdd, nvme}",
    "disk like n*",
    "\"in\" = keyword",
    "tag = red and tag = blue",
    "@hostname like node-*.example.org",
    "@region = eu and @zone = eu-1",
    "@zone",
    "rack != r1",
    "not rack",
    "zone != \"us-*\"",
    "rack = a or tier = 3",
    "(rack or tier) and not (rack and tier)",
    "rack and zone or tier",
    "! rack && ! rack || rack",
    "not not zone",
    "zone NOT IN {a} AND Not rack",
];

/// Conditions that don't hold for that agent.
const FAIL: &[&str] = &[
    "rack",
    "zone = us-east",
    "zone != us-east-1b",
    "zone like us-east",
    "zone like us-?",
    "zone in [1-9]",
    "zone < 3",
    "tier = 4",
    "tier = three",
    "tier in [4-9]",
    "tier in [0-2, 4]",
    "tier like 3*",
    "tier > 3",
    "slots = 21",
    "slots in [3-9, 21-29]",
    "slots in [4-8]",
    "load in [0, 1]",
    "disk = hdd",
    "disk in {hdd, tape}",
    "disk > 3",
    "tag != red",
    "@zone = us",
    "@region like us*",
    "zone and rack",
    "(zone or tier) and rack",
    "not (zone or rack)",
];

/// Goal: each condition has the meaning that its row in the documentation describes. Method: one agent with an
/// attribute of each type, and conditions that hold and that don't.
#[test]
fn each_condition_means_what_is_documented() {
    let slots = [PortRange::new(10, 20), PortRange::new(30, 30), PortRange::new(9, 3)];
    let attributes = [
        Attribute::text("zone", "us-east-1b"),
        Attribute::scalar("tier", 3.0),
        Attribute { name: "slots", value: AttributeValue::Ranges(&slots) },
        Attribute { name: "disk", value: AttributeValue::Set(&["ssd", "nvme"]) },
        Attribute::text("in", "keyword"),
        Attribute::text("tag", "red"),
        Attribute::text("tag", "blue"),
        Attribute::scalar("load", 0.5),
        Attribute::text("star", "a*?"),
    ];
    let offer =
        Offer::new("o", "S1", "node-7.example.org", &[], &attributes).in_domain("eu", "eu-1");
    for text in HOLD {
        let constraint = parse(&format!("expr:: {text}"));
        assert_eq!(constraint.check(&offer), Ok(()), "{text}");
        let printed = constraint.to_string();
        assert_eq!(parse(&printed).to_string(), printed);
    }
    for text in FAIL {
        assert!(parse(&format!("expr:: {text}")).check(&offer).is_err(), "{text}");
    }
    // Host name, region and zone are unknown.
    assert!(!parse("expr:: @zone").matches(&attributes));
    assert!(!parse("expr:: @hostname").matches(&attributes));
}

/// Goal: regular expressions must match the whole text. Method: alternatives of which the first is shorter, anchors,
/// sets.
#[cfg(feature = "regex")]
#[test]
fn regular_expressions_match_the_whole() {
    let attributes = [
        Attribute::text("zone", "ab"),
        Attribute { name: "disk", value: AttributeValue::Set(&["ssd", "nvme"]) },
    ];
    for pattern in ["a|ab", "a.|x", "^ab$", "(?i)A.", "ab?", r"\w\w", "(?x) a b # c"] {
        assert!(
            parse(&format!("expr:: zone matches '{pattern}'")).matches(&attributes),
            "{pattern}"
        );
    }
    for pattern in ["a", "b", "ab|", "abc?d", ""] {
        let constraint = parse(&format!("expr:: zone matches '{pattern}'"));
        assert_eq!(constraint.matches(&attributes), pattern == "ab|", "{pattern}");
    }
    assert!(parse("expr:: zone matches '^ab$' and disk matches '[a-z]+'").matches(&attributes));
    assert!(!parse("expr:: zone matches '[a]'").matches(&attributes));
    for (pattern, why) in [
        ("a)(b", "unopened group"),
        ("(", "unclosed group"),
        ("a{1000}{1000}", "it takes too much memory"),
    ] {
        let message = refused(&format!("expr:: zone matches '{pattern}'")).to_string();
        assert!(message.contains(why), "{message}");
    }
    let deep = format!("expr:: a matches '{}'", "(".repeat(1000));
    refused(&deep);
    let many = vec!["a matches b"; 33].join(" or ");
    assert!(refused(&format!("expr:: {many}")).to_string().contains("no more than 32"));
}

/// Goal: expressions that differ only in spelling have the same canonical form. Method: several spellings and the
/// canonical form.
#[test]
fn one_form_for_all_spellings() {
    for (text, canonical) in [
        ("expr::zone", "expr:: zone"),
        ("  expr::  ( (zone) )", "expr:: zone"),
        ("expr:: 'zone' == \"east\"", "expr:: zone = east"),
        ("expr:: zone in {b,a,'b',}", "expr:: zone in {a,b}"),
        ("expr:: zone in {a}", "expr:: zone = a"),
        ("expr:: not zone = a", "expr:: zone != a"),
        ("expr:: not zone in {a,b}", "expr:: zone not in {a,b}"),
        ("expr:: ! (zone like a*)", "expr:: zone not like a*"),
        ("expr:: tier>=3.50 && tier<1e20", "expr:: tier >= 3.5 and tier < 1e20"),
        ("expr:: tier in [5-9, 1, 2-5,20-20]", "expr:: tier in [1,2-9,20]"),
        ("expr:: not tier < 3", "expr:: not tier < 3"),
        ("expr:: not(a and b)or c", "expr:: not (a and b) or c"),
        ("expr:: (a or b) and (c and d)", "expr:: (a or b) and c and d"),
        ("expr:: a or (b and c)", "expr:: a or b and c"),
        ("expr:: zone = 'a b'", "expr:: zone = \"a b\""),
        ("expr:: zone = 'a\"\\\\'", "expr:: zone = \"a\\\"\\\\\""),
        ("expr:: zone = 'a\\d\\\''", "expr:: zone = \"a\\\\d'\""),
        ("expr:: zone = '*'", "expr:: zone = \"*\""),
        ("expr:: 'or' = 'IN'", "expr:: \"or\" = \"IN\""),
        ("expr:: '' = ''", "expr:: \"\" = \"\""),
    ] {
        let constraint = parse(text);
        assert_eq!(constraint.to_string(), canonical);
        assert_eq!(parse(canonical), constraint);
    }
    assert_ne!(parse("expr:: rack"), parse("rack:"));
}

/// Goal: a mismatch reports the deciding condition and how it fails. Method: each kind of mismatch, in both syntaxes.
#[test]
fn a_mismatch_is_named() {
    let slots = AttributeValue::Ranges(&[PortRange::new(1, 5)]);
    let attributes = [
        Attribute::text("zone", "east"),
        Attribute::scalar("tier", 3.0),
        Attribute { name: "slots", value: slots },
    ];
    let offer = Offer::new("o", "S1", "h", &[], &attributes);
    for (text, condition, mismatch) in [
        ("zone:east;rack:", "rack:", Mismatch::Absent),
        ("tier:4;zone:east", "tier:4", Mismatch::Differs),
        ("zone:east;tier:high", "tier:high", Mismatch::Incomparable),
        ("expr:: zone and rack = 1", "rack = 1", Mismatch::Absent),
        ("expr:: zone = west or tier > 3", "tier > 3", Mismatch::Differs),
        ("expr:: tier like 3*", "tier like 3*", Mismatch::Incomparable),
        ("slots:x;zone:east", "slots:x", Mismatch::Incomparable),
        ("slots:7;zone:east", "slots:7", Mismatch::Differs),
        ("expr:: slots like 3*", "slots like 3*", Mismatch::Incomparable),
        ("expr:: zone > 3", "zone > 3", Mismatch::Incomparable),
        ("expr:: tier and zone != east", "zone != east", Mismatch::Excluded),
        ("expr:: not (rack or zone = east)", "zone = east", Mismatch::Excluded),
    ] {
        let constraint = parse(text);
        let Unmet { condition: number, mismatch: found } = constraint.check(&offer).unwrap_err();
        assert_eq!(constraint.condition(number).as_deref(), Some(condition), "{text}");
        assert_eq!(found, mismatch, "{text}");
    }
    assert_eq!(parse("rack:").condition(1), None);
}

/// Goal: a verdict reports the result of each condition. Method: compare the whole text for one agent.
#[test]
fn a_verdict_reads_well() {
    let slots = [PortRange::new(1, 9)];
    let attributes = [
        Attribute::text("zone", "east\u{1b}[2J"),
        Attribute::scalar("tier", 3.0),
        Attribute { name: "slots", value: AttributeValue::Ranges(&slots) },
    ];
    let offer = Offer::new("o", "S1", "node-7", &[], &attributes);
    let verdict = parse("expr:: zone = west and (slots in [4] or @region) and tier like 3*");
    let expected = "\
fails  zone = west   the attribute's value differs: text `east\\u{1b}[2J`
holds  slots in [4]  ranges [1-9]
fails  @region       the agent has no such attribute
fails  tier like 3*  the attribute's type can't be compared with it: scalar 3
no match";
    assert_eq!(verdict.examine(&offer).to_string(), expected);
    assert_eq!(Constraint::none().examine(&offer).to_string(), "match");
}

/// Goal: a syntax error shows its position, what was expected, and what was probably meant. Method: common mistakes,
/// with the column of the caret and the repair if there is one.
#[test]
fn mistakes_are_explained() {
    for (text, offset, expected, repaired) in [
        ("expr::", 6, "expected a condition", None),
        ("expr:: zone and", 15, "expected a condition", Some("expr:: zone")),
        ("expr:: zone || ", 15, "expected a condition", Some("expr:: zone")),
        ("expr:: and zone", 7, "expected a condition", Some("expr::  zone")),
        ("expr:: (zone", 7, "expected a )", Some("expr:: (zone)")),
        ("expr:: ((a) or b", 7, "expected a )", Some("expr:: ((a) or b)")),
        ("expr:: zone)", 11, "expected a (", Some("expr:: zone")),
        ("expr:: ()", 8, "expected a condition", None),
        ("expr:: zone:east", 11, "expected an operator", Some("expr:: zone = east")),
        ("expr:: zone:a,b;rack:", 11, "an operator", Some("expr:: zone in {a,b} and rack ")),
        ("expr:: zone = east; rack", 18, "`and`", Some("expr:: zone = east and  rack")),
        ("expr:: a & b | c", 9, "`and`", Some("expr:: a  and  b  or  c")),
        ("expr:: zone ~ us-*", 12, "`like`", Some("expr:: zone  like  us-*")),
        ("expr:: zone = us-*", 14, "expected `like`", Some("expr:: zone like us-*")),
        ("expr:: zone != us-*", 15, "expected `like`", Some("expr:: zone not like us-*")),
        ("expr:: zone in {a,b*}", 18, "quotation marks", None),
        ("expr:: zone = 'east", 14, "expected a second '", Some("expr:: zone = 'east'")),
        ("expr:: zone = in", 14, "quotation marks", Some("expr:: zone = \"in\"")),
        ("expr:: zone =", 13, "expected a value", None),
        ("expr:: zone in east", 15, "expected {value", Some("expr:: zone in {east}")),
        ("expr:: zone in (a, b)", 15, "expected {value", Some("expr:: zone in {a, b}")),
        ("expr:: zone in {a b}", 18, "expected , or }", Some("expr:: zone in {a ,b}")),
        ("expr:: zone in {a", 17, "expected , or }", Some("expr:: zone in {a}")),
        ("expr:: tier in [9-1]", 16, "smaller", Some("expr:: tier in [1-9]")),
        ("expr:: tier in [a]", 16, "an interval", None),
        ("expr:: tier > high", 14, "expected a number", None),
        ("expr:: tier > inf", 14, "expected a number", None),
        ("expr:: tier > 0x10", 14, "expected a number", None),
        ("expr:: tier > 3GB", 14, "expected a number", None),
        ("expr:: zone east", 12, "`and`, `or`", Some("expr:: zone and east")),
        ("expr:: a (b)", 9, "`and`, `or`", Some("expr:: a and (b)")),
        ("expr:: zone =~ ea.*", 12, "`matches`", Some("expr:: zone  matches  ea.*")),
        ("expr:: zone === east", 12, "expected `=`", Some("expr:: zone = east")),
        ("expr:: tier <> 3", 12, "expected `!=`", Some("expr:: tier != 3")),
        ("expr:: zone eq east", 12, "expected `=`", Some("expr:: zone = east")),
        ("expr:: @Zone = eu", 7, "@hostname, @region or @zone", Some("expr:: @zone = eu")),
        ("EXPR:: zone", 5, "in lower case", Some("expr:: zone")),
        ("expr :: zone = a", 6, "without spaces", Some("expr:: zone = a")),
        ("expr:: @rack = 1", 7, "@hostname, @region or @zone", None),
        ("expr:: zone not east", 16, "`in`, `like`", None),
        ("expr:: zone not = east", 16, "`in`, `like`", None),
        // The text has Spark's syntax, but an expression was meant.
        ("tier >= 3", 9, "expr:: before", Some("expr:: tier >= 3")),
        ("tier >= 3; rack:r1", 9, "expr:: before", Some("expr:: tier >= 3 and  rack = r1")),
        ("zone = a and not rack", 21, "expr:: before", Some("expr:: zone = a and not rack")),
    ] {
        let error = refused(text);
        let message = error.to_string();
        assert_eq!(error.offset(), Some(offset), "{message}");
        let lines: Vec<&str> = message.lines().collect();
        assert_eq!(lines[1], format!("  {text}"), "{message}");
        assert_eq!(lines[2].find('^'), Some(2 + offset), "{message}");
        assert!(lines[2].contains(expected), "{message}");
        let proposed = lines.get(3).map(|line| line.trim_start_matches("nearest valid form: "));
        assert_eq!(proposed, repaired, "{message}");
    }
}

/// Goal: an expression of any size and depth is parsed and evaluated in linear time, without recursion and in bounded
/// memory. Method: the deepest, widest and longest allowed expressions, on a thread with a small stack; a quadratic
/// parser would take minutes in a debug build.
#[test]
fn large_expressions_take_linear_time() {
    let work = || {
        let room = CONSTRAINT_BYTES_MAX - 16;
        let deep = format!("expr:: {}a{}", "(".repeat(room / 2), ")".repeat(room / 2));
        assert!(parse(&deep).matches(&[Attribute::text("a", "")]));
        let nots = format!("expr:: {}a", "!".repeat(room));
        assert!(parse(&nots).matches(&[Attribute::text("a", "")]));
        let nested = format!("expr:: {}a{}", "!(".repeat(room / 3), ")".repeat(room / 3));
        let constraint = parse(&nested);
        assert_eq!(parse(&constraint.to_string()), constraint);
        for open in ["(", "!(", "a and (", "a or not (", "a in {", "'", "a = \"\\"] {
            refused(&format!("expr:: {}", open.repeat(room / open.len())));
        }
        let zigzag = format!("expr:: {}a{}", "a and (b or (".repeat(500), "))".repeat(500));
        let constraint = parse(&zigzag);
        assert_eq!(parse(&constraint.to_string()), constraint);
        let many: Vec<Attribute<'_>> = vec![Attribute::text("c", "x"); 20_000];
        assert!(!constraint.matches(&many));

        let alternatives = |count: usize| format!("expr:: {}", vec!["a"; count].join(" or "));
        parse(&alternatives(1024));
        let message = refused(&alternatives(1025)).to_string();
        assert!(message.contains("no more than 1024"), "{message}");
        let values: Vec<String> = (0..9_000).map(|n| format!("{n:05}")).collect();
        let set = parse(&format!("expr:: a in {{{}}}", values.join(",")));
        assert!(set.matches(&[Attribute::text("a", "08999")]));
        let long = format!("expr:: a = '{}'", "\"".repeat(room - 10));
        assert!(refused(&long).to_string().contains("when written out in full"));
        assert!(
            refused(&format!("expr:: {}", " ".repeat(CONSTRAINT_BYTES_MAX))).offset().is_some()
        );
        let patterns = vec![format!("a like {}", "*a".repeat(600)); 4].join(" or ");
        assert!(refused(&format!("expr:: {patterns}")).to_string().contains("no more than 4096"));
        let names: Vec<String> = (0..8_000).map(|n| format!("{n:05}")).collect();
        let all: Vec<Attribute<'_>> = names.iter().map(|name| Attribute::text(name, "x")).collect();
        let entries =
            parse(&names.iter().map(|name| format!("{name}:y")).collect::<Vec<_>>().join(";"));
        assert_eq!(entries.examine(&Offer::new("o", "S1", "h", &[], &all)).findings.len(), 8_000);
    };
    std::thread::Builder::new().stack_size(256 * 1024).spawn(work).unwrap().join().unwrap();
}
