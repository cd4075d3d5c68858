//! A desk with executors that live, and their ids as a cluster speaks of them.

use offermill::TaskState;

use crate::support::desk::Desk;
use crate::support::fleet::{Batch, Fleet, shuffled};
use crate::support::stream::EXECUTORS_LIVE;

/// Updates in a turn.
pub(crate) const BATCH: usize = 100;

/// How updates in one state are told to a desk.
pub(crate) type Tell<D> = fn(&mut D, &[String], TaskState);

/// A desk with its executors. Those of several threads lie in one list, and must not share lines.
#[repr(align(128))]
pub(crate) struct Roster<D> {
    pub(crate) desk: D,
    offers: Vec<Batch>,
    /// The executors' ids, in the order of their start.
    pub(crate) names: Vec<String>,
    /// The order in which they are spoken of.
    order: Vec<usize>,
    /// The ids in that order, and in memory, too: as warm as a decoder leaves them.
    spoken: Vec<String>,
    /// So many of them have been told.
    told: usize,
}

/// Updates one by one.
pub(crate) fn one_by_one<D: Desk>(desk: &mut D, names: &[String], state: TaskState) {
    names.iter().for_each(|name| desk.update(name, state));
}

/// Updates in batches of [`BATCH`], by a desk that takes such.
pub(crate) fn in_batches<D: Desk>(desk: &mut D, names: &[String], state: TaskState) {
    desk.update_all(names, state);
}

impl<D: Desk> Roster<D> {
    pub(crate) fn new(desk: D) -> Roster<D> {
        Roster {
            desk,
            // An executor on each agent.
            offers: Fleet::new(EXECUTORS_LIVE, BATCH).stream,
            names: Vec::new(),
            order: shuffled((0..EXECUTORS_LIVE).collect()),
            spoken: Vec::new(),
            told: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spoken.is_empty()
    }

    /// Ends all executors and starts as many.
    pub(crate) fn begin_anew(&mut self) {
        self.desk.end_all(&self.names);
        for batch in &self.offers {
            self.desk.answer(batch);
            self.desk.note();
        }
        self.desk.noted(&mut self.names);
        assert_eq!(self.names.len(), EXECUTORS_LIVE);
        self.speak();
    }

    /// Takes executors into the list that the desk has not started.
    pub(crate) fn strangers(&mut self, name: impl Fn(usize) -> String) {
        self.names = (0..EXECUTORS_LIVE).map(name).collect();
        self.speak();
    }

    fn speak(&mut self) {
        self.spoken.resize(self.names.len(), String::new());
        for (spoken, at) in self.spoken.iter_mut().zip(&self.order) {
            spoken.clone_from(&self.names[*at]);
        }
        self.told = 0;
    }

    /// All executors run.
    pub(crate) fn all_run(&mut self) {
        self.desk.update_all(&self.names, TaskState::Running);
    }

    /// Tells the next [`BATCH`] updates, so many times; from the first again after the last.
    pub(crate) fn tell(&mut self, state: TaskState, tell: Tell<D>, turns: u64) {
        for _ in 0..turns {
            tell(&mut self.desk, &self.spoken[self.told..self.told + BATCH], state);
            self.told = (self.told + BATCH) % EXECUTORS_LIVE;
        }
    }
}
