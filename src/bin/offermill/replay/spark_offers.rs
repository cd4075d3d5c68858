//! Offers with their attributes as Spark reads them.

use std::collections::HashSet;

use bumpalo::Bump;
use offermill::{Attribute, AttributeValue, Offer};

/// Returns offers as Spark reads them: of several attributes with one name it uses the last, and it ignores the
/// contents of ranges.
pub(super) fn as_spark_reads<'a>(offers: &'a [Offer<'a>], arena: &'a Bump) -> &'a [Offer<'a>] {
    let attributes = |offer: &Offer<'a>| {
        let mut names = HashSet::new();
        let mut last: Vec<Attribute<'a>> =
            offer.attributes.iter().rev().filter(|it| names.insert(it.name)).copied().collect();
        last.reverse();
        for attribute in &mut last {
            if let AttributeValue::Ranges(_) = attribute.value {
                attribute.value = AttributeValue::Ranges(&[]);
            }
        }
        &*arena.alloc_slice_copy(&last)
    };
    let reduced = offers.iter().map(|offer| {
        let mut reduced = *offer;
        reduced.attributes = attributes(offer);
        reduced
    });
    arena.alloc_slice_fill_iter(reduced)
}
