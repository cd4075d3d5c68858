//! The scenes' harness: a kernel, common operations of its threads, and a record of its executors.
//!
//! The record is in std's locks, which shuttle doesn't see: it adds no switches, and each lock is held for one change
//! only.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use offermill::{
    Change, Decisions, ExecutorId, Handler, IdScheme, Kernel, Outcome, Reason, StatusUpdate,
    TaskState, Timestamp,
};
use shuttle::thread::{self, JoinHandle};

use crate::world::{OfferData, Setup, at, lend};

/// A kernel and the record of its executors. A clone is another handle.
#[derive(Clone)]
pub(crate) struct Harness {
    pub(crate) kernel: Kernel,
    memory: Arc<Mutex<Memory>>,
}

#[derive(Default)]
struct Memory {
    placed: Vec<ExecutorId>,
    ended: HashSet<u64>,
}

impl Harness {
    pub(crate) fn new(setup: &Setup) -> Harness {
        Harness::with_ids(setup, IdScheme::unique("s", 0).unwrap())
    }

    pub(crate) fn with_ids(setup: &Setup, ids: IdScheme) -> Harness {
        Harness { kernel: Kernel::new(setup.config(), ids), memory: Arc::default() }
    }

    /// Starts a thread that does `work` with the harness.
    pub(crate) fn spawn<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Harness) -> R + Send + 'static,
    ) -> JoinHandle<R> {
        let harness = self.clone();
        thread::spawn(move || work(&harness))
    }

    /// Answers one batch with an offer of `cpus` cores from each of `agents`. Checks that each offer is answered once
    /// and no executor placed twice, and returns the executors placed.
    pub(crate) fn offer(
        &self,
        handler: &mut Handler,
        agents: &[&str],
        cpus: f64,
        now: Timestamp,
    ) -> Answer {
        let batch: Vec<OfferData> =
            agents.iter().map(|agent| OfferData::new(agent, cpus, 10_000.0)).collect();
        let mut decisions = Decisions::new();
        lend(&batch, |offers| handler.resource_offers(offers, now, &mut decisions));
        let accepted: usize = decisions.accepts().map(|accept| accept.offers.len()).sum();
        assert_eq!(
            accepted + decisions.declines().len(),
            batch.len(),
            "each offer is answered once"
        );
        let placed: Vec<ExecutorId> = decisions
            .accepts()
            .flat_map(|accept| accept.executors.iter().map(|executor| executor.id))
            .collect();
        let mut memory = self.memory.lock().unwrap();
        for id in &placed {
            let twice = memory.placed.iter().any(|other| other.sequence() == id.sequence());
            assert!(!twice, "executor {} placed twice", id.sequence());
            memory.placed.push(*id);
        }
        let declines = decisions.declines().iter().map(|decline| decline.reason).collect();
        Answer { placed, declines }
    }

    /// Applies an update. Checks that no executor ends twice and that none is unknown.
    pub(crate) fn update(&self, id: ExecutorId, state: TaskState, now: Timestamp) -> Outcome {
        let name = self.kernel.executor_name(id).to_string();
        let update = StatusUpdate::new(&name, state);
        // By each method: the result must be the same.
        let outcome = match id.sequence() % 3 {
            0 => self.kernel.status_update(&update, now),
            1 => self.kernel.updater().status_update(&update, now),
            _ => {
                let mut outcomes = Vec::new();
                self.kernel.status_updates(&[update], now, &mut outcomes);
                outcomes.remove(0)
            }
        };
        assert_ne!(outcome.change, Change::UnknownExecutor, "{name}");
        if let Change::Ended(_) = outcome.change {
            self.record_end(id);
        }
        outcome
    }

    pub(crate) fn record_end(&self, id: ExecutorId) {
        let first = self.memory.lock().unwrap().ended.insert(id.sequence());
        assert!(first, "executor {} ended twice", id.sequence());
    }

    /// All executors that were ever placed.
    pub(crate) fn placed(&self) -> Vec<ExecutorId> {
        self.memory.lock().unwrap().placed.clone()
    }

    pub(crate) fn ended(&self) -> usize {
        self.memory.lock().unwrap().ended.len()
    }

    /// Whether `id` has ended.
    pub(crate) fn has_ended(&self, id: ExecutorId) -> bool {
        self.memory.lock().unwrap().ended.contains(&id.sequence())
    }

    /// Called when no other thread runs: the sums agree with the cells, and all placed executors that have not ended
    /// are counted.
    pub(crate) fn flush_releases(&self) {
        self.kernel.check().unwrap();
        let snapshot = self.kernel.snapshot(at(0));
        assert!(snapshot.exact, "at a standstill");
        assert_eq!(snapshot.executors.len(), self.placed().len() - self.ended());
    }
}

/// How a batch was answered.
pub(crate) struct Answer {
    pub(crate) placed: Vec<ExecutorId>,
    pub(crate) declines: Vec<Reason>,
}

/// Joins all threads.
pub(crate) fn join<R>(threads: impl IntoIterator<Item = JoinHandle<R>>) -> Vec<R> {
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}
