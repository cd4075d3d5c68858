//! Translation of globs and regular expressions to RE2, as far as they certainly mean the same there.
//!
//! A master rejects a framework if an expression compiles to more than 100 instructions or 4 KiB (its default limits),
//! so an upper bound of the cost is computed. The real cost, measured with a Mesos 1.11 master: 4 for any expression, 1
//! per byte, 1 for ASCII classes and `\C*`, 7 for `(?s:.)`, 8 for `.`, 2 per pair of capturing parentheses, 1 per
//! alternative.

use std::fmt::Write as _;

use crate::constraint::glob::{self, GlobPart};

/// The maximum cost of an expression, in RE2 instructions; a little less than masters accept.
const COST_MAX: usize = 90;
/// The base cost of any expression.
const COST_OF_ANY: usize = 4;

/// The characters that are special in RE2 outside of classes.
const MARKS: &str = "\\.+*?()|[]{}^$";

/// A pattern for a whole text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Re2Pattern {
    /// Matches every text.
    Any,
    /// Matches exactly this text.
    Literal(String),
    /// Matches the texts that the RE2 expression matches.
    Expression(String),
}

/// An RE2 expression under construction, with its cost.
struct Expression {
    text: String,
    cost: usize,
}

impl Expression {
    fn new() -> Expression {
        Expression { text: String::new(), cost: COST_OF_ANY }
    }

    fn push(&mut self, text: &str, cost: usize) {
        self.text.push_str(text);
        self.cost += cost;
    }

    fn literal(&mut self, letter: char) {
        if letter.is_ascii_control() {
            // Writing to a `String` can't fail.
            let _ = write!(self.text, "\\x{{{:x}}}", u32::from(letter));
        } else {
            if MARKS.contains(letter) {
                self.text.push('\\');
            }
            self.text.push(letter);
        }
        self.cost += letter.len_utf8();
    }

    fn affordable(self) -> Option<String> {
        (self.cost <= COST_MAX).then_some(self.text)
    }
}

/// Translates a glob. Returns `None` if it costs too much.
pub(super) fn of_glob(glob: &str) -> Option<Re2Pattern> {
    let mut expression = Expression::new();
    let (mut literal, mut after_any) = (Some(String::new()), false);
    for part in glob::parts(glob) {
        let any = matches!(part, GlobPart::Any);
        match part {
            GlobPart::Any if after_any => {}
            // Matches bytes, which costs less than characters and is equivalent, because the next part begins at a
            // character boundary.
            GlobPart::Any => expression.push("\\C*", 2),
            GlobPart::One => expression.push("(?s:.)", 8),
            GlobPart::Letter(letter) => {
                expression.literal(letter);
                literal.iter_mut().for_each(|literal| literal.push(letter));
            }
        }
        if !matches!(part, GlobPart::Letter(_)) {
            literal = None;
        }
        after_any = any;
    }
    Some(match literal {
        Some(literal) => Re2Pattern::Literal(literal),
        None if expression.text == "\\C*" => Re2Pattern::Any,
        None => Re2Pattern::Expression(expression.affordable()?),
    })
}

/// Translates a choice of texts. Returns `None` if it costs too much or there are no texts.
pub(super) fn one_of(texts: &[Box<str>]) -> Option<String> {
    let bytes: usize = texts.iter().map(|text| text.len() + 1).sum();
    if texts.is_empty() || bytes > COST_MAX {
        return None;
    }
    let mut expression = Expression::new();
    for (index, text) in texts.iter().enumerate() {
        if index > 0 {
            expression.push("|", 1);
        }
        text.chars().for_each(|letter| expression.literal(letter));
    }
    expression.affordable()
}

/// The last element of an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// Nothing that can be repeated.
    Begin,
    /// A character or a class.
    Atom,
    /// A group in parentheses.
    Group,
    /// A repetition.
    Repeated,
}

