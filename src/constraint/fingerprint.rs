//! A fingerprint of an agent's attributes, to notice that they changed without keeping or comparing
//! them.

use std::hash::Hasher;

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;

use super::facts::Facts;
use crate::offer::{Attribute, AttributeValue};

const TEXT: u64 = 0;
const SCALAR: u64 = 1;
const RANGES: u64 = 2;
const SET: u64 = 3;

/// Seeds that no number of attributes is.
const TEXTS: u64 = u64::MAX;
const PLACES: u64 = u64::MAX - 1;

/// A hash of the attributes' names, types and values in their order, seeded at random once in a
/// process.
///
/// Different attributes give different fingerprints but for a chance of about 2⁻⁶⁴. It is no
/// defence against someone who can both choose attributes and learn the seed.
pub(super) fn fingerprint(attributes: &[Attribute<'_>]) -> u64 {
    let mut hasher = FoldHasher::with_seed(attributes.len() as u64, SharedSeed::global_random());
    for attribute in attributes {
        write(&mut hasher, attribute);
    }
    hasher.finish()
}

/// A hash of a constraint's text.
pub(super) fn of_text(text: &str) -> u64 {
    let mut hasher = FoldHasher::with_seed(TEXTS, SharedSeed::global_random());
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// A hash of what is known of an agent's place.
#[cold]
pub(super) fn of_place(facts: &Facts<'_>) -> u64 {
    let mut hasher = FoldHasher::with_seed(PLACES, SharedSeed::global_random());
    for place in facts.place() {
        hasher.write_u64(place.map_or(u64::MAX, |place| place.len() as u64));
        hasher.write(place.unwrap_or_default().as_bytes());
    }
    hasher.finish()
}

#[inline]
fn write(hasher: &mut FoldHasher<'_>, attribute: &Attribute<'_>) {
    let name = attribute.name;
    match attribute.value {
        AttributeValue::Text(text) => {
            // Most attributes are short texts, and one multiplication does for one of them.
            if let (Some(name), Some(text)) = (short_word(name), short_word(text)) {
                hasher.write_u128(u128::from(name) << 64 | u128::from(text));
                return;
            }
            write_head(hasher, name, TEXT, text.len());
            hasher.write(text.as_bytes());
        }
        AttributeValue::Scalar(scalar) => {
            write_head(hasher, name, SCALAR, 0);
            hasher.write_u64(scalar.to_bits());
        }
        AttributeValue::Ranges(ranges) => {
            write_head(hasher, name, RANGES, ranges.len());
            for range in ranges {
                hasher.write_u64(range.begin);
                hasher.write_u64(range.end);
            }
        }
        AttributeValue::Set(items) => {
            write_head(hasher, name, SET, items.len());
            for item in items {
                hasher.write_u64(item.len() as u64);
                hasher.write(item.as_bytes());
            }
        }
    }
}

/// The name, with the type and both lengths in one word, so that moving a byte over a boundary
/// shows.
#[inline]
fn write_head(hasher: &mut FoldHasher<'_>, name: &str, kind: u64, length: usize) {
    hasher.write_u64(kind | (length as u64) << 2 ^ (name.len() as u64) << 33);
    hasher.write(name.as_bytes());
}

/// A text of up to eight bytes as a word of its own: the bytes, and after them, if there is room,
/// one that no text contains.
#[inline]
fn short_word(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let end = match bytes.len() {
        length @ 0..8 => 0xff << (8 * length),
        8 => 0,
        _ => return None,
    };
    // Loads may overlap: both have the same bits there.
    if let (Some(head), Some(tail)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (head, tail) = (u32::from_le_bytes(*head), u32::from_le_bytes(*tail));
        return Some(u64::from(head) | u64::from(tail) << (8 * (bytes.len() - 4)) | end);
    }
    let byte = |index: usize| bytes.get(index).map_or(0, |byte| u64::from(*byte) << (8 * index));
    Some(byte(0) | byte(1) | byte(2) | end)
}
