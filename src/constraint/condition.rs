//! Conditions of a constraint: the subject that each examines and the test that it applies to the subject's values.
//! Every value of any type has a result.

use std::fmt;

use super::facts::{OfferFacts, Subject, same};
use super::glob;
use super::mismatch::Mismatch;
use super::numbers::{Shortest, decimal, integer, java_double};
use super::pattern::Pattern;
use super::word::is_word;
use crate::offer::AttributeValue;
use crate::resources::PortRange;

/// The maximum number of pairs (of values and items, or of conditions and attributes) that are compared one by one,
/// which is fastest for a handful of attributes.
pub(super) const PAIRS_SCANNED_MAX: usize = 256;

/// The number of wanted values that one pass over the offered items looks for. Limits the bit set on the stack.
const BLOCK: usize = 4096;

/// A condition holds if some value of its subject passes the test or, if it is negated, if none does.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub(super) subject: Subject,
    pub(super) test: Test,
    pub(super) negated: bool,
}

/// A test of a value, with everything precomputed that doesn't depend on the offer.
#[derive(Clone, Debug)]
pub(super) enum Test {
    /// An entry in Spark's syntax. Without values it tests only that the attribute is present.
    Entry(Values),
    Present,
    /// A text or scalar that equals one of the values, or ranges or a set that contain one.
    In(Values),
    Compared(Comparison, f64),
    /// In one of these intervals, which are sorted and don't overlap.
    Within(Box<[PortRange]>),
    Like(Box<str>),
    Matches(Box<str>, Pattern),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// The values of a condition: all as text, and those that are numbers also as numbers.
#[derive(Clone, Debug)]
pub(super) struct Values {
    /// Sorted, without duplicates.
    pub(super) texts: Box<[Box<str>]>,
    /// Sorted.
    numbers: Box<[f64]>,
    /// The whole numbers, sorted.
    integers: Box<[u64]>,
}

impl Values {
    /// Values in Spark's syntax, where numbers are written as in Java.
    pub(super) fn of_entry<'a>(texts: impl Iterator<Item = &'a str>) -> Values {
        Self::new(texts.map(Box::from).collect(), java_double)
    }

    pub(super) fn of_set(texts: Vec<Box<str>>) -> Values {
        Self::new(texts, decimal)
    }

    fn new(mut texts: Vec<Box<str>>, number: impl Fn(&str) -> Option<f64>) -> Values {
        texts.sort_unstable();
        texts.dedup();
        let numbers = texts.iter().filter_map(|text| number(text));
        let mut numbers: Vec<f64> = numbers.filter(|number| !number.is_nan()).collect();
        numbers.sort_unstable_by(f64::total_cmp);
        let mut integers: Vec<u64> = texts.iter().filter_map(|text| integer(text)).collect();
        integers.sort_unstable();
        Values { texts: texts.into(), numbers: numbers.into(), integers: integers.into() }
    }

    fn has(&self, text: &str) -> bool {
        if self.texts.len() <= 8 {
            return self.texts.iter().any(|value| same(value, text));
        }
        self.texts.binary_search_by(|value| (**value).cmp(text)).is_ok()
    }

    fn has_number(&self, number: f64) -> bool {
        let first = self.numbers.partition_point(|own| *own < number);
        self.numbers.get(first).is_some_and(|own| *own == number)
    }

    /// Whether the range contains one of the values: the smallest one at or above its begin.
    fn reach_into(&self, range: PortRange) -> bool {
        let first = self.integers.partition_point(|integer| *integer < range.begin);
        self.integers.get(first).is_some_and(|integer| *integer <= range.end)
    }

    fn all_in(&self, items: &[&str]) -> bool {
        // The values are distinct, so fewer items can't contain them all.
        if self.texts.len() > items.len() {
            return false;
        }
        if self.texts.len().saturating_mul(items.len()) <= PAIRS_SCANNED_MAX {
            return self.texts.iter().all(|value| items.iter().any(|item| same(item, value)));
        }
        self.texts.chunks(BLOCK).all(|block| {
            let mut found = [0_u64; BLOCK / 64];
            let mut missing = block.len();
            items.iter().any(|item| {
                let Ok(at) = block.binary_search_by(|value| (**value).cmp(item)) else {
                    return false;
                };
                missing -= usize::from(mark(&mut found, at));
                missing == 0
            })
        })
    }
}

/// Sets a bit. Returns whether it was clear.
pub(super) fn mark(bits: &mut [u64], at: usize) -> bool {
    let Some(word) = bits.get_mut(at / 64) else { return false };
    let bit = 1 << (at % 64);
    let fresh = *word & bit == 0;
    *word |= bit;
    fresh
}

