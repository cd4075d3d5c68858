//! Tests of constraints against Spark's results and the documented rules.

use super::facts::Subject;
use super::fingerprint::Fingerprints;
use super::{CONSTRAINT_BYTES_MAX, Constraint, Memo};
use crate::error::Error;
use crate::offer::{Attribute, AttributeValue, Offer};
use crate::resources::PortRange;

fn parse(text: &str) -> Constraint {
    Constraint::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn refused(text: &str) -> Error {
    let error = Constraint::parse(text).expect_err(text);
    assert!(error.is_constraint());
    error
}

const fn ranges<'a>(name: &'a str, ranges: &'a [PortRange]) -> Attribute<'a> {
    Attribute { name, value: AttributeValue::Ranges(ranges) }
}

const fn set<'a>(name: &'a str, items: &'a [&'a str]) -> Attribute<'a> {
    Attribute { name, value: AttributeValue::Set(items) }
}

/// Goal: constraints are parsed as Spark parses them. Method: texts that were given to Spark's own parser, with its
/// results in canonical form.
#[test]
fn strings_are_read_as_spark_reads_them() {
    for (text, canonical) in [
        ("", ""),
        ("zone:us-east-1a,us-east-1b", "zone:us-east-1a,us-east-1b"),
        ("kernel:4.4;rack:r1,r2", "kernel:4.4;rack:r1,r2"),
        ("zone:us-east-1a,", "zone:us-east-1a"),
        ("zone:,", "zone:"),
        ("zone:,,,", "zone:"),
        ("zone:", "zone:"),
        ("zone:,b", "zone:,b"),
        ("zone:a,,b", "zone:,a,b"),
        ("kernel:,5", "kernel:,5"),
        ("zone: x", "zone: x"),
        ("zone : x , y ", "zone : x , y"),
        (" a:1 ;\t b:2\n", "a:1;b:2"),
        ("\u{2003}a:1\u{a0}", "a:1"),
        ("feats:b,a,b", "feats:a,b"),
        ("b:;a:", "a:;b:"),
        (":", ":"),
        (":;a:", ":;a:"),
        ("a,b:c", "a,b:c"),
        ("a=b:c", "a=b:c"),
        ("zone:b ,Z", "zone:b ,Z"),
        ("zone:a ,", "zone:a ,"),
        ("zone:,a ,", "zone:,a ,"),
    ] {
        let constraint = parse(text);
        assert_eq!(constraint.to_string(), canonical, "{text:?}");
        assert_eq!(parse(canonical), constraint, "{text:?}");
        assert_eq!(constraint.is_none(), text.is_empty());
    }
    assert_eq!(Constraint::default(), Constraint::none());
    assert_eq!(format!("{:?}", parse("b:;a:1")), "Constraint(a:1;b:)");
}

/// Goal: each syntax error reports its position and the constraint that was probably meant. Method: bad texts from
/// Spark's traces and common mistakes, with the column of the caret and the repair.
#[test]
fn bad_strings_are_explained() {
    for (text, offset, repaired) in [
        ("zone", 4, "zone:"),
        (" zone ;rack:", 5, " zone: ;rack:"),
        ("zone:a;zone:b", 7, "zone:a,b"),
        ("zone:;rack:r1; zone:b ;x:", 15, "zone:b;rack:r1 ;x:"),
        ("zone:a;zone:b;zone:c", 7, "zone:a,b,c"),
        ("zone:a;;rack:b", 7, "zone:a;rack:b"),
        ("zone:a; ;rack:b", 7, "zone:a;rack:b"),
        ("zone:a;", 7, "zone:a"),
        ("zone:a;;", 7, "zone:a"),
        (";zone:a", 0, "zone:a"),
        (";", 0, "the empty string, for no constraint"),
        (" ", 0, "the empty string, for no constraint"),
        ("zone=a", 4, "zone:a"),
        ("zone==a,b;rack", 4, "zone:a,b;rack:"),
        ("zone:a:b", 6, "zone:a,b"),
        ("zone:a,rack:b", 11, "zone:a;rack:b"),
        ("zone:a, rack:b", 12, "zone:a;rack:b"),
        ("zone: a:b", 7, "zone: a,b"),
        ("é:1;é", 7, "é:1"),
    ] {
        let error = refused(text);
        assert_eq!(error.offset(), Some(offset), "{text:?}");
        let message = error.to_string();
        let lines: Vec<&str> = message.lines().collect();
        assert!(lines[0].starts_with("bad constraint: "), "{message}");
        assert_eq!(lines[1], format!("  {text}"), "{message}");
        let column = 2 + text[..offset].chars().count();
        assert_eq!(lines[2].find('^'), Some(column), "{message}");
        assert_eq!(lines.get(3), Some(&&*format!("nearest valid form: {repaired}")), "{message}");
    }
}

