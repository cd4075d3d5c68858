//! [`Piece`]: a part of an offered resource that an executor takes.

use crate::resources::Scalar;

/// A piece of an offered resource. Its role and reservation are those of the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Piece {
    /// Position of the offer in the batch.
    pub offer: u32,
    /// Position of the resource in the offer.
    pub resource: u32,
    /// How much is taken.
    pub amount: Amount,
}

impl Piece {
    /// Creates a piece of the resource at this position of the offer at this position of a batch.
    #[must_use]
    pub const fn new(offer: u32, resource: u32, amount: Amount) -> Piece {
        Piece { offer, resource, amount }
    }
}

/// How much is taken of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A quantity.
    Scalar(Scalar),
    /// One port.
    Port(u16),
}

/// Where a resource is in a batch, in one word: a processor that reads in one piece what was just written in two waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourcePlace(u64);

impl ResourcePlace {
    /// The resource at this position of the offer at this position of the batch.
    #[inline]
    pub(crate) fn new(offer: u32, resource: u32) -> ResourcePlace {
        ResourcePlace(u64::from(offer) | u64::from(resource) << 32)
    }

    #[inline]
    pub(crate) fn offer(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    pub(crate) fn resource(self) -> u32 {
        (self.0 >> 32) as u32
    }
}
