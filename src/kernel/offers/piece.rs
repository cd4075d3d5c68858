//! [`Piece`]: a part of an offered resource that an executor takes.

use crate::resources::Scalar;

/// A piece of an offered resource. Its role and reservation are those of the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Position of the offer in the batch.
    pub offer: u32,
    /// Position of the resource in the offer.
    pub resource: u32,
    /// How much is taken.
    pub amount: Amount,
}

/// How much is taken of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A quantity.
    Scalar(Scalar),
    /// One port.
    Port(u16),
}
