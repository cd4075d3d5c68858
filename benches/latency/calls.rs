//! The calls that are timed, one by one.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::BATCH;
use crate::support::fleet::Fleet;
use crate::support::scheduler::Scheduler;
use crate::support::stream::{EXECUTORS_LIVE, Stream};
use crate::table::Times;

/// Answers batches of offers that are all declined.
pub(crate) struct Declining<D> {
    pub(crate) stream: Stream<D>,
    pub(crate) answers: Times,
}

impl<D: Scheduler> Declining<D> {
    pub(crate) fn new(scheduler: D, fleet: &Fleet) -> Declining<D> {
        Declining { stream: Stream::new(scheduler, fleet), answers: Times::default() }
    }

    pub(crate) fn run(&mut self, span: Duration) {
        let start = Instant::now();
        while start.elapsed() < span {
            self.answers.time(|| self.stream.answer());
        }
    }
}

/// Answers batches of offers that are all accepted, and ends their executors a hundred batches later, one by one.
pub(crate) struct Accepting<D> {
    stream: Stream<D>,
    live: VecDeque<Vec<String>>,
    pub(crate) answers: Times,
    pub(crate) ends: Times,
}

impl<D: Scheduler> Accepting<D> {
    pub(crate) fn new(scheduler: D, fleet: &Fleet) -> Accepting<D> {
        let (answers, ends) = (Times::default(), Times::default());
        Accepting { stream: Stream::new(scheduler, fleet), live: VecDeque::new(), answers, ends }
    }

    /// Times only rounds with as many ends as placements; executors that are left at the end are ended untimed.
    pub(crate) fn run(&mut self, span: Duration) {
        for _ in 0..EXECUTORS_LIVE / BATCH {
            self.stream.answer();
            self.name(Vec::new());
        }
        let start = Instant::now();
        while start.elapsed() < span {
            let names = self.live.pop_front().unwrap_or_default();
            names.iter().for_each(|name| self.ends.time(|| self.stream.scheduler.end(name)));
            self.answers.time(|| self.stream.answer());
            self.name(names);
        }
        self.live.drain(..).flatten().for_each(|name| self.stream.scheduler.end(&name));
    }

    /// Notes whom the last answer started, in memory that others' names had.
    fn name(&mut self, mut names: Vec<String>) {
        self.stream.scheduler.names(&mut names);
        self.live.push_back(names);
    }
}
