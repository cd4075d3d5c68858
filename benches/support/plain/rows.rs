//! The plain loop's answer, in rows, as the kernel's.

use std::fmt::Write as _;
use std::time::Duration;

use offermill::resources::{Mebibytes, MilliCpus, Scalar};
use offermill::{Amount, Decline, Offer, Piece, ResourceKind, Revocability, Value};

use super::ID_PREFIX;

/// The answer to a batch.
#[derive(Clone, Default)]
pub(crate) struct Answer {
    pub(crate) accepts: Vec<Accept>,
    pub(crate) placed: Vec<Placed>,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) declines: Vec<Decline>,
    pub(crate) leftover_refuse: Duration,
}

impl Answer {
    pub(super) fn clear(&mut self) {
        self.accepts.clear();
        self.placed.clear();
        self.pieces.clear();
        self.declines.clear();
    }
}

#[derive(Clone)]
pub(crate) struct Accept {
    pub(crate) offer: u32,
    pub(crate) placed: (u32, u32),
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Placed {
    pub(crate) sequence: u64,
    pub(crate) slot: u32,
    pub(crate) cores: MilliCpus,
    pub(crate) memory: Mebibytes,
    pub(crate) pieces: (u32, u32),
}

impl Placed {
    /// The text of the executor's id: a plain number, or where it is as well.
    pub(crate) fn write_name(&self, numbered: bool, name: &mut String) {
        name.clear();
        let Placed { sequence, slot, .. } = self;
        let written = if numbered {
            write!(name, "{sequence}")
        } else {
            write!(name, "{ID_PREFIX}{sequence}.{slot}")
        };
        written.expect("a string takes all");
    }
}

/// Cuts one executor's share, reserved resources first, from what the `before` thousandths of others left.
pub(super) fn cut(
    offer: &Offer<'_>,
    position: u32,
    kind: ResourceKind,
    mut before: u64,
    mut wanted: u64,
    pieces: &mut Vec<Piece>,
) {
    for reserved in [true, false] {
        for (resource, at) in offer.resources.iter().zip(0u32..) {
            let Value::Scalar(scalar) = resource.value else { continue };
            let non_revocable = resource.revocability == Revocability::NonRevocable;
            if resource.kind != kind || !non_revocable || resource.is_reserved() != reserved {
                continue;
            }
            let skipped = scalar.thousandths().min(before);
            before -= skipped;
            let taken = (scalar.thousandths() - skipped).min(wanted);
            if taken > 0 {
                let amount = Amount::Scalar(Scalar::from_thousandths(taken));
                pieces.push(Piece::new(position, at, amount));
                wanted -= taken;
            }
            if wanted == 0 {
                return;
            }
        }
    }
}
