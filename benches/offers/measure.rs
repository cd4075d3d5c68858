//! How a scene is measured on one thread: by the size of batches, and by the number of agents.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};

use crate::scene::Scene;
use crate::support;
use crate::support::fleet::Fleet;
use crate::support::in_turn::in_turn;
use crate::support::scheduler::{Baseline, Ours, Scheduler};
use crate::support::stream::{Spent, Stream};

/// Offers in a batch, where that isn't what varies.
pub(crate) const BATCH: usize = 100;
/// Agents, where that isn't what varies.
pub(crate) const AGENTS: usize = 10_000;

/// What varies from one bench of a group to the next.
#[derive(Clone, Copy)]
pub(crate) enum By {
    Batch,
    Agents,
}

impl By {
    fn name(self) -> &'static str {
        match self {
            By::Batch => "by batch",
            By::Agents => "by agents",
        }
    }

    fn values(self) -> [usize; 4] {
        match self {
            By::Batch => [1, 10, 100, 1000],
            By::Agents => [100, 1_000, 10_000, 100_000],
        }
    }

    /// Agents and offers in a batch.
    fn point(self, value: usize) -> (usize, usize) {
        match self {
            By::Batch => (AGENTS, value),
            By::Agents => (value, BATCH),
        }
    }
}

/// Which work is timed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Answers to offers that start nothing.
    Declines,
    /// Answers to offers that start executors. They end meanwhile, beside the clock.
    Accepts,
    /// The ends of those executors.
    Ends,
}

impl Part {
    pub(crate) fn of(self, spent: Spent) -> Duration {
        if self == Part::Ends { spent.end } else { spent.accept }
    }

    fn time<D: Scheduler>(self, stream: &mut Stream<D>, turns: u64) -> Duration {
        if self != Part::Declines {
            return self.of(stream.start_and_end(turns));
        }
        let start = Instant::now();
        (0..turns).for_each(|_| stream.answer());
        start.elapsed()
    }
}

/// Measures parts of a scene, in a group each, whose names begin so.
pub(crate) fn scene(criterion: &mut Criterion, scene: Scene, by: By, parts: &[(&str, Part)]) {
    for value in by.values() {
        let (agents, batch) = by.point(value);
        let pair = RefCell::new(None);
        for (name, part) in parts {
            let name = format!("{name} {}", by.name());
            let mut group = support::group(criterion, &name);
            group.throughput(Throughput::Elements(batch as u64));
            let mut ours =
                |turns| part.time(&mut made(&mut pair.borrow_mut(), scene, agents, batch).0, turns);
            let mut plain =
                |turns| part.time(&mut made(&mut pair.borrow_mut(), scene, agents, batch).1, turns);
            let compared = &mut [("offermill", &mut ours as _), ("plain", &mut plain as _)];
            in_turn(&mut group, (&name, value), compared);
            group.finish();
        }
    }
}

type Pair = (Stream<Ours>, Stream<Baseline>);

/// The schedulers, made when they are wanted first: a bench that isn't run needs none.
fn made(pair: &mut Option<Pair>, scene: Scene, agents: usize, batch: usize) -> &mut Pair {
    pair.get_or_insert_with(|| scene.pair(&Fleet::new(agents, batch)))
}
