//! Matching: total, without allocation, and never worse than (sizes × logarithm), whatever an agent
//! sends.

use super::Term;
use crate::offer::{Attribute, AttributeValue};
use crate::resources::PortRange;

/// Up to this many pairs are compared one by one, which for a handful of attributes beats
/// everything else.
const PAIRS_SCANNED_MAX: usize = 256;

/// How many wanted things are looked for in one pass over the offered ones; bounds the marks kept
/// on the stack.
const BLOCK: usize = 4096;

/// Whether each term holds for some attribute of its name.
pub(super) fn all_hold(terms: &[Term], attributes: &[Attribute<'_>]) -> bool {
    if terms.len().saturating_mul(attributes.len()) <= PAIRS_SCANNED_MAX {
        return terms.iter().all(|term| {
            attributes.iter().any(|attribute| {
                same(attribute.name, &term.name) && term.holds_for(&attribute.value)
            })
        });
    }
    all_reached(terms, attributes, |block, attribute| {
        let index = block.binary_search_by(|term| (*term.name).cmp(attribute.name)).ok()?;
        block.get(index)?.holds_for(&attribute.value).then_some(index)
    })
}

impl Term {
    fn holds_for(&self, value: &AttributeValue<'_>) -> bool {
        if self.values.is_empty() {
            return true;
        }
        match *value {
            AttributeValue::Text(text) => self.has(text),
            AttributeValue::Scalar(scalar) => self.least.is_some_and(|least| least <= scalar),
            AttributeValue::Ranges(ranges) => ranges.iter().any(|range| self.reaches_into(*range)),
            AttributeValue::Set(items) => self.all_in(items),
        }
    }

    fn has(&self, text: &str) -> bool {
        if self.values.len() <= 8 {
            return self.values.iter().any(|value| same(value, text));
        }
        self.values.binary_search_by(|value| (**value).cmp(text)).is_ok()
    }

    /// Whether the first wanted number from the range's begin on is still inside of it.
    fn reaches_into(&self, range: PortRange) -> bool {
        let first = self.integers.partition_point(|integer| *integer < range.begin);
        self.integers.get(first).is_some_and(|integer| *integer <= range.end)
    }

    fn all_in(&self, items: &[&str]) -> bool {
        // The values are distinct: fewer items can't hold them all.
        if self.values.len() > items.len() {
            return false;
        }
        if self.values.len().saturating_mul(items.len()) <= PAIRS_SCANNED_MAX {
            return self.values.iter().all(|value| items.iter().any(|item| same(item, value)));
        }
        all_reached(&self.values, items, |block, item| {
            block.binary_search_by(|value| (**value).cmp(item)).ok()
        })
    }
}

/// Equality that looks at both ends first: names and values mostly differ there, and comparing the
/// rest is a call.
#[inline]
fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    a.len() == b.len() && a.first() == b.first() && a.last() == b.last() && a == b
}

/// Whether every one of `wanted` is reached by one of `offered`, where `reach` tells which of a
/// block of `wanted` an offered thing reaches.
fn all_reached<W, O>(
    wanted: &[W],
    offered: &[O],
    reach: impl Fn(&[W], &O) -> Option<usize>,
) -> bool {
    wanted.chunks(BLOCK).all(|block| {
        let mut reached = [0_u64; BLOCK / 64];
        let mut missing = block.len();
        for thing in offered {
            let Some(index) = reach(block, thing) else { continue };
            let Some(word) = reached.get_mut(index / 64) else { continue };
            let bit = 1 << (index % 64);
            if *word & bit == 0 {
                *word |= bit;
                missing -= 1;
                if missing == 0 {
                    return true;
                }
            }
        }
        false
    })
}
