//! A scheduler with live executors, and their ids as the cluster spells them.

use offermill::TaskState;

use crate::support::fleet::{Batch, Fleet, shuffled};
use crate::support::scheduler::Scheduler;
use crate::support::stream::EXECUTORS_LIVE;

/// Updates in a turn.
pub(crate) const BATCH: usize = 100;

/// How updates with one state are passed to a scheduler.
pub(crate) type Apply<D> = fn(&mut D, &[String], TaskState);

/// A scheduler with its executors. Those of several threads lie in one list, and must not share lines.
#[repr(align(128))]
pub(crate) struct LiveExecutors<D> {
    pub(crate) scheduler: D,
    offers: Vec<Batch>,
    /// The executors' ids, in the order of their start.
    pub(crate) names: Vec<String>,
    /// The order of updates about them.
    order: Vec<usize>,
    /// The ids in that order, and in memory, too: as warm as a decoder leaves them.
    ordered: Vec<String>,
    /// The number of them that has been passed on.
    passed: usize,
}

/// Updates one by one.
pub(crate) fn one_by_one<D: Scheduler>(scheduler: &mut D, names: &[String], state: TaskState) {
    names.iter().for_each(|name| scheduler.update(name, state));
}

/// Updates in batches of [`BATCH`].
pub(crate) fn in_batches<D: Scheduler>(scheduler: &mut D, names: &[String], state: TaskState) {
    scheduler.update_all(names, state);
}

impl<D: Scheduler> LiveExecutors<D> {
    pub(crate) fn new(scheduler: D) -> LiveExecutors<D> {
        LiveExecutors {
            scheduler,
            // An executor on each agent.
            offers: Fleet::new(EXECUTORS_LIVE, BATCH).stream,
            names: Vec::new(),
            order: shuffled((0..EXECUTORS_LIVE).collect()),
            ordered: Vec::new(),
            passed: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ordered.is_empty()
    }

    /// Ends all executors and starts as many.
    pub(crate) fn begin_anew(&mut self) {
        self.scheduler.end_all(&self.names);
        for batch in &self.offers {
            self.scheduler.answer(batch);
            self.scheduler.note();
        }
        self.scheduler.noted(&mut self.names);
        assert_eq!(self.names.len(), EXECUTORS_LIVE);
        self.reorder();
    }

    /// Adds executors that the scheduler has not started.
    pub(crate) fn unmatched(&mut self, name: impl Fn(usize) -> String) {
        self.names = (0..EXECUTORS_LIVE).map(name).collect();
        self.reorder();
    }

    fn reorder(&mut self) {
        self.ordered.resize(self.names.len(), String::new());
        for (ordered, at) in self.ordered.iter_mut().zip(&self.order) {
            ordered.clone_from(&self.names[*at]);
        }
        self.passed = 0;
    }

    /// All executors run.
    pub(crate) fn all_run(&mut self) {
        self.scheduler.update_all(&self.names, TaskState::Running);
    }

    /// Passes the next [`BATCH`] updates, `turns` times; after the last it continues with the first.
    pub(crate) fn apply_next(&mut self, state: TaskState, apply: Apply<D>, turns: u64) {
        for _ in 0..turns {
            apply(&mut self.scheduler, &self.ordered[self.passed..self.passed + BATCH], state);
            self.passed = (self.passed + BATCH) % EXECUTORS_LIVE;
        }
    }
}
