//! What a picture of the cluster's capacity keeps of agents, in shards of successive cells. A shard in which no agent
//! changed is shared with the next picture.
//!
//! Numbers lie in rows, apart from texts: almost all changes are of numbers alone, and rows are copied without a look
//! at anything that they point to. Names, roles and attributes are shared with the kernel and with earlier pictures.

use std::sync::Arc;

use crate::kernel::state::agent::{AgentName, AgentView};
use crate::kernel::state::offered::{
    OfferedCell, OfferedRecord, OfferedToRole, RecordedAttributes, ResourceSums,
};
use crate::resources::{Gpus, Mebibytes, MilliCpus};
use crate::time::Timestamp;

/// The number of agents' cells that are kept together. A shard's rows take some 30 KiB: little enough for an allocator
/// to keep and to hand out again, so that pictures don't wait for memory that the system has to clear.
pub(super) const SHARD: usize = 256;

/// The generation in the row of a cell without an agent. Generations have 38 bits.
const NO_GENERATION: u64 = u64::MAX;
/// The number of a record that must be read again.
pub(super) const UNREAD: u64 = u64::MAX;

/// The agents in [`SHARD`] successive cells.
#[derive(Debug, Default)]
pub(super) struct AgentShard {
    /// By the positions of the cells. Missing at the end: cells without agents.
    pub(super) rows: Vec<AgentRow>,
    /// By the same positions.
    pub(super) texts: Arc<[AgentTexts]>,
    /// What was offered to each role by agents that are not [plain](OfferedRecord::is_plain), in the order of the rows.
    pub(super) parts: Box<[RolePart]>,
    /// What the rows add up to as if no executors were there.
    pub(super) idle: AddedUp,
}

/// Numbers of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AgentRow {
    generation: u64,
    /// The number of the record, or [`UNREAD`].
    pub(super) revision: u64,
    executors: u16,
    /// Whether the name has a host name.
    pub(super) is_named: bool,
    /// When it was last seen, in seconds.
    seen: u32,
    /// When the exclusion and the suspicion end; the origin if there is none.
    excluded_until: Timestamp,
    suspect_until: Timestamp,
    pub(super) record: Option<RecordRow>,
}

/// Numbers of what is recorded of an agent's offers; see [`OfferedRecord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordRow {
    pub(super) at: Timestamp,
    pub(super) since: u64,
    /// All amounts.
    offered: PackedSums,
    size: PackedSums,
    pub(super) executors: u32,
    pub(super) is_plain: bool,
}

/// [`ResourceSums`] without a gap at their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(Rust, packed(4))]
struct PackedSums {
    cores: MilliCpus,
    memory: Mebibytes,
    gpus: Gpus,
}

/// Texts of an agent.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentTexts {
    /// None if there is no agent.
    pub(super) name: Option<Arc<AgentName>>,
    pub(super) attributes: Option<Arc<RecordedAttributes>>,
    /// The first role that it was offered to; none is the default role.
    pub(super) role: Option<Arc<str>>,
}

/// What an agent offered to one role.
#[derive(Clone, Debug)]
pub(super) struct RolePart {
    /// The position of the agent's row.
    pub(super) at: usize,
    pub(super) offered: OfferedToRole,
}

/// Sums over agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct CapacitySums {
    /// The number of agents.
    pub agents: usize,
    /// What they offered last.
    pub offered: ResourceSums,
    /// What executors use that are [counted](crate::Totals::executors), those included that aren't
    /// [bound](crate::Kernel::bind) to an agent yet.
    pub used: ResourceSums,
    /// What is free on agents that are neither excluded nor suspect.
    pub free: ResourceSums,
    /// What is free on agents that are excluded or suspect.
    pub withheld: ResourceSums,
}

/// Sums over agents, and the most that any of them has of each kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AddedUp {
    pub(super) sums: CapacitySums,
    pub(super) largest: ResourceSums,
}

impl AgentRow {
    pub(super) const EMPTY: AgentRow = AgentRow {
        generation: NO_GENERATION,
        revision: UNREAD,
        executors: 0,
        is_named: false,
        seen: 0,
        excluded_until: Timestamp::ORIGIN,
        suspect_until: Timestamp::ORIGIN,
        record: None,
    };

    /// Shows the agent as it is seen. What was read of another agent is forgotten.
    pub(super) fn see(&mut self, view: &AgentView) {
        if self.generation != view.generation {
            *self = AgentRow { generation: view.generation, ..AgentRow::EMPTY };
        }
        self.executors = view.executors;
        self.seen = view.seen;
        self.excluded_until = view.excluded_until.unwrap_or_default();
        self.suspect_until = view.suspect_until.unwrap_or_default();
    }

