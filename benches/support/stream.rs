//! A desk with its offers, which come round and round.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::desk::Desk;
use super::fleet::{Batch, Fleet};

/// So many executors live while others are started and ended.
pub(crate) const EXECUTORS_LIVE: usize = 10_000;

/// So many offers, at least, between two looks at the clock, which takes as long as an offer does.
const CLOCKED: usize = 100;

/// A desk with its stream of offers, which begins anew when it is through. Streams of several threads lie in one list,
/// and must not share lines.
#[derive(Clone)]
#[repr(align(128))]
pub(crate) struct Stream<D> {
    pub(crate) desk: D,
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

impl<D: Desk> Stream<D> {
    /// `desk` has met the fleet's agents when this returns.
    pub(crate) fn new(mut desk: D, fleet: &Fleet) -> Stream<D> {
        let mut names = Vec::new();
        for batch in &fleet.met {
            desk.answer(batch);
            desk.names(&mut names);
            desk.end_all(&names);
        }
        Stream {
            desk,
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
        self.desk.answer(batch);
    }

    /// Answers batches, whose executors [`Stream::end`] ends once they have been [named](Stream::name).
    pub(crate) fn start(&mut self, turns: u64) {
        for _ in 0..turns {
            self.answer();
            self.desk.note();
        }
    }

    pub(crate) fn name(&mut self) {
        self.desk.noted(&mut self.started);
    }

    pub(crate) fn end(&mut self) {
        self.desk.end_all(&self.started);
    }

    /// Answers batches, and ends the oldest of the executors that are more than [`EXECUTORS_LIVE`]. Counts the desk's
    /// time alone: the ids' texts are the cluster's work.
    pub(crate) fn start_and_end(&mut self, mut turns: u64) -> Spent {
        let step = self.batches.first().map_or(1, |batch| (CLOCKED / batch.len()).max(1)) as u64;
        let mut spent = Spent::default();
        let mut names = Vec::new();
        while turns > 0 {
            let over = self.live.len().saturating_sub(EXECUTORS_LIVE);
            names.extend(self.live.drain(..over));
            let start = Instant::now();
            self.desk.end_all(&names);
            spent.end += start.elapsed();

            let share = turns.min(step);
            let start = Instant::now();
            self.start(share - 1);
            self.answer();
            spent.accept += start.elapsed();
            self.desk.names(&mut names);
            self.live.extend(names.drain(..));
            turns -= share;
        }
        spent
    }
}
