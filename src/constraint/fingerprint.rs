//! Fingerprints (64-bit hashes) of the facts of an agent that a constraint examines. They detect changes without
//! storing or comparing the facts. [`AttributeFingerprints`] are of all attributes, whatever a constraint examines.
//!
//! A fingerprint begins with the constraint's own random key, so it identifies both the constraint and the facts that
//! it examines.

use std::hash::{BuildHasher, Hasher};

use foldhash::SharedSeed;
use foldhash::fast::{FoldHasher, RandomState};

use super::facts::{OfferFacts, Subject};
use crate::offer::{Attribute, AttributeValue, Offer};

/// The keys and the filter with which a constraint computes its fingerprints.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fingerprints {
    /// Random, so that it identifies the constraint.
    key: u64,
    /// Further random keys: `number` for scalars with short names, `other` for all other attributes.
    other: u64,
    number: u64,
    names: Names,
    place: bool,
}

impl Fingerprints {
    /// For a constraint that examines these subjects.
    pub(super) fn new<'a>(subjects: impl Iterator<Item = &'a Subject>) -> Fingerprints {
        let random = RandomState::default();
        let [key, other, number] = [0, 1, 2].map(|which: u64| random.hash_one(which));
        let mut fingerprints = Fingerprints { key, other, number, names: Names(0), place: false };
        for subject in subjects {
            match subject {
                Subject::Attribute(name) => fingerprints.names.add(name),
                Subject::Hostname | Subject::Region | Subject::Zone => fingerprints.place = true,
            }
        }
        fingerprints
    }

    /// Returns the fingerprint of all facts on which the constraint's result depends; their order matters.
    ///
    /// Different facts have the same fingerprint with a probability of about 2⁻⁶⁴. This is no defence against an
    /// attacker that can both choose attributes and learn the seed.
    #[inline]
    pub(super) fn of(&self, offer: &Offer<'_>) -> u64 {
        let mut state = self.key;
        for attribute in offer.attributes {
            if self.names.may_have(attribute.name) {
                state = self.with(state, attribute);
            }
        }
        if self.place {
            state = self.with_place(state, &OfferFacts::of_offer(offer));
        }
        state
    }

    #[inline]
    fn with(&self, state: u64, attribute: &Attribute<'_>) -> u64 {
        // Most attributes are short texts or numbers, which need only one multiplication.
        if let Some(name) = short_word(attribute.name) {
            match attribute.value {
                AttributeValue::Text(text) => {
                    if let Some(text) = short_word(text) {
                        return mix(state ^ name, text ^ self.other);
                    }
                }
                AttributeValue::Scalar(scalar) => {
                    return mix(state ^ name, scalar.to_bits() ^ self.number);
                }
                AttributeValue::Ranges(_) | AttributeValue::Set(_) => {}
            }
        }
        mix(state ^ self.long(attribute), self.other)
    }

    fn long(&self, attribute: &Attribute<'_>) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.key, SharedSeed::global_random());
        write(&mut hasher, attribute);
        hasher.finish()
    }

    #[cold]
    fn with_place(&self, state: u64, facts: &OfferFacts<'_>) -> u64 {
        let mut hasher = FoldHasher::with_seed(state, SharedSeed::global_random());
        for place in facts.place() {
            hasher.write_u64(place.map_or(u64::MAX, |place| place.len() as u64));
            hasher.write(place.unwrap_or_default().as_bytes());
        }
        hasher.finish()
    }
}

/// Computes fingerprints of all of an agent's attributes, not only of those that a constraint examines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttributeFingerprints(Fingerprints);

impl AttributeFingerprints {
    pub(crate) fn new() -> AttributeFingerprints {
        AttributeFingerprints(Fingerprints::new(std::iter::empty()))
    }

    /// Returns the fingerprint of these attributes; their order matters. Others have the same one with a probability of
    /// about 2⁻⁶⁴.
    #[inline]
    pub(crate) fn of(&self, attributes: &[Attribute<'_>]) -> u64 {
        let state = self.0.key;
        attributes.iter().fold(state, |state, attribute| self.0.with(state, attribute))
    }
}

/// A set of names, stored as one bit per first byte (modulo 64).
///
/// A name whose bit is clear isn't in the set. An attribute of such a name can't change the result and is skipped.
#[derive(Clone, Copy, Debug)]
struct Names(u64);

impl Names {
    fn add(&mut self, name: &str) {
        self.0 |= 1 << Self::bit(name);
    }

    #[inline]
    fn bit(name: &str) -> u32 {
        u32::from(name.as_bytes().first().copied().unwrap_or_default()) % 64
    }

    #[inline]
    fn may_have(self, name: &str) -> bool {
        self.0 >> Self::bit(name) & 1 == 1
    }
}

/// Multiplies and folds the two halves of the product: each bit of the result depends on all bits of both factors.
#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

fn write(hasher: &mut FoldHasher<'_>, attribute: &Attribute<'_>) {
    let name = attribute.name;
    match attribute.value {
        AttributeValue::Text(text) => {
            write_head(hasher, name, 0, text.len());
            hasher.write(text.as_bytes());
        }
        AttributeValue::Scalar(scalar) => {
            write_head(hasher, name, 1, 0);
            hasher.write_u64(scalar.to_bits());
        }
        AttributeValue::Ranges(ranges) => {
            write_head(hasher, name, 2, ranges.len());
            for range in ranges {
                hasher.write_u64(range.begin);
                hasher.write_u64(range.end);
            }
        }
        AttributeValue::Set(items) => {
            write_head(hasher, name, 3, items.len());
            for item in items {
                hasher.write_u64(item.len() as u64);
                hasher.write(item.as_bytes());
            }
        }
    }
}

/// Hashes the name, preceded by one word with the type and both lengths, so that moving a byte across a boundary
/// changes the hash.
fn write_head(hasher: &mut FoldHasher<'_>, name: &str, kind: u64, length: usize) {
    hasher.write_u64(kind | (length as u64) << 2 ^ (name.len() as u64) << 33);
    hasher.write(name.as_bytes());
}

/// Packs a text of up to eight bytes into a unique word: its bytes and, if there is room, a 0xff byte, which no UTF-8
/// text contains. Returns `None` for longer texts.
#[inline]
fn short_word(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    // The two loads may overlap, where both have the same bits.
    if let (Some(head), Some(tail)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let end = match bytes.len() {
            length @ 4..8 => 0xff << (8 * length),
            8 => 0,
            _ => return None,
        };
        let (head, tail) = (u32::from_le_bytes(*head), u32::from_le_bytes(*tail));
        return Some(u64::from(head) | u64::from(tail) << (8 * (bytes.len() - 4)) | end);
    }
    let byte = |byte: u8, at: u32| u64::from(byte) << (8 * at);
    Some(match *bytes {
        [] => byte(0xff, 0),
        [a] => byte(a, 0) | byte(0xff, 1),
        [a, b] => byte(a, 0) | byte(b, 1) | byte(0xff, 2),
        [a, b, c, ..] => byte(a, 0) | byte(b, 1) | byte(c, 2) | byte(0xff, 3),
    })
}
