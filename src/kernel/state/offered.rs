//! What an agent offered last, and the fingerprint that tells handlers whether it is recorded.
//!
//! | word | thread | operation | ordering | pairs with |
//! |---|---|---|---|---|
//! | the fingerprint, in the agent's cell | handler, per candidate | load | Relaxed | nothing: a hint; a stale one causes a needless [`OfferedCell::rewrite`], or delays one to the next offer |
//! | the same | the handler that recorded an offer, under the lock | load; store if it differs | Relaxed | the lock: fingerprint and record change together |
//! | the same | the thread that places or binds executors which [differ in size](super::policy::Policy::sizes_differ) | store of [`NOT_RECORDED`] | Relaxed | nothing: a hint; if it comes before the store of a record made at the same time, a later end may stay unseen for a minute |
//! | the same | the thread that inserts the agent | store of [`NOT_RECORDED`] | Relaxed | [`AgentCell::activate`](super::agent::AgentCell::activate) publishes it |
//! | the record | handler, with [`try_lock`]; a report, likewise | under the lock | the lock's | |
//! | `revision` | the handler that recorded, under the lock | load | Relaxed | the lock: no other thread writes it meanwhile |
//! | the same | the same | store | Release | the report's load |
//! | the same | a report that reads the record, under the lock | load | Relaxed | the lock: it is the number of this record |
//! | the same | a report | load | Acquire | a report that finds the number of its last reading has read the record |
//! | `unnamed` | the thread that inserts the agent; the one that learns its host name, under the name's lock | store | Relaxed | nothing: a hint; a stale one causes a needless look at the name, or delays it to the next report |
//! | the same | any that looks an agent up by its id; a report | load | Relaxed | the same |
//!
//! No thread waits for the lock. A handler that finds it taken leaves the fingerprint as it is, marks the agent in its
//! own cache and so tries again with the agent's next offer, whatever fingerprint is there then; a report keeps what it
//! read before.
//!
//! The fingerprint includes the agent's key. So a handler that is late and stores the fingerprint of a forgotten agent
//! into the cell, which has become another agent's, makes no offer of the new agent look recorded; and a record names
//! the generation that it belongs to, so it is never shown for another agent.
//!
//! The fingerprint is a sum of products: of the amounts offered, and of the number of executors on the agent and their
//! size. So it stays the same while executors of one size come and go and the agent offers the rest. If executors take
//! what there is, one may end and another one, of any size, take its place unseen: then the thread that places one has
//! the agent's next offer recorded. The fingerprint tells nothing of reservations and of attributes' values, and one
//! change of amounts in two thousand million looks like none: therefore a handler also records an agent when it writes,
//! once a minute, that it has seen it.

use std::sync::Arc;

use crate::offer::DEFAULT_ROLE;
use crate::offer::attributes::OwnedAttribute;
use crate::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering, try_lock};
use crate::time::Timestamp;

/// The fingerprint of an agent of which nothing is recorded.
pub(crate) const NOT_RECORDED: u32 = 0;

/// Amounts of cores, memory and GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ResourceSums {
    /// Cores.
    pub cores: MilliCpus,
    /// Memory.
    pub memory: Mebibytes,
    /// GPUs.
    pub gpus: Gpus,
}

impl From<ExecutorResources> for ResourceSums {
    fn from(resources: ExecutorResources) -> ResourceSums {
        let ExecutorResources { cores, memory, gpus, .. } = resources;
        ResourceSums { cores, memory, gpus }
    }
}

impl ResourceSums {
    /// Nothing.
    pub const NONE: ResourceSums =
        ResourceSums { cores: MilliCpus::ZERO, memory: Mebibytes::ZERO, gpus: Gpus::ZERO };

    fn each(
        self,
        other: ResourceSums,
        of: impl Fn(u64, u64) -> u64,
        of_gpus: impl Fn(u32, u32) -> u32,
    ) -> ResourceSums {
        ResourceSums {
            cores: MilliCpus::from_millis(of(self.cores.millis(), other.cores.millis())),
            memory: Mebibytes::new(of(self.memory.get(), other.memory.get())),
            gpus: Gpus::new(of_gpus(self.gpus.get(), other.gpus.get())),
        }
    }

