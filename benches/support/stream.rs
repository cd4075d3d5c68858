//! A scheduler with an endless, repeating stream of offers.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::fleet::{Batch, Fleet};
use super::scheduler::Scheduler;

/// Live executors while others start and end.
pub(crate) const EXECUTORS_LIVE: usize = 10_000;

/// The minimum number of offers between two reads of the clock, since a read takes as long as an offer.
const CLOCKED: usize = 100;

/// A scheduler with its stream of offers, which repeats. Streams of several threads lie in one list,
/// and must not share lines.
#[derive(Clone)]
#[repr(align(128))]
pub(crate) struct Stream<D> {
    pub(crate) scheduler: D,
    batches: Vec<Batch>,
    next: usize,
    /// The executors of [`Stream::start_and_end`], from the oldest.
    live: VecDeque<String>,
    /// The executors of [`Stream::start`].
    started: Vec<String>,
}

/// The time that turns took, by what they did.
#[derive(Clone, Copy, Default)]
pub(crate) struct Spent {
    pub(crate) accept: Duration,
    pub(crate) end: Duration,
}

impl<D: Scheduler> Stream<D> {
    /// `scheduler` has met the fleet's agents when this returns.
    pub(crate) fn new(mut scheduler: D, fleet: &Fleet) -> Stream<D> {
        let mut names = Vec::new();
        for batch in &fleet.met {
            scheduler.answer(batch);
            scheduler.names(&mut names);
            scheduler.end_all(&names);
        }
        Stream {
            scheduler,
            batches: fleet.stream.clone(),
            next: 0,
            live: VecDeque::new(),
            started: Vec::new(),
        }
    }

    /// The same stream, `part` of `parts` of a round ahead.
    pub(crate) fn ahead(mut self, part: usize, parts: usize) -> Stream<D> {
        self.next = self.batches.len() * part / parts;
        self
    }

    /// The same stream, with as many executors alive as [`Stream::start_and_end`] keeps.
    ///
    /// # Panics
    /// When a round of offers starts none.
    pub(crate) fn filled(mut self) -> Stream<D> {
        while self.live.len() < EXECUTORS_LIVE {
            let before = self.live.len();
            self.start_and_end(self.batches.len() as u64);
            assert!(self.live.len() > before, "no offer is accepted");
        }
        self
    }

    /// Answers the next batch.
    pub(crate) fn answer(&mut self) {
        let batch = self.batches[self.next];
        self.next = if self.next + 1 == self.batches.len() { 0 } else { self.next + 1 };
        self.scheduler.answer(batch);
    }

    /// Answers batches, whose executors [`Stream::end`] ends once they have been [named](Stream::name).
    pub(crate) fn start(&mut self, turns: u64) {
        for _ in 0..turns {
            self.answer();
            self.scheduler.note();
        }
    }

    pub(crate) fn name(&mut self) {
        self.scheduler.noted(&mut self.started);
    }

    pub(crate) fn end(&mut self) {
        self.scheduler.end_all(&self.started);
    }

    /// Answers batches, and ends the oldest of the executors that are more than [`EXECUTORS_LIVE`]. Counts the
    /// scheduler's time alone: the ids' texts are the cluster's work.
    pub(crate) fn start_and_end(&mut self, mut turns: u64) -> Spent {
        let step = self.batches.first().map_or(1, |batch| (CLOCKED / batch.len()).max(1)) as u64;
        let mut spent = Spent::default();
        let mut names = Vec::new();
        while turns > 0 {
            let over = self.live.len().saturating_sub(EXECUTORS_LIVE);
            names.extend(self.live.drain(..over));
            let start = Instant::now();
            self.scheduler.end_all(&names);
            spent.end += start.elapsed();

            let share = turns.min(step);
            let start = Instant::now();
            self.start(share - 1);
            self.answer();
            spent.accept += start.elapsed();
            self.scheduler.names(&mut names);
            self.live.extend(names.drain(..));
            turns -= share;
        }
        spent
    }
}
