//! An endless stream of offers and of tasks that are wanted, for kernel and plain loop.

use std::time::{Duration, Instant};

use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{Config, Constraint, Task, config::ExecutorCores};

use crate::support::fleet::{Batch, Fleet, random};
use crate::support::{ENOUGH, EXCLUSION, MET};

/// As many tasks as an offer of 4 cores and 2000 MiB has room for, whatever their sizes.
pub(crate) const TASKS_AN_OFFER: usize = 4;
/// Tasks that live while others come and go.
const TASKS_LIVE: usize = 10_000;

/// Settings of kernel and plain loop: the least that a task takes, and a cap that is never reached. What agents offer
/// is recorded for pictures of the capacity if `is_recorded`, which the plain loop never does.
pub(crate) fn config(is_recorded: bool) -> Config {
    let refresh = if is_recorded { Duration::from_secs(1) } else { Duration::MAX };
    Config::builder()
        .executor_cores(ExecutorCores::Fixed(MilliCpus::from_millis(100)))
        .executor_memory(Mebibytes::new(1))
        .memory_overhead(Some(Mebibytes::ZERO))
        .constraint(Constraint::parse(MET).expect("a constraint"))
        .core_cap(Some(ENOUGH))
        .capacity_refresh(refresh)
        .exclusion(Some(EXCLUSION))
        .build()
        .expect("settings")
}

/// Where a task was placed: the position of the offer, and its tag.
pub(crate) type PlacedAt = (u32, u64);

/// Something that places tasks on offers in turn, and hears of their ends.
pub(crate) trait TaskScheduler: Send {
    /// Places tasks on the offers of a batch.
    fn place(&mut self, batch: Batch, tasks: &[Task]);

    /// Remembers the ids of the tasks that were placed last.
    fn note(&mut self);

    /// The number of tasks remembered.
    fn live(&self) -> usize;

    /// What was placed last, with the amounts of each resource that are taken.
    fn placed(&self) -> (Vec<PlacedAt>, u64);

    /// This many tasks, the oldest, have ended well: by their ids, as a cluster sends them back.
    fn end(&mut self, count: usize);
}

/// A scheduler, its offers, and its tasks. Streams of several threads lie in one list, and must not share lines.
#[repr(align(128))]
pub(crate) struct TaskStream<S> {
    scheduler: S,
    batches: Vec<Batch>,
    /// For each batch, what is wanted.
    tasks: Vec<Vec<Task>>,
    next: usize,
}

impl<S: TaskScheduler> TaskStream<S> {
    /// Tasks of `kinds` kinds, in an order without a pattern. The agents are known when this returns.
    pub(crate) fn new(scheduler: S, agents: usize, batch: usize, kinds: usize) -> TaskStream<S> {
        let fleet = Fleet::new(agents, batch);
        let mut random = random();
        let kinds: Vec<(u64, u64)> =
            (0..kinds).map(|_| (100 + random(900), 1 + random(500))).collect();
        let mut task = |tag| {
            let (cores, memory) = kinds[random(kinds.len() as u64) as usize];
            Task::new(tag, MilliCpus::from_millis(cores), Mebibytes::new(memory))
        };
        let wanted = (batch.min(agents) * TASKS_AN_OFFER) as u64;
        let tasks = fleet.stream.iter().take(200).map(|_| (0..wanted).map(&mut task).collect());
        let (tasks, batches) = (tasks.collect(), fleet.stream);
        let mut stream = TaskStream { scheduler, batches: fleet.met, tasks, next: 0 };
        for _ in 0..stream.batches.len() {
            stream.turn();
            stream.end_all();
        }
        TaskStream { batches, next: 0, ..stream }
    }

    /// The same stream, with as many tasks alive as [`TaskStream::run`] keeps.
    pub(crate) fn filled(mut self) -> TaskStream<S> {
        while self.scheduler.live() < TASKS_LIVE {
            self.turn();
        }
        self
    }

    fn turn(&mut self) {
        let tasks = &self.tasks[self.next % self.tasks.len()];
        self.scheduler.place(self.batches[self.next], tasks);
        self.next = if self.next + 1 == self.batches.len() { 0 } else { self.next + 1 };
        self.scheduler.note();
    }

    /// Places the tasks of this many batches; the oldest end meanwhile, beside the clock.
    pub(crate) fn run(&mut self, turns: u64) -> Duration {
        let at_once = 100usize.div_ceil(self.batches[0].len());
        let (mut left, mut spent) = (turns, Duration::ZERO);
        while left > 0 {
            let share = left.min(at_once as u64);
            let start = Instant::now();
            self.place(share);
            spent += start.elapsed();
            left -= share;
            let ended = self.scheduler.live().saturating_sub(TASKS_LIVE);
            self.scheduler.end(ended);
        }
        spent
    }

    /// Places the tasks of this many batches.
    pub(crate) fn place(&mut self, turns: u64) {
        (0..turns).for_each(|_| self.turn());
    }

    pub(crate) fn end_all(&mut self) {
        self.scheduler.end(self.scheduler.live());
    }
}

/// Proves that both place the same tasks on the same offers, and all that are wanted.
pub(crate) fn agree<A: TaskScheduler, B: TaskScheduler>(
    one: &mut TaskStream<A>,
    other: &mut TaskStream<B>,
) {
    for _ in 0..one.batches.len().min(50) {
        one.turn();
        other.turn();
        let (mut ours, taken) = one.scheduler.placed();
        let (mut theirs, theirs_taken) = other.scheduler.placed();
        ours.sort_unstable();
        theirs.sort_unstable();
        assert_eq!(ours, theirs, "other decisions");
        assert_eq!(taken, theirs_taken, "other pieces");
        assert_eq!(ours.len(), one.tasks[0].len(), "not all tasks were placed");
    }
    one.end_all();
    other.end_all();
}
