//! The key of an agent: a handle that is cheap to copy and that is never another agent's.

/// The index takes the lower bits.
const INDEX_BITS: u32 = 26;

/// Identifies an agent: the index of its cell (the lower 26 bits, so at most 2²⁶ cells) and its generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct AgentKey(u64);

impl AgentKey {
    /// The key of no agent. No cell has its index, which stands for [no agent](super::agent_binding::NO_AGENT) in an
    /// executor's cell.
    pub(crate) const NONE: AgentKey = AgentKey(u64::MAX);

    /// The largest index. See [`AGENT_INDEX_MAX`](super::agent_binding::AGENT_INDEX_MAX) for the largest that a cell
    /// has.
    pub(crate) const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;

    pub(crate) fn new(index: u32, generation: u64) -> AgentKey {
        AgentKey(generation << INDEX_BITS | u64::from(index))
    }

    pub(crate) fn index(self) -> u32 {
        (self.0 & Self::INDEX_MASK) as u32
    }

    pub(crate) fn generation(self) -> u64 {
        self.0 >> INDEX_BITS
    }

    /// The key as a number below 2⁶⁴ - 1.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// The key from its number.
    pub(crate) fn from_bits(bits: u64) -> AgentKey {
        AgentKey(bits)
    }
}
