//! What a picture of the cluster's capacity keeps of agents, in shards of successive cells. A shard in which no agent
//! changed is shared with the next picture.
//!
//! Numbers that often change lie in rows of a cache line each, apart from the rest: rows are copied without a look at
//! anything that they point to. Names, roles and attributes are shared with the kernel and with earlier pictures.

use std::sync::Arc;

use crate::kernel::state::agent::{AgentName, AgentView};
use crate::kernel::state::offered::OfferedRecord;
use crate::kernel::state::offered_amounts::{AmountKind, ResourceSums};
use crate::kernel::state::offered_details::{OfferedDetails, OfferedToRole, RecordedAttributes};
use crate::kernel::state::offered_numbers::OfferedNumbers;
use crate::resources::{Gpus, Mebibytes, MilliCpus};
use crate::time::Timestamp;

/// The number of agents' cells that are kept together. A shard's rows take 16 KiB: little enough for an allocator
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
    pub(super) details: Arc<[AgentDetails]>,
    /// What was offered to each role by agents that offer to [several](OfferedNumbers::kind) roles or of several
    /// kinds, in the order of their rows.
    pub(super) parts: Box<[RolePart]>,
    /// The agents that are excluded or suspect, in the order of the rows.
    pub(super) withheld: Box<[Withheld]>,
    /// What each executor takes on the agents whose records have the [usual size](RecordRow::has_usual_size).
    pub(super) usual_size: ResourceSums,
    /// What the rows add up to as if no executors were there. The largest is that of agents which had none when they
    /// were recorded: it is known what these have.
    pub(super) idle: AddedUp,
    /// The agents that had executors when they were recorded.
    pub(super) had_executors: Positions,
    /// Whether it isn't known what one of the agents has that were never offered.
    pub(super) is_unsure: bool,
}

/// A set of positions in a shard.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Positions([u64; SHARD / 64]);

/// Numbers of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AgentRow {
    generation: u64,
    /// The number of the record, or [`UNREAD`].
    pub(super) revision: u64,
    pub(super) record: Option<RecordRow>,
    /// When it was last seen, in seconds.
    seen: u32,
    executors: u16,
    /// Whether the name has a host name.
    pub(super) is_named: bool,
    /// Whether it is excluded or suspect.
    is_withheld: bool,
}

/// Numbers of what is recorded of an agent's offers; see [`OfferedNumbers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordRow {
    pub(super) at: Timestamp,
    pub(super) since: u64,
    /// All amounts.
    offered: PackedSums,
    executors: u16,
    pub(super) kind: AmountKind,
    /// Whether each executor takes the [usual size](AgentShard::usual_size) of the shard. Otherwise the details, which
    /// lie apart, say what it takes.
    pub(super) has_usual_size: bool,
}

/// An agent that is excluded or suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Withheld {
    /// The position of its row.
    pub(super) at: usize,
    pub(super) excluded_until: Option<Timestamp>,
    pub(super) suspect_until: Option<Timestamp>,
}

/// [`ResourceSums`] without a gap at their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(Rust, packed(4))]
struct PackedSums {
    cores: MilliCpus,
    memory: Mebibytes,
    gpus: Gpus,
}

/// What seldom changes of an agent.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentDetails {
    /// None if there is no agent.
    pub(super) name: Option<Arc<AgentName>>,
    pub(super) attributes: Option<Arc<RecordedAttributes>>,
    /// The first role that it was offered to; none is the default role.
    pub(super) role: Option<Arc<str>>,
    /// What each executor takes, if that was fixed when it was recorded; otherwise nothing.
    pub(super) size: ResourceSums,
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
        record: None,
        seen: 0,
        executors: 0,
        is_named: false,
        is_withheld: false,
    };

    /// Shows the agent as it is seen. What was read of another agent is forgotten.
    #[inline]
    pub(super) fn see(&mut self, view: &AgentView) {
        if self.generation != view.generation {
            *self = AgentRow { generation: view.generation, ..AgentRow::EMPTY };
        }
        self.executors = view.executors;
        self.seen = view.seen;
        self.is_withheld = view.is_withheld();
    }

    /// Whether the row shows the agent as it is seen.
    #[inline]
    pub(super) fn shows(&self, view: &AgentView) -> bool {
        self.generation == view.generation
            && self.executors == view.executors
            && self.seen == view.seen
            && self.is_withheld == view.is_withheld()
    }

    /// Whether the record and the name of the agent need not be read again.
    pub(super) fn is_read(&self, record: OfferedRecord<'_>) -> bool {
        self.is_record_read(record) && self.is_name_known(record)
    }

    pub(super) fn is_record_read(&self, record: OfferedRecord<'_>) -> bool {
        self.revision != UNREAD && self.revision == record.begun()
    }

    pub(super) fn is_name_known(&self, record: OfferedRecord<'_>) -> bool {
        self.is_named || record.is_unnamed()
    }

    /// Whether the details of a record, the one with this number, are those that were read for the row.
    #[inline]
    pub(super) fn has_details_of(&self, numbers: &OfferedNumbers, revision: u64) -> bool {
        let is_known = self.record.is_some() && self.revision != UNREAD;
        is_known
            && numbers.generation == self.generation
            && numbers.has_same_details(revision.wrapping_sub(self.revision))
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

    /// Whether the agent, if nothing is recorded of it, may have been offered.
    pub(super) fn may_be_offered(&self) -> bool {
        // Offers of agents that are withheld aren't recorded, and a record may be locked. An agent that was reported
        // lost, and is never offered, isn't waited for once nothing withholds it.
        self.is_withheld || self.executors > 0 || self.revision == UNREAD
    }

    /// Whether nothing is placed there for now.
    pub(super) fn is_withheld(&self) -> bool {
        self.is_withheld
    }
}