/// Goal: an error message is readable. Method: compare one message in full.
#[test]
fn a_message_shows_the_place() {
    let expected = "bad constraint: `zone` has no ':' after the attribute's name\n  \
                    zone;rack:r1\n      ^ expected ':'\n\
                    nearest valid form: zone:;rack:r1";
    assert_eq!(refused("zone;rack:r1").to_string(), expected);
}

/// Goal: errors in long or unprintable texts have short, printable messages. Method: 60 KiB around an error, control
/// characters and a reversal of text direction, and a text over the limit where the limit falls inside a character.
#[test]
fn long_and_unprintable_strings_stay_readable() {
    let text = format!("a:{};b;c:{}", "x".repeat(30_000), "é".repeat(15_000));
    let error = refused(&text);
    assert_eq!(error.offset(), Some(30_004));
    let message = error.to_string();
    assert!(message.len() < 400, "{message}");
    assert!(message.contains("x;b;c:é") && message.matches('…').count() == 2, "{message}");
    assert_eq!(message.lines().nth(2).unwrap().find('^'), Some(2 + 1 + 48));

    let message = refused("a\u{1b}[31m\n\r\u{202e}b").to_string();
    assert!(message.contains("a\\u{1b}[31m\\n\\r\\u{202e}b"), "{message}");
    assert!(!message.contains(['\u{1b}', '\r', '\u{202e}']));

    let text = format!("a:1{}", "é".repeat(CONSTRAINT_BYTES_MAX / 2));
    let error = refused(&text);
    assert_eq!(error.offset(), Some(CONSTRAINT_BYTES_MAX - 1));
    assert!(error.to_string().contains("no more than 65536 bytes"), "{error}");
    parse(&format!("a:{}", "x".repeat(CONSTRAINT_BYTES_MAX - 2)));
}

/// Goal: each attribute type matches by its rule. Method: the agent of Spark's traces and one constraint per rule.
#[test]
fn each_type_matches_by_its_rule() {
    let slots = [PortRange::new(1, 10), PortRange::new(20, 20), PortRange::new(9, 3)];
    let agent = [
        Attribute::text("zone", "us-east-1b"),
        Attribute::scalar("kernel", 4.4),
        set("feats", &["b", "a"]),
        ranges("slots", &slots),
        Attribute::text("tags", "a,b"),
        Attribute::text("tags", ""),
        Attribute::text("zone", "shadow"),
    ];
    for text in [
        "",
        "zone:",
        "zone:,",
        "zone:us-east-1a,us-east-1b",
        "zone:shadow",
        "tags:",
        "tags:,x",
        "kernel:",
        "kernel:4.4",
        "kernel:x,4",
        "kernel: 4.4 ,9",
        "kernel:4d",
        "kernel:+.5e1F,4.f",
        "kernel:-Infinity,9",
        "kernel:NaN,1e-400",
        "feats:",
        "feats:a,a",
        "feats:b,a",
        "slots:5",
        "slots:0,20",
        "slots:+007",
        "slots:",
        "zone:us-east-1b;kernel:4;feats:a;slots:1",
    ] {
        assert!(parse(text).matches(&agent), "{text:?}");
    }
    for text in [
        "missing:",
        "zone:us-east-1a",
        "zone:us-east",
        "zone: shadow",
        "zone:US-EAST-1B",
        "tags:a",
        "kernel:4.5",
        "kernel:x",
        "kernel:NaN",
        "kernel:inf,nan,infinity",
        "kernel:0x1p0",
        "kernel:4dd",
        "kernel:Infinity",
        "feats:a,b,c",
        "feats:z",
        "slots:11",
        "slots:5.0",
        "slots:x",
        "slots:-5",
        "slots: 5",
        "slots:99999999999999999999",
        "slots:1-10",
        "zone:;missing:",
        ":",
    ] {
        assert!(!parse(text).matches(&agent), "{text:?}");
    }
}

/// Goal: edge cases of numbers match correctly. Method: one of each.
#[test]
fn edges_of_numbers_match() {
    assert!(!parse("kernel:0").matches(&[Attribute::scalar("kernel", f64::NAN)]));
    assert!(parse("slots:-0").matches(&[ranges("slots", &[PortRange::new(0, 0)])]));
    assert!(
        parse("a:18446744073709551615").matches(&[ranges("a", &[PortRange::new(1, u64::MAX)])])
    );
    assert!(parse(":").matches(&[Attribute::text("", "x")]));
}

