//! Resource profiles: kinds of executors.

/// The number of a resource profile, which is a kind of executor. A policy has one today; the number is there so that
/// it can have several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ResourceProfileId(pub u32);

impl ResourceProfileId {
    /// The profile of a policy with one kind of executor.
    pub const DEFAULT: ResourceProfileId = ResourceProfileId(0);
}
