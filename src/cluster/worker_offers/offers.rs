//! The workers of a cluster and their open offers.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::worker::{CpuMemory, OpenOffer, Worker, WorkerSpec};
use crate::engine::cluster_manager::OwnedOffer;

/// All workers, by index. The entry of a lost worker stays empty until it registers again under another id.
pub(crate) struct WorkerOffers {
    framework_id: String,
    interval: Duration,
    specs: Vec<WorkerSpec>,
    workers: Vec<Option<Worker>>,
    /// The index of the worker that made each open offer.
    open: HashMap<String, usize>,
    workers_named: u64,
    offers_named: u64,
    suppressed: bool,
}

/// A worker that was lost: its id, and the id of its open offer.
pub(crate) struct LostWorker {
    pub(crate) id: String,
    pub(crate) offer: Option<String>,
}

impl WorkerOffers {
    pub(crate) fn new(
        framework_id: String,
        specs: Vec<WorkerSpec>,
        interval: Duration,
    ) -> WorkerOffers {
        let workers = specs.iter().map(|_| None).collect();
        let mut offers = WorkerOffers {
            framework_id,
            interval,
            specs,
            workers,
            open: HashMap::new(),
            workers_named: 0,
            offers_named: 0,
            suppressed: false,
        };
        let now = Instant::now();
        for index in 0..offers.specs.len() {
            offers.register(index, now);
        }
        offers
    }

    /// Registers the worker with this index under a new id, unless it is registered.
    pub(crate) fn register(&mut self, index: usize, now: Instant) {
        if let (Some(entry @ None), Some(spec)) =
            (self.workers.get_mut(index), self.specs.get(index))
        {
            let id = format!("{}-S{}", self.framework_id, self.workers_named);
            self.workers_named += 1;
            *entry = Some(Worker::new(id, spec.clone(), now));
        }
    }

    /// Removes a worker. Returns `None` if it was not registered.
    pub(crate) fn remove(&mut self, index: usize) -> Option<LostWorker> {
        let mut worker = self.workers.get_mut(index)?.take()?;
        let offer = worker.close_offer().map(|offered| offered.id);
        if let Some(offer) = &offer {
            self.open.remove(offer);
        }
        Some(LostWorker { id: worker.id, offer })
    }

    /// Returns the worker with this index, if it is still registered under this id.
    fn worker(&mut self, index: usize, id: &str) -> Option<&mut Worker> {
        self.workers.get_mut(index)?.as_mut().filter(|worker| worker.id == id)
    }

    /// Makes an offer for each worker that can make one now.
    pub(crate) fn make_offers(&mut self, now: Instant) -> Vec<OwnedOffer> {
        if self.suppressed {
            return Vec::new();
        }
        let mut offers = Vec::new();
        for (index, worker) in self.workers.iter_mut().enumerate() {
            let Some(worker) = worker else { continue };
            if worker.offerable_at().is_some_and(|at| at <= now) {
                let id = format!("{}-O{}", self.framework_id, self.offers_named);
                self.offers_named += 1;
                self.open.insert(id.clone(), index);
                offers.push(worker.offer(id, now, self.interval));
            }
        }
        offers
    }

    /// Returns the earliest time of the next offer, if no other event comes first.
    pub(crate) fn next_offer_at(&self) -> Option<Instant> {
        let workers = self.workers.iter().flatten().filter(|_| !self.suppressed);
        workers.filter_map(Worker::offerable_at).min()
    }

    /// Closes offers that were declined, and holds their resources back for `refuse`.
    pub(crate) fn decline(&mut self, offers: &[String], refuse: Duration, now: Instant) {
        for id in offers {
            if let Some((worker, offered)) = self.close_offer(id) {
                worker.refuse(offered.amounts, refuse, now);
            }
        }
    }

    /// Makes no offers until [`WorkerOffers::revive`].
    pub(crate) fn suppress(&mut self) {
        self.suppressed = true;
    }

    /// Makes offers again, including resources that were declined.
    pub(crate) fn revive(&mut self) {
        self.suppressed = false;
        self.workers.iter_mut().flatten().for_each(Worker::revive);
    }

    /// Closes the offers that an accept names. As in Mesos, all of them must be open and belong to the agent that the
    /// accept names, or none is used. As a worker has at most one open offer, the result is one offer and its worker's
    /// index.
    ///
    /// # Errors
    /// One sentence that names an invalid offer. The valid ones are closed as well.
    pub(crate) fn accept(
        &mut self,
        offers: &[String],
        agent_id: &str,
    ) -> Result<(usize, OpenOffer), String> {
        let mut accepted = None;
        let mut invalid = None;
        for id in offers {
            let index = self.open.get(id).copied();
            match (index, self.close_offer(id)) {
                (Some(index), Some((worker, offered))) if worker.id == agent_id => {
                    accepted = Some((index, offered));
                }
                _ => invalid = Some(format!("offer {id:?} of agent {agent_id:?} is not open")),
            }
        }
        match (accepted, invalid) {
            (_, Some(invalid)) => Err(invalid),
            (None, None) => Err("no offer was named".to_owned()),
            (Some(accepted), None) => Ok(accepted),
        }
    }

    fn close_offer(&mut self, offer: &str) -> Option<(&mut Worker, OpenOffer)> {
        let worker = self.workers.get_mut(self.open.remove(offer)?)?.as_mut()?;
        let offered = worker.close_offer()?;
        Some((worker, offered))
    }

    /// Holds the unused rest of an accepted offer back for `refuse`.
    pub(crate) fn refuse(
        &mut self,
        index: usize,
        agent_id: &str,
        rest: CpuMemory,
        refuse: Duration,
        now: Instant,
    ) {
        if let Some(worker) = self.worker(index, agent_id) {
            worker.refuse(rest, refuse, now);
        }
    }

    /// Reserves an executor's resources on a worker. Has no effect if the worker was lost.
    pub(crate) fn reserve(
        &mut self,
        index: usize,
        agent_id: &str,
        amounts: CpuMemory,
        port: Option<u16>,
    ) {
        if let Some(worker) = self.worker(index, agent_id) {
            worker.reserve(amounts, port);
        }
    }

    /// Releases the resources of an executor that ended. Has no effect if its worker was lost.
    pub(crate) fn release(
        &mut self,
        index: usize,
        agent_id: &str,
        amounts: CpuMemory,
        port: Option<u16>,
    ) {
        if let Some(worker) = self.worker(index, agent_id) {
            worker.release(amounts, port);
        }
    }
}
