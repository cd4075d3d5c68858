//! Shapes: kinds of executors.

/// A kind of executor. A policy has one today; the number is there so that it can have several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape(pub u32);