impl Condition {
    pub(super) fn holds(&self, facts: &OfferFacts<'_>) -> bool {
        facts.values(&self.subject).any(|value| self.test.passes(&value)) != self.negated
    }

    /// Returns how the condition fails. The caller must know that it does.
    #[cold]
    pub(super) fn mismatch(&self, facts: &OfferFacts<'_>) -> Mismatch {
        if self.negated {
            return Mismatch::Excluded;
        }
        let mut values = facts.values(&self.subject).peekable();
        if values.peek().is_none() {
            Mismatch::Absent
        } else if values.any(|value| self.test.can_compare(&value)) {
            Mismatch::Differs
        } else {
            Mismatch::Incomparable
        }
    }
}

impl Test {
    #[inline]
    pub(super) fn passes(&self, value: &AttributeValue<'_>) -> bool {
        match self {
            Test::Present => true,
            Test::Entry(values) if values.texts.is_empty() => true,
            Test::Entry(values) => match *value {
                AttributeValue::Text(text) => values.has(text),
                AttributeValue::Scalar(scalar) => {
                    values.numbers.first().is_some_and(|least| *least <= scalar)
                }
                AttributeValue::Ranges(ranges) => {
                    ranges.iter().any(|range| values.reach_into(*range))
                }
                AttributeValue::Set(items) => values.all_in(items),
            },
            Test::In(values) => match *value {
                AttributeValue::Text(text) => values.has(text),
                AttributeValue::Scalar(scalar) => values.has_number(scalar),
                AttributeValue::Ranges(ranges) => {
                    ranges.iter().any(|range| values.reach_into(*range))
                }
                AttributeValue::Set(items) => items.iter().any(|item| values.has(item)),
            },
            Test::Compared(comparison, bound) => match *value {
                AttributeValue::Scalar(scalar) => comparison.holds(scalar, *bound),
                AttributeValue::Ranges(ranges) => {
                    ranges.iter().any(|range| comparison.holds_within(*range, *bound))
                }
                AttributeValue::Text(_) | AttributeValue::Set(_) => false,
            },
            Test::Within(intervals) => match *value {
                AttributeValue::Scalar(scalar) => has_scalar(intervals, scalar),
                AttributeValue::Ranges(ranges) => {
                    ranges.iter().any(|range| overlaps(intervals, *range))
                }
                AttributeValue::Text(_) | AttributeValue::Set(_) => false,
            },
            Test::Like(glob) => passes_text(value, |text| glob::matches(glob, text)),
            Test::Matches(_, pattern) => passes_text(value, |text| pattern.is_match(text)),
        }
    }

    /// Whether any value of this type could pass the test.
    fn can_compare(&self, value: &AttributeValue<'_>) -> bool {
        match self {
            Test::Present => true,
            Test::Entry(values) if values.texts.is_empty() => true,
            Test::Entry(values) | Test::In(values) => match value {
                AttributeValue::Text(_) | AttributeValue::Set(_) => true,
                AttributeValue::Scalar(_) => !values.numbers.is_empty(),
                AttributeValue::Ranges(_) => !values.integers.is_empty(),
            },
            Test::Compared(..) | Test::Within(_) => {
                matches!(value, AttributeValue::Scalar(_) | AttributeValue::Ranges(_))
            }
            Test::Like(_) | Test::Matches(..) => {
                matches!(value, AttributeValue::Text(_) | AttributeValue::Set(_))
            }
        }
    }
}

fn passes_text(value: &AttributeValue<'_>, passes: impl Fn(&str) -> bool) -> bool {
    match *value {
        AttributeValue::Text(text) => passes(text),
        AttributeValue::Set(items) => items.iter().any(|item| passes(item)),
        AttributeValue::Scalar(_) | AttributeValue::Ranges(_) => false,
    }
}

impl Comparison {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Comparison::Less => "<",
            Comparison::AtMost => "<=",
            Comparison::Greater => ">",
            Comparison::AtLeast => ">=",
        }
    }

    fn holds(self, number: f64, bound: f64) -> bool {
        match self {
            Comparison::Less => number < bound,
            Comparison::AtMost => number <= bound,
            Comparison::Greater => number > bound,
            Comparison::AtLeast => number >= bound,
        }
    }

    /// Whether the comparison holds for some number of the range. If so, it holds for the least or the greatest.
    fn holds_within(self, range: PortRange, bound: f64) -> bool {
        let nearest = match self {
            Comparison::Less | Comparison::AtMost => range.begin,
            Comparison::Greater | Comparison::AtLeast => range.end,
        };
        range.begin <= range.end && self.holds(nearest as f64, bound)
    }
}