    /// Whether the row shows the agent as it is seen.
    pub(super) fn shows(&self, view: &AgentView) -> bool {
        self.generation == view.generation
            && self.executors == view.executors
            && self.seen == view.seen
            && self.excluded_until == view.excluded_until.unwrap_or_default()
            && self.suspect_until == view.suspect_until.unwrap_or_default()
    }

    /// Whether the record and the name of the agent need not be read again.
    pub(super) fn is_read(&self, record: &OfferedCell) -> bool {
        self.is_record_read(record) && self.is_name_known(record)
    }

    pub(super) fn is_record_read(&self, record: &OfferedCell) -> bool {
        self.revision != UNREAD && self.revision == record.revision()
    }

    pub(super) fn is_name_known(&self, record: &OfferedCell) -> bool {
        self.is_named || record.is_unnamed()
    }

    pub(super) fn executors(&self) -> u32 {
        self.executors.into()
    }

    pub(super) fn seen(&self) -> Timestamp {
        Timestamp::from_millis(u64::from(self.seen) * 1000)
    }

    /// The generation of the agent, if there is one.
    pub(super) fn generation(&self) -> Option<u64> {
        (self.generation != NO_GENERATION).then_some(self.generation)
    }

    pub(super) fn excluded_until(&self) -> Option<Timestamp> {
        Some(self.excluded_until).filter(|until| *until != Timestamp::ORIGIN)
    }

    pub(super) fn suspect_until(&self) -> Option<Timestamp> {
        Some(self.suspect_until).filter(|until| *until != Timestamp::ORIGIN)
    }

    /// Whether nothing is placed there for now.
    pub(super) fn is_withheld(&self) -> bool {
        self.excluded_until().is_some() || self.suspect_until().is_some()
    }
}

impl PackedSums {
    const NONE: PackedSums =
        PackedSums { cores: MilliCpus::ZERO, memory: Mebibytes::ZERO, gpus: Gpus::ZERO };
}

impl From<ResourceSums> for PackedSums {
    fn from(sums: ResourceSums) -> PackedSums {
        let ResourceSums { cores, memory, gpus } = sums;
        PackedSums { cores, memory, gpus }
    }
}

impl From<PackedSums> for ResourceSums {
    fn from(sums: PackedSums) -> ResourceSums {
        let PackedSums { cores, memory, gpus } = sums;
        ResourceSums { cores, memory, gpus }
    }
}

impl RecordRow {
    /// Nothing was offered.
    pub(super) const EMPTY: RecordRow = RecordRow {
        at: Timestamp::ORIGIN,
        since: 0,
        offered: PackedSums::NONE,
        size: PackedSums::NONE,
        executors: 0,
        is_plain: true,
    };

    /// All that was offered.
    pub(super) fn offered(&self) -> ResourceSums {
        self.offered.into()
    }

    /// What was offered and what this number of executors gave back since, if their size was fixed.
    pub(super) fn given_back(&self, executors: u32) -> ResourceSums {
        match executors {
            0 => self.offered(),
            ended => self.offered().saturating_add(self.size().times(ended)),
        }
    }

    /// What each executor takes, if that was fixed; otherwise nothing.
    pub(super) fn size(&self) -> ResourceSums {
        self.size.into()
    }

    /// Takes the numbers over where they lie: a row that is made elsewhere and moved here takes a quarter longer.
    #[inline]
    pub(super) fn copy(&mut self, record: &OfferedRecord) {
        self.at = record.at;
        self.since = record.since;
        self.offered = record.sum().into();
        self.size = record.size.into();
        self.executors = record.executors;
        self.is_plain = record.is_plain();
    }
}

impl AgentTexts {
    /// Whether role and attributes are the record's own ones.
    pub(super) fn are_of(&self, record: Option<&OfferedRecord>) -> bool {
        fn is_same<T: ?Sized>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
            one.map(Arc::as_ptr) == other.map(Arc::as_ptr)
        }
        let attributes = record.and_then(|record| record.attributes.as_ref());
        let role = record.and_then(|record| record.first.role.as_ref());
        is_same(self.attributes.as_ref(), attributes) && is_same(self.role.as_ref(), role)
    }
}

impl AgentShard {
    pub(super) fn new(
        rows: Vec<AgentRow>,
        texts: Arc<[AgentTexts]>,
        parts: Box<[RolePart]>,
    ) -> AgentShard {
        let idle = AgentShard::add_up_idle(&rows);
        AgentShard { rows, texts, parts, idle }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: rows are small, because a picture of many agents is made at the speed of memory. Method: ask the compiler.
    #[test]
    fn a_row_has_no_gaps() {
        assert_eq!(size_of::<AgentRow>(), 104);
    }
}
