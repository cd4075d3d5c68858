//! Launches under way: executors that the kernel has placed and whose ACCEPT call has not returned, so that neither a
//! reconciliation nor a kill overtakes the launch.
//!
//! The kernel counts an executor as soon as its batch is committed; its ACCEPT is made later, on the handler thread:
//! commands are built before it, and each call may take long (a manager may write to a disk first). If the cluster is
//! asked about the executor in between, it doesn't know it and answers that it is gone; a kill has no effect. No fixed
//! delay is enough, so each batch counts its ACCEPTs:
//!
//! | thread | does | and then |
//! |---|---|---|
//! | handler | [`Launches::begin`]: no executor from the next number on may be named | commits the batch in the kernel |
//! | | [`LaunchBatch::set_executors`]: of those numbers, only the batch's own, each with its ACCEPT | makes the ACCEPT calls in order |
//! | | [`LaunchBatch::set_returned`] after each: the executors of that ACCEPT may be named | makes the next |
//! | | drops the [`LaunchBatch`] when the last has returned | |
//! | control thread | finds executors in the kernel, *then* checks [`Launches::under_way`] for each | names the others in a call |
//!
//! An executor that the control thread finds was committed before, so its batch had begun. Either its ACCEPT is not
//! counted as returned, and the executor is deferred; or the ACCEPT has returned before the cluster is asked. A manager
//! must carry out calls in the order in which they were made (see
//! [`ClusterManager`](super::cluster_manager::ClusterManager)), so the guarantee is exact, however slow the manager is.
//! Deferred executors are checked again at each tick. A call or a launcher that never returns delays reconciliation and
//! kills only of the executors of that call, and of the calls behind it in its batch.
//!
//! The kernel numbers a batch's executors without gaps, in the order in which it placed them; those of one ACCEPT need
//! not be adjacent. So a batch has a table from numbers to ACCEPTs, and one number that rises: how many ACCEPTs have
//! returned. Both are behind a lock of the batch's own; only the beginning and the end of a batch take the lock that
//! handlers share. The control thread takes a batch's lock while it holds the shared one, and no thread the other way
//! round.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::sync::{Mutex, MutexGuard, lock};
use crate::ids::ExecutorId;
use crate::kernel::{Decisions, Kernel};

/// The batches that are being answered. Clones share one table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Launches(Arc<Mutex<Batches>>);

#[derive(Debug, Default)]
struct Batches {
    /// The number of the next batch.
    next: u64,
    /// By the batch's number.
    open: BTreeMap<u64, Arc<Mutex<Unlaunched>>>,
}

/// The executors of a batch, and which of their launches have returned.
#[derive(Debug)]
struct Unlaunched {
    /// The sequence number of the first.
    first: u64,
    /// For each sequence number from the first on, the ACCEPT that launches it, counted from 1; 0 if the number belongs
    /// to another batch. `None` until the batch is committed: until then every number may be its own.
    accepts: Option<Vec<u32>>,
    /// The number of ACCEPTs that have returned.
    returned: u32,
}

impl Unlaunched {
    fn contains(&self, sequence: u64) -> bool {
        let (Some(offset), Some(accepts)) = (sequence.checked_sub(self.first), &self.accepts)
        else {
            return sequence >= self.first;
        };
        let accept = usize::try_from(offset).ok().and_then(|offset| accepts.get(offset));
        accept.is_some_and(|accept| *accept > self.returned)
    }
}

/// A batch that is being answered. Dropped when all its ACCEPTs have returned.
#[derive(Debug)]
pub(crate) struct LaunchBatch {
    launches: Launches,
    number: u64,
    unlaunched: Arc<Mutex<Unlaunched>>,
}

impl Launches {
    fn batches(&self) -> MutexGuard<'_, Batches> {
        lock(&self.0)
    }

    /// Registers a batch that is about to be committed.
    pub(crate) fn begin(&self, kernel: &Kernel) -> LaunchBatch {
        let mut batches = self.batches();
        let number = batches.next;
        batches.next += 1;
        let first = kernel.next_sequence();
        let unlaunched = Unlaunched { first, accepts: None, returned: 0 };
        let unlaunched = Arc::new(Mutex::new(unlaunched));
        batches.open.insert(number, Arc::clone(&unlaunched));
        LaunchBatch { launches: self.clone(), number, unlaunched }
    }

    /// Whether the call that launches this executor may not have returned yet. Must be checked after the executor was
    /// found in the kernel, not before.
    pub(crate) fn under_way(&self, id: ExecutorId) -> bool {
        self.batches().open.values().any(|batch| lock(batch).contains(id.sequence()))
    }
}

