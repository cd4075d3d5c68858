//! The queues' words, by number. The table is made when a kernel is first given queues: others pay nothing.
//!
//! | word | thread | operation |
//! |---|---|---|
//! | a queue's cores, then its memory | handler before its commit, readmission, adoption | [`QueueTable::claim`]: both, or none |
//! | the same | handler whose commit failed, any that ends an executor | [`QueueTable::release`] |
//! | the same | setters of guarantees and of demand, under the lock of the terms | [`QueueTable::set_guarantees`], [`QueueTable::set_demand`] |
//! | the same, and the footprints | handler that plans, reports | [`QueueTable::quotas`]: loads, one after the other |
//!
//! See [`quota`](super::quota) for the words, the footprints and the orderings. Maxima and totals are the policy's, so
//! that a commit under older ones fails; guarantees are in the words themselves.
//!
//! The queue in which an executor is booked is kept with its [tag](super::tags). Its end, or its being given up, is
//! released in that queue, even if the settings have changed since.

use crossbeam_utils::CachePadded;

use super::budget::Budget;
use super::claim_returns::{ClaimReturns, NoRoom};
use super::quota::{Quota, QuotaWord, Shortage};
use crate::config::{Config, QueueId, Queues};
use crate::limits;
use crate::resources::{Mebibytes, MilliCpus};
use crate::sync::{Mutex, lock};

/// Few under loom, which keeps account of each.
const LENGTH: usize = if cfg!(all(loom, test)) { 3 } else { limits::QUEUES_MAX };

/// An amount of cores and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueAmount {
    pub(crate) cores: MilliCpus,
    pub(crate) memory: Mebibytes,
}

impl QueueAmount {
    pub(crate) const fn new(cores: MilliCpus, memory: Mebibytes) -> QueueAmount {
        QueueAmount { cores, memory }
    }

    pub(crate) fn plus(self, other: QueueAmount) -> QueueAmount {
        QueueAmount {
            cores: MilliCpus::from_millis(self.cores.millis().saturating_add(other.cores.millis())),
            memory: Mebibytes::new(self.memory.get().saturating_add(other.memory.get())),
        }
    }
}

/// Why a queue can't take more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueShortage {
    Cores(Shortage),
    Memory(Shortage),
}

/// A queue's words at about one instant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueQuotas {
    pub(crate) cores: Quota,
    pub(crate) memory: Quota,
}

#[derive(Debug, Default)]
struct QueueCell {
    cores: QuotaWord,
    memory: QuotaWord,
}

/// What is guaranteed to a queue, and whether it has demand.
#[derive(Clone, Copy, Debug)]
struct QueueTerms {
    cores: u64,
    memory: u64,
    has_demand: bool,
}

/// All queues of a kernel.
#[derive(Debug)]
pub(crate) struct QueueTable {
    cells: Box<[CachePadded<QueueCell>]>,
    /// What the footprints of all queues are together.
    cores: CachePadded<Budget>,
    memory: CachePadded<Budget>,
    /// Claims that are open or were given back.
    pub(crate) returns: CachePadded<ClaimReturns>,
    terms: Mutex<Box<[QueueTerms]>>,
}

impl QueueTable {
    pub(crate) fn new() -> QueueTable {
        let terms = QueueTerms { cores: 0, memory: 0, has_demand: true };
        QueueTable {
            cells: std::iter::repeat_with(CachePadded::default).take(LENGTH).collect(),
            cores: CachePadded::new(Budget::new()),
            memory: CachePadded::new(Budget::new()),
            returns: CachePadded::default(),
            terms: Mutex::new(vec![terms; LENGTH].into()),
        }
    }

    /// The words of a queue.
    pub(crate) fn quotas(&self, queue: QueueId) -> QueueQuotas {
        match self.cells.get(queue.index()) {
            Some(cell) => QueueQuotas { cores: cell.cores.load(), memory: cell.memory.load() },
            None => QueueQuotas::default(),
        }
    }

    /// The cores and the memory that the footprints take together.
    pub(crate) fn footprints(&self) -> (u64, u64) {
        (self.cores.taken(), self.memory.taken())
    }