fn has_scalar(intervals: &[PortRange], scalar: f64) -> bool {
    let first = intervals.partition_point(|interval| (interval.end as f64) < scalar);
    intervals.get(first).is_some_and(|interval| interval.begin as f64 <= scalar)
}

fn overlaps(intervals: &[PortRange], range: PortRange) -> bool {
    let first = intervals.partition_point(|interval| interval.end < range.begin);
    range.begin <= range.end
        && intervals.get(first).is_some_and(|interval| interval.begin <= range.end)
}

impl fmt::Display for Condition {
    /// Writes the condition in its original syntax.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Test::Entry(values), Subject::Attribute(name)) = (&self.test, &self.subject) {
            return write_entry(f, name, &values.texts);
        }
        let not = if self.negated { "not " } else { "" };
        if let Test::Present | Test::Compared(..) = self.test {
            f.write_str(not)?;
        }
        match &self.subject {
            Subject::Attribute(name) => write!(f, "{}", Word(name))?,
            Subject::Hostname => f.write_str("@hostname")?,
            Subject::Region => f.write_str("@region")?,
            Subject::Zone => f.write_str("@zone")?,
        }
        match &self.test {
            Test::Present | Test::Entry(_) => Ok(()),
            Test::In(values) => match &*values.texts {
                [one] => write!(f, " {}= {}", if self.negated { "!" } else { "" }, Word(one)),
                many => {
                    write!(f, " {not}in ")?;
                    let words = many.iter().map(|text| Word(text));
                    write_list(f, ['{', '}'], words)
                }
            },
            Test::Compared(comparison, bound) => {
                write!(f, " {} {}", comparison.as_str(), Shortest(*bound))
            }
            Test::Within(intervals) => {
                write!(f, " {not}in ")?;
                write_list(f, ['[', ']'], intervals.iter().map(Interval))
            }
            Test::Like(glob) => write!(f, " {not}like {}", Glob(glob)),
            Test::Matches(text, _) => write!(f, " {not}matches {}", Word(text)),
        }
    }
}

fn write_list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    [open, close]: [char; 2],
    items: impl Iterator<Item = T>,
) -> fmt::Result {
    write!(f, "{open}")?;
    for (index, item) in items.enumerate() {
        let separator = if index > 0 { "," } else { "" };
        write!(f, "{separator}{item}")?;
    }
    write!(f, "{close}")
}

/// An interval, or its only number.
struct Interval<'a>(&'a PortRange);

impl fmt::Display for Interval<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PortRange { begin, end } = *self.0;
        if begin == end { write!(f, "{begin}") } else { write!(f, "{begin}-{end}") }
    }
}

/// A name or value. It is written without quotation marks if it parses back as the same text.
struct Word<'a>(&'a str);

/// A glob, in which `*` and `?` need no quotation marks.
struct Glob<'a>(&'a str);

impl fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_word(f, self.0, !self.0.contains(['*', '?']))
    }
}

impl fmt::Display for Glob<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_word(f, self.0, true)
    }
}

fn write_word(f: &mut fmt::Formatter<'_>, text: &str, bare: bool) -> fmt::Result {
    if bare && is_word(text) {
        return f.write_str(text);
    }
    f.write_str("\"")?;
    for part in text.split_inclusive(['"', '\\']) {
        let (plain, last) = part.split_at(part.len() - usize::from(part.ends_with(['"', '\\'])));
        let escape = if last.is_empty() { "" } else { "\\" };
        write!(f, "{plain}{escape}{last}")?;
    }
    f.write_str("\"")
}

/// Writes an entry. Parsing drops white space and commas at the end of an entry, so a value that ends in neither is
/// written last. If there is no such value, a trailing comma keeps the white space. In both cases the result is no
/// longer than the text that was parsed.
fn write_entry(f: &mut fmt::Formatter<'_>, name: &str, values: &[Box<str>]) -> fmt::Result {
    let last = values.iter().rposition(|value| !value.is_empty() && value.trim_end() == &**value);
    write!(f, "{name}:")?;
    let mut separator = "";
    let others = values.iter().enumerate().filter(|(index, _)| Some(*index) != last);
    for (_, value) in others.chain(last.and_then(|index| Some((index, values.get(index)?)))) {
        write!(f, "{separator}{value}")?;
        separator = ",";
    }
    if last.is_none() && !values.is_empty() {
        f.write_str(",")?;
    }
    Ok(())
}