    /// Returns the sum. A sum that is too large for its unit is the largest value of it.
    #[must_use]
    pub fn saturating_add(self, other: ResourceSums) -> ResourceSums {
        self.each(other, u64::saturating_add, u32::saturating_add)
    }

    /// Returns the difference; where `other` is larger, zero.
    #[must_use]
    pub fn saturating_sub(self, other: ResourceSums) -> ResourceSums {
        self.each(other, u64::saturating_sub, u32::saturating_sub)
    }

    /// Returns the larger of both for each kind.
    #[must_use]
    pub fn max_of_each(self, other: ResourceSums) -> ResourceSums {
        self.each(other, u64::max, u32::max)
    }

    /// Returns `times` these amounts, saturating.
    pub(crate) fn times(self, times: u32) -> ResourceSums {
        let times = ResourceSums {
            cores: MilliCpus::from_millis(times.into()),
            memory: Mebibytes::new(times.into()),
            gpus: Gpus::new(times),
        };
        self.each(times, u64::saturating_mul, u32::saturating_mul)
    }
}

/// What an agent offered to one role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfferedToRole {
    /// None is the default role.
    pub(crate) role: Option<Arc<str>>,
    unreserved: Thousandths,
    /// Amounts that almost no agent has; None if there are none.
    special: Option<Box<SpecialAmounts>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SpecialAmounts {
    reserved: Thousandths,
    revocable: Thousandths,
}

/// What was offered to one role, by the kinds that are shown apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfferedAmounts {
    /// Reserved for the role or an ancestor of it.
    pub(crate) reserved: Thousandths,
    pub(crate) unreserved: Thousandths,
    pub(crate) revocable: Thousandths,
}

impl OfferedToRole {
    /// Replaces the role and the amounts. A role that is the same keeps its text, so that nothing is allocated.
    pub(crate) fn replace(&mut self, role: &str, amounts: OfferedAmounts) {
        if !self.is_to(role) {
            self.role = (role != DEFAULT_ROLE).then(|| role.into());
        }
        self.set(amounts);
    }

    pub(crate) fn is_to(&self, role: &str) -> bool {
        self.role.as_deref().unwrap_or(DEFAULT_ROLE) == role
    }

    pub(crate) fn amounts(&self) -> OfferedAmounts {
        let SpecialAmounts { reserved, revocable } =
            self.special.as_deref().copied().unwrap_or_default();
        OfferedAmounts { reserved, unreserved: self.unreserved, revocable }
    }

    /// Replaces the amounts. Allocates if some are reserved or revocable for the first time.
    fn set(&mut self, amounts: OfferedAmounts) {
        let OfferedAmounts { reserved, unreserved, revocable } = amounts;
        self.unreserved = unreserved;
        let special = SpecialAmounts { reserved, revocable };
        if special != SpecialAmounts::default() || self.special.is_some() {
            **self.special.get_or_insert_default() = special;
        }
    }

    pub(crate) fn add(&mut self, more: OfferedAmounts) {
        let mut amounts = self.amounts();
        amounts.reserved.add(more.reserved);
        amounts.unreserved.add(more.unreserved);
        amounts.revocable.add(more.revocable);
        self.set(amounts);
    }
}

/// Amounts of cores, memory and GPUs in thousandths of their units, so that fractions add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Thousandths(pub(crate) [u64; 3]);

impl Thousandths {
    pub(crate) fn add(&mut self, more: Thousandths) {
        for (sum, more) in self.0.iter_mut().zip(more.0) {
            *sum = sum.saturating_add(more);
        }
    }

    /// The amounts, without fractions of a MiB and of a GPU.
    pub(crate) fn rounded_down(self) -> ResourceSums {
        let [cpus, memory, gpus] = self.0;
        ResourceSums {
            cores: MilliCpus::from_millis(cpus),
            memory: Mebibytes::new(memory / 1000),
            gpus: Gpus::new(u32::try_from(gpus / 1000).unwrap_or(u32::MAX)),
        }
    }
}

/// An agent's attributes, copied, with a hash of them.
#[derive(Debug, Default)]
pub(crate) struct RecordedAttributes {
    pub(crate) fingerprint: u64,
    pub(crate) list: Box<[OwnedAttribute]>,
}