impl Positions {
    pub(super) fn insert(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    pub(super) fn remove(&mut self, at: usize) -> bool {
        let Some(word) = self.0.get_mut(at / 64) else { return false };
        let before = *word;
        *word &= !(1 << (at % 64));
        *word != before
    }

    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        (0..).zip(self.0).flat_map(|(at, word)| {
            let rest = |word: &u64| Some(word & (word - 1)).filter(|rest| *rest != 0);
            let words = std::iter::successors(Some(word).filter(|word| *word != 0), rest);
            words.map(move |word| at * 64 + word.trailing_zeros() as usize)
        })
    }
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
    #[inline]
    pub(super) fn new(numbers: &OfferedNumbers, has_usual_size: bool) -> RecordRow {
        RecordRow {
            at: numbers.at,
            since: numbers.since,
            offered: numbers.offered.into(),
            executors: numbers.executors,
            kind: numbers.kind,
            has_usual_size,
        }
    }

    /// The number of executors on the agent when it was recorded.
    pub(super) fn executors(&self) -> u32 {
        self.executors.into()
    }

    /// All that was offered.
    pub(super) fn offered(&self) -> ResourceSums {
        self.offered.into()
    }

    /// What was offered and what this number of executors gave back since, if their size was fixed.
    pub(super) fn given_back(
        &self,
        executors: u32,
        size: impl FnOnce() -> ResourceSums,
    ) -> ResourceSums {
        match executors {
            0 => self.offered(),
            ended => self.offered().saturating_add(size().times(ended)),
        }
    }
}

impl AgentDetails {
    /// Whether they are those of the record.
    pub(super) fn are_of(&self, record: Option<(&OfferedNumbers, &OfferedDetails)>) -> bool {
        fn is_same<T: ?Sized>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
            one.map(Arc::as_ptr) == other.map(Arc::as_ptr)
        }
        let record = record.map(|(_, details)| details);
        let attributes = record.and_then(|record| record.attributes.as_ref());
        let role = record.and_then(|record| record.role.as_ref());
        is_same(self.attributes.as_ref(), attributes)
            && is_same(self.role.as_ref(), role)
            && self.size == record.map_or(ResourceSums::NONE, |record| record.size)
    }
}

impl AgentShard {
    pub(super) fn new(
        rows: Vec<AgentRow>,
        details: Arc<[AgentDetails]>,
        usual_size: ResourceSums,
        parts: Box<[RolePart]>,
        withheld: Box<[Withheld]>,
    ) -> AgentShard {
        let mut shard =
            AgentShard { rows, details, parts, withheld, usual_size, ..AgentShard::default() };
        shard.add_up_idle();
        shard
    }

    /// What each executor takes on the agent at this position, if that was fixed when it was recorded; otherwise
    /// nothing.
    #[inline]
    pub(super) fn executor_size(&self, at: usize, record: &RecordRow) -> ResourceSums {
        if record.has_usual_size {
            return self.usual_size;
        }
        self.details.get(at).map_or(ResourceSums::NONE, |details| details.size)
    }

    /// The agent at this position, if it is excluded or suspect.
    pub(super) fn withheld(&self, at: usize) -> Option<&Withheld> {
        self.withheld.get(self.withheld.binary_search_by_key(&at, |agent| agent.at).ok()?)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: rows are small, because a picture of many agents is made at the speed of memory. Method: ask the compiler.
    #[test]
    fn a_row_has_no_gaps() {
        assert_eq!(size_of::<AgentRow>(), 64);
    }

    /// Goal: a row that shows an agent as it was isn't taken for one that shows it as it is. Method: change one thing
    /// that is seen of an agent at a time.
    #[test]
    fn a_row_shows_what_was_seen_alone() {
        let until = Some(Timestamp::from_millis(1));
        let view = AgentView {
            generation: 3,
            executors: 2,
            excluded_until: None,
            suspect_until: None,
            seen: 7,
        };
        let mut row = AgentRow::EMPTY;
        row.see(&view);
        assert!(row.shows(&view));
        for other in [
            AgentView { generation: 4, ..view },
            AgentView { executors: 1, ..view },
            AgentView { excluded_until: until, ..view },
            AgentView { suspect_until: until, ..view },
            AgentView { seen: 8, ..view },
        ] {
            assert!(!row.shows(&other), "{other:?}");
            let mut row = row;
            row.see(&other);
            assert!(row.shows(&other), "{other:?}");
        }
    }
}