/// Translates a regular expression in the syntax of the `regex` crate. Returns `None` if it costs too much or contains
/// anything that might have another meaning in RE2: flags, anchors, counts, named classes, classes other than of a few
/// ASCII characters, repeated groups.
pub(super) fn of_regex(regex: &str) -> Option<Re2Pattern> {
    if regex.len() > COST_MAX * 4 {
        return None;
    }
    if !regex.contains(|c: char| MARKS.contains(c) || c.is_control()) {
        return Some(Re2Pattern::Literal(regex.to_owned()));
    }
    let mut cost = COST_OF_ANY;
    let (mut rest, mut last) = (regex, Last::Begin);
    while let Some(letter) = rest.chars().next() {
        let mut taken = letter.len_utf8();
        (last, cost) = match letter {
            '\\' => {
                let escaped = rest.get(1..)?.chars().next()?;
                let known = MARKS.contains(escaped) || escaped == '-';
                taken += known.then_some(1)?;
                (Last::Atom, cost + 1)
            }
            '.' => (Last::Atom, cost + 9),
            '[' => {
                taken = class(rest)?;
                (Last::Atom, cost + taken)
            }
            '(' => {
                let after = rest.get(1..)?;
                taken += if after.starts_with("?:") { 2 } else { 0 };
                let plain = !after.starts_with('?') || after.starts_with("?:");
                (plain.then_some(Last::Begin)?, cost + 2)
            }
            ')' => (Last::Group, cost),
            '|' => (Last::Begin, cost + 1),
            '?' if matches!(last, Last::Atom | Last::Group) => (Last::Repeated, cost + 2),
            '*' | '+' if last == Last::Atom => (Last::Repeated, cost + 2),
            _ if MARKS.contains(letter) || letter.is_control() => return None,
            _ => (Last::Atom, cost + letter.len_utf8()),
        };
        rest = rest.get(taken..)?;
    }
    (cost <= COST_MAX).then(|| Re2Pattern::Expression(regex.to_owned()))
}

/// Returns the length in bytes of the class at the start of the text, if it consists only of ASCII letters, digits, `_`
/// and `.`.
fn class(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('[')?.split_once(']')?.0;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
    let mut left = inside.as_bytes();
    while let [first, rest @ ..] = left {
        left = match rest {
            [b'-', end, after @ ..] => {
                let ordered = first.is_ascii_alphanumeric() && end.is_ascii_alphanumeric();
                (ordered && first <= end).then_some(after)?
            }
            _ => rest,
        };
        plain(*first).then_some(())?;
    }
    (!inside.is_empty()).then_some(inside.len() + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expression(text: &str) -> Option<Re2Pattern> {
        Some(Re2Pattern::Expression(text.to_owned()))
    }

    /// Goal: globs are translated to equivalent RE2 expressions. Method: each kind of part, special characters of RE2,
    /// characters of several bytes, and a glob that is too long.
    #[test]
    fn globs_are_translated() {
        for (glob, wanted) in [
            ("r1*", expression("r1\\C*")),
            ("**a**", expression("\\C*a\\C*")),
            ("?é", expression("(?s:.)é")),
            ("a.b\\**", expression("a\\.b\\*\\C*")),
            ("\u{1}?", expression("\\x{1}(?s:.)")),
            ("***", Some(Re2Pattern::Any)),
            ("", Some(Re2Pattern::Literal(String::new()))),
            ("a.b\\?", Some(Re2Pattern::Literal("a.b?".to_owned()))),
            (&format!("{}*", "a".repeat(84)), expression(&format!("{}\\C*", "a".repeat(84)))),
            (&format!("{}*", "a".repeat(85)), None),
        ] {
            assert_eq!(of_glob(glob), wanted, "{glob}");
        }
    }

    /// Goal: only regular expressions with the same meaning in RE2 are translated. Method: one of each kind that is
    /// accepted and that isn't.
    #[test]
    fn doubtful_expressions_are_kept_back() {
        for same in ["r[0-9]+", "a.*b", "(a|bc)?d", "(?:east|west)-1[ab]", "a\\.b\\-c", "x|"] {
            assert_eq!(of_regex(same), expression(same), "{same}");
        }
        assert_eq!(of_regex("r-1 é"), Some(Re2Pattern::Literal("r-1 é".to_owned())));
        for other in [
            "\\d+",
            "\\w",
            "^a",
            "a$",
            "(?i)a",
            "(?x) a",
            "a{2}",
            "[^a]",
            "[[:alpha:]]",
            "[é]",
            "[a-]",
            "[a&&b]",
            "a**",
            "a*?",
            "a+?",
            "(a)*",
            "(|a)+",
            "\\pL",
            "a\\bb",
            "\\<a",
            "(?P<n>a)",
            "a\nb.",
            "[]a]",
            "}",
        ] {
            assert_eq!(of_regex(other), None, "{other}");
        }
        assert_eq!(of_regex(&".".repeat(10)), None);
    }
}