    /// Books an amount in a queue, all or none, under these settings. Returns whether footprints were reserved for it
    /// and given back; see [`QuotaWord::claim`].
    pub(crate) fn claim(
        &self,
        config: &Config,
        queue: QueueId,
        amount: QueueAmount,
    ) -> Result<bool, QueueShortage> {
        let Some(cell) = self.cells.get(queue.index()) else {
            return Err(QueueShortage::Cores(Shortage::Maximum));
        };
        let most = config.queues.bounds(queue);
        let (cores, memory) = (amount.cores.millis(), amount.memory.get());
        let (total_cores, total_memory) = totals(config);
        let gave_back = cell
            .cores
            .claim(cores, most.cores.millis(), &self.cores, total_cores)
            .map_err(QueueShortage::Cores)?;
        match cell.memory.claim(memory, most.memory.get(), &self.memory, total_memory) {
            Ok(too) => Ok(gave_back || too),
            Err(short) => {
                cell.cores.release(cores, &self.cores);
                Err(QueueShortage::Memory(short))
            }
        }
    }

    /// Releases what was booked.
    pub(crate) fn release(&self, queue: QueueId, amount: QueueAmount) {
        if let Some(cell) = self.cells.get(queue.index()) {
            cell.memory.release(amount.memory.get(), &self.memory);
            cell.cores.release(amount.cores.millis(), &self.cores);
        }
    }

    /// Sets the guarantees to those of the settings that `queues` returns under the lock.
    pub(crate) fn set_guarantees(&self, queues: impl FnOnce() -> std::sync::Arc<Queues>) {
        let mut all = lock(&self.terms);
        let queues = queues();
        for (terms, number) in all.iter_mut().zip(0..) {
            let queue = queues.get(QueueId::new(number));
            terms.cores = queue.map_or(0, |queue| queue.guaranteed_cores.millis());
            terms.memory = queue.map_or(0, |queue| queue.guaranteed_memory.get());
            self.apply(QueueId::new(number), *terms);
        }
    }

    /// Says whether a queue has demand. Returns whether that is a change.
    pub(crate) fn set_demand(&self, queue: QueueId, has_demand: bool) -> bool {
        let mut all = lock(&self.terms);
        let Some(terms) = all.get_mut(queue.index()) else { return false };
        if terms.has_demand == has_demand {
            return false;
        }
        terms.has_demand = has_demand;
        self.apply(queue, *terms);
        true
    }

    fn apply(&self, queue: QueueId, terms: QueueTerms) {
        let QueueTerms { cores, memory, has_demand } = terms;
        let Some(cell) = self.cells.get(queue.index()) else { return };
        cell.cores.guarantee(if has_demand { cores } else { 0 }, &self.cores);
        cell.memory.guarantee(if has_demand { memory } else { 0 }, &self.memory);
    }
}

/// Claims of one thread, from before they are made until it is known which are given back.
#[derive(Debug)]
#[must_use = "the claims are open until it is dropped"]
pub(crate) struct OpenClaims<'k>(&'k QueueTable);

impl<'k> OpenClaims<'k> {
    pub(crate) fn new(queues: &'k QueueTable) -> OpenClaims<'k> {
        queues.returns.begin();
        OpenClaims(queues)
    }

    /// Makes one claim; see [`ClaimReturns::claim`].
    pub(crate) fn claim(&self, claim: impl FnMut() -> bool) -> Result<(), NoRoom> {
        self.0.returns.claim(claim)
    }
}

impl Drop for OpenClaims<'_> {
    fn drop(&mut self) {
        self.0.returns.end();
    }
}

/// What all footprints may be together, in thousandths of cores and MiB. If no cores are guaranteed, the admission word
/// alone keeps to the core cap: what is claimed for a moment would only be in the way here.
pub(crate) fn totals(config: &Config) -> (u64, u64) {
    let cores = config.core_cap.unwrap_or(limits::TOTAL_CORES_MAX).min(limits::TOTAL_CORES_MAX);
    let cores = if config.queues.guarantee_cores() { cores.millis() } else { u64::MAX };
    (cores, config.queues.memory.map_or(u64::MAX, Mebibytes::get))
}