impl LaunchBatch {
    /// Stores the executors of the batch, which was committed.
    pub(crate) fn set_executors(&self, decisions: &Decisions) {
        let executors = decisions.accepts().flat_map(|accept| accept.executors);
        let first = executors.map(|executor| executor.id.sequence()).min().unwrap_or_default();
        let mut accepts = Vec::with_capacity(decisions.executors());
        for (accept, number) in decisions.accepts().zip(1..) {
            for executor in accept.executors {
                let offset = usize::try_from(executor.id.sequence() - first).unwrap_or(usize::MAX);
                if offset >= accepts.len() {
                    accepts.resize(offset + 1, 0);
                }
                accepts[offset] = number;
            }
        }
        *lock(&self.unlaunched) = Unlaunched { first, accepts: Some(accepts), returned: 0 };
    }

    /// Stores how many of the batch's ACCEPTs have returned.
    pub(crate) fn set_returned(&self, accepts: u32) {
        lock(&self.unlaunched).returned = accepts;
    }
}

impl Drop for LaunchBatch {
    fn drop(&mut self) {
        self.launches.batches().open.remove(&self.number);
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::config::{Config, ExecutorCores};
    use crate::ids::IdScheme;
    use crate::kernel::Accepted;
    use crate::offer::{Offer, Resource};
    use crate::resources::MilliCpus;
    use crate::time::Timestamp;

    /// Goal: before a batch is committed all its executors wait, then each until its own ACCEPT has returned, whatever
    /// their numbers are; no executor of an earlier or later batch does. Method: batches that place executors on three
    /// agents by turns.
    #[test]
    fn each_launch_is_waited_for_alone() {
        let one_core = ExecutorCores::Fixed(MilliCpus::from_cores(1));
        let config = Config::builder().executor_cores(one_core).build().unwrap();
        let kernel = Kernel::new(config, IdScheme::plain());
        let mut handler = kernel.handler();
        let launches = Launches::default();
        let mut place = |decisions: &mut Decisions| {
            let resources = [Resource::scalar("cpus", 3.0), Resource::scalar("mem", 9999.0)];
            let offer = |id| Offer::new(id, id, "host", &resources, &[]);
            let offers = ["S0", "S1", "S2"].map(offer);
            handler.resource_offers(&offers, Timestamp::ORIGIN, decisions);
        };
        let ids = |decisions: &Decisions| -> Vec<Vec<ExecutorId>> {
            let ids = |accept: Accepted<'_>| accept.executors.iter().map(|it| it.id).collect();
            decisions.accepts().map(ids).collect()
        };
        let mut earlier = Decisions::new();
        let mut decisions = Decisions::new();
        let mut later = Decisions::new();
        place(&mut earlier);
        let batch = launches.begin(&kernel);
        place(&mut decisions);
        place(&mut later);
        let waits = |ids: &[ExecutorId]| ids.iter().all(|id| launches.under_way(*id));
        let leaves = |ids: &[ExecutorId]| ids.iter().all(|id| !launches.under_way(*id));
        assert!(ids(&decisions).iter().all(|ids| waits(ids)));
        batch.set_executors(&decisions);
        let own = ids(&decisions);
        assert_eq!(own.len(), 3);
        assert!(own[0][1].sequence() > own[1][0].sequence(), "by turns");
        for made in 0..=3 {
            batch.set_returned(made as u32);
            assert!(own[..made].iter().all(|ids| leaves(ids)));
            assert!(own[made..].iter().all(|ids| waits(ids)));
            assert!(ids(&earlier).iter().chain(&ids(&later)).all(|ids| leaves(ids)));
        }
        drop(batch);
        assert_eq!(launches.batches().open.len(), 0);
    }
}