/// What an agent offered in one batch.
#[derive(Clone, Debug)]
pub(crate) struct OfferedRecord {
    /// The generation of the agent; the record is no other agent's.
    pub(crate) generation: u64,
    pub(crate) at: Timestamp,
    /// The next executor's sequence number at that time: executors with it and later ones were placed since.
    pub(crate) since: u64,
    /// The number of executors on the agent at that time, and the size of one if it is fixed.
    pub(crate) executors: u32,
    pub(crate) size: ResourceSums,
    pub(crate) first: OfferedToRole,
    /// What it offered to further roles, each once. None for almost all agents.
    #[expect(clippy::box_collection, reason = "a vector itself would make each record larger")]
    pub(crate) further: Option<Box<Vec<OfferedToRole>>>,
    /// None if the agent has no attributes.
    pub(crate) attributes: Option<Arc<RecordedAttributes>>,
}

impl OfferedRecord {
    fn new() -> OfferedRecord {
        OfferedRecord {
            generation: 0,
            at: Timestamp::ORIGIN,
            since: 0,
            executors: 0,
            size: ResourceSums::NONE,
            first: OfferedToRole::default(),
            further: None,
            attributes: None,
        }
    }

    /// What it offered to each role.
    pub(crate) fn roles(&self) -> impl Iterator<Item = &OfferedToRole> {
        std::iter::once(&self.first).chain(self.further.iter().flat_map(|further| further.iter()))
    }

    /// Whether all was offered to one role, neither reserved nor revocable.
    pub(crate) fn is_plain(&self) -> bool {
        let special = self.first.special.as_deref();
        special.is_none_or(|special| *special == SpecialAmounts::default())
            && self.further.as_ref().is_none_or(|further| further.is_empty())
    }

    /// All that it offered.
    pub(crate) fn sum(&self) -> ResourceSums {
        if self.is_plain() {
            return self.first.unreserved.rounded_down();
        }
        let mut sum = Thousandths::default();
        for OfferedAmounts { reserved, unreserved, revocable } in
            self.roles().map(OfferedToRole::amounts)
        {
            [reserved, unreserved, revocable].into_iter().for_each(|more| sum.add(more));
        }
        sum.rounded_down()
    }
}

/// The record of the agent in a cell.
#[derive(Debug, Default)]
pub(crate) struct OfferedCell {
    /// The number of the last record; 0 if there is none.
    revision: AtomicU64,
    /// 1 if the agent was never offered with a host name. A hint without ordering; the lock of the name decides.
    pub(crate) unnamed: AtomicU32,
    record: Mutex<Option<Box<OfferedRecord>>>,
}

impl OfferedCell {
    /// Has the record rewritten by `write`, which returns whether it did that, and then calls `done` under the same
    /// lock. Returns `false`, and has done nothing, if the lock is taken.
    pub(crate) fn rewrite(
        &self,
        write: impl FnOnce(&mut OfferedRecord) -> bool,
        done: impl FnOnce(),
    ) -> bool {
        let Some(mut record) = try_lock(&self.record) else { return false };
        if write(record.get_or_insert_with(|| Box::new(OfferedRecord::new()))) {
            // Relaxed: written under the lock only.
            let revision = self.revision.load(Ordering::Relaxed) + 1;
            // Release: a report that finds this number finds this record, or a later one, or the lock taken.
            self.revision.store(revision, Ordering::Release);
            done();
        }
        true
    }

    /// Whether the agent was never offered with a host name, as a hint.
    pub(crate) fn is_unnamed(&self) -> bool {
        self.unnamed.load(Ordering::Relaxed) != 0
    }

    /// The number of the last record; 0 if there is none.
    pub(crate) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Calls `read` with the last record, or with None if it isn't of this generation, and with its number. Returns
    /// `false`, and has done nothing, if the lock is taken.
    #[inline]
    pub(crate) fn read(
        &self,
        generation: u64,
        read: impl FnOnce(Option<&OfferedRecord>, u64),
    ) -> bool {
        let Some(record) = try_lock(&self.record) else { return false };
        let own = record.as_deref().filter(|record| record.generation == generation);
        // Relaxed: written under the lock only.
        read(own, self.revision.load(Ordering::Relaxed));
        true
    }
}