/// Goal: the largest constraints and agents are evaluated quickly. Method: the maximum number of entries, values, items
/// and attributes, in the worst order. A quadratic algorithm would take minutes in a debug build.
#[test]
fn large_input_takes_linear_time() {
    let names: Vec<String> = (0..9_000).map(|number| format!("{number:05}")).collect();
    let text = names.iter().map(|name| format!("{name}:")).collect::<Vec<_>>().join(";");
    let constraint = parse(&text);
    let mut agent: Vec<_> = names.iter().rev().map(|name| Attribute::text(name, "x")).collect();
    assert!(constraint.matches(&agent));
    agent.pop();
    assert!(!constraint.matches(&agent));

    let constraint = parse(&format!("a:{}", names.join(",")));
    let mut items: Vec<&str> = names.iter().rev().map(|name| &**name).collect();
    assert!(constraint.matches(&[set("a", &items)]));
    items[0] = "x";
    assert!(!constraint.matches(&[set("a", &items)]));
    assert!(constraint.matches(&[Attribute::text("a", "08999")]));

    let twice = format!("{text};00000:");
    assert_eq!(refused(&twice).offset(), Some(text.len() + 1));
    parse(&format!("a:{}", ",".repeat(CONSTRAINT_BYTES_MAX - 2)));
    refused(&";".repeat(CONSTRAINT_BYTES_MAX));
    refused(&":".repeat(CONSTRAINT_BYTES_MAX));
}

/// Goal: a new memo contains no result, whatever the constraint's text is. Method: a text of zeros, for which a hash
/// that begins with zero would equal that of the empty memo (`text_of_zeros` of the fuzz corpus).
#[test]
fn an_empty_memo_has_no_answer() {
    for text in ["\0\0\0\0\0\0\0\0\0\0\u{2}\0e:", "a:", "expr:: a"] {
        let mut memo = Memo::default();
        let answer = parse(text).check_with(&mut memo, &Offer::new("o", "S1", "h", &[], &[]));
        assert!(answer.is_err(), "{text:?}");
    }
}

/// Goal: every change to an examined attribute changes the fingerprint, and no other change does. Method: compare all
/// pairs of attributes that differ in a type, a byte, a boundary, an order or a sign.
#[test]
fn fingerprints_tell_attributes_apart() {
    let (one, two) = ([PortRange::new(1, 2)], [PortRange::new(1, 2), PortRange::new(3, 4)]);
    let all: &[&[Attribute<'_>]] = &[
        &[],
        &[Attribute::text("", "")],
        &[Attribute::text("", ""), Attribute::text("", "")],
        &[Attribute::text("ab", "c")],
        &[Attribute::text("a", "bc")],
        &[Attribute::text("abc", "")],
        &[Attribute::text("", "abc")],
        &[Attribute::text("a", "b"), Attribute::text("c", "d")],
        &[Attribute::text("c", "d"), Attribute::text("a", "b")],
        &[Attribute::text("a", "d"), Attribute::text("c", "b")],
        &[Attribute::text("aaaa", "aaaaa")],
        &[Attribute::text("aaaaa", "aaaa")],
        &[Attribute::text("zone", "0123456789abcdef0123456789abcdef0123456789")],
        &[Attribute::text("zone", "0123456789abcdef1123456789abcdef0123456789")],
        &[Attribute::scalar("a", 0.0)],
        &[Attribute::scalar("a", -0.0)],
        &[Attribute::scalar("a", 1.0)],
        &[Attribute::text("a", "aaaaaaaa")],
        &[Attribute::scalar("a", f64::from_bits(!0x6161_6161_6161_6161))],
        &[Attribute::text("instance-type", "x")],
        &[Attribute::text("instance-type", "y")],
        &[ranges("instance-type", &one)],
        &[ranges("a", &[])],
        &[ranges("a", &one)],
        &[ranges("a", &two)],
        &[set("a", &[])],
        &[set("a", &[""])],
        &[set("a", &["b", "c"])],
        &[set("a", &["bc"])],
        &[set("a", &["bc", ""])],
        &[set("a", &["c", "b"])],
    ];
    let names = ["", "a", "ab", "abc", "c", "aaaa", "aaaaa", "zone", "instance-type"];
    let names = names.map(|name| Subject::Attribute(name.into()));
    let (one, other) = (Fingerprints::new(names.iter()), Fingerprints::new(names.iter()));
    let offer = |own| Offer::new("o", "S1", "h", &[], own);
    let fingerprint = |own| one.of(&offer(own));
    for (index, left) in all.iter().enumerate() {
        assert_eq!(fingerprint(left), fingerprint(left));
        for right in &all[index + 1..] {
            assert_ne!(fingerprint(left), fingerprint(right), "{left:?} {right:?}");
        }
    }
    // The constraint doesn't examine `memory`.
    let busy = [Attribute::text("ab", "c"), Attribute::scalar("memory", 0.9)];
    assert_eq!(fingerprint(&busy), fingerprint(&busy[..1]));
    assert_ne!(fingerprint(&busy), other.of(&offer(&busy)));
}
