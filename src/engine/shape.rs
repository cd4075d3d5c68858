//! Shapes: kinds of executors.

/// A kind of executor. A policy has one today; the number is there so that it can have several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape(pub u32);

impl Shape {
    /// The only shape of a policy with one kind of executor.
    pub const DEFAULT: Shape = Shape(0);
}
