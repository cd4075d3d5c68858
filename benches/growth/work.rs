//! What the kernel does that is measured: on one thread, and on two.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Duration;

use offermill::resources::MilliCpus;
use offermill::{
    Decisions, ExecutorId, Handler, Kernel, Outcome, StatusUpdate, TaskState, Updater,
};

use crate::counts::{self, Writes};
use crate::support::figures::Extent;
use crate::support::fleet::{Batch, Fleet};
use crate::support::threads::together;
use crate::support::{self, EXECUTOR_CORES, MET, NOW, UNMET};

const AGENTS: usize = 10_000;
/// Updates per batch.
const TOGETHER: usize = 100;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Unmet,
    AtCap,
    Accepted { batch: usize },
    Running,
    Ended,
    EndedTogether,
}

/// Nanoseconds a batch or an update, of the fastest lap.
pub(crate) struct Measured {
    pub(crate) alone: f64,
    /// With two threads, time on the wall by what both have done.
    pub(crate) together: f64,
    /// The same with a kernel each: what the machine gives a second thread.
    pub(crate) apart: f64,
}

impl Kind {
    pub(crate) const ALL: [Kind; 7] = [
        Kind::Unmet,
        Kind::AtCap,
        Kind::Accepted { batch: 10 },
        Kind::Accepted { batch: 100 },
        Kind::Running,
        Kind::Ended,
        Kind::EndedTogether,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Unmet => "declined, constraint unmet: offers by 100",
            Kind::AtCap => "declined, cap reached: offers by 100",
            Kind::Accepted { batch: 10 } => "accepted: executors by 10",
            Kind::Accepted { .. } => "accepted: executors by 100",
            Kind::Running => "running: updates one by one",
            Kind::Ended => "ended: updates one by one",
            Kind::EndedTogether => "ended: updates by 100",
        }
    }

    fn batch(self) -> usize {
        if let Kind::Accepted { batch } = self { batch } else { 100 }
    }

    /// Offers or updates a batch; an update that is told by itself is one.
    pub(crate) fn elements(self) -> f64 {
        if matches!(self, Kind::Running | Kind::Ended) { 1.0 } else { self.batch() as f64 }
    }

    pub(crate) fn writes(self) -> Writes {
        match self {
            Kind::Unmet | Kind::AtCap => counts::DECLINED,
            // Each agent of the fleet has room for one.
            Kind::Accepted { batch } => counts::launched(batch as u64, batch as u64),
            Kind::Running => counts::RUNNING,
            Kind::Ended => counts::ENDED_BY_UPDATER,
            Kind::EndedTogether => counts::ended(TOGETHER as u64),
        }
    }

    /// How many threads have a counter of what was released to themselves.
    pub(crate) fn own_counters(self) -> u32 {
        if self == Kind::Ended { counts::OWN_COUNTERS } else { 0 }
    }

    /// A guess: about a quarter of a batch's time is for writing the answer, after the admission.
    pub(crate) fn plans(self) -> Option<f64> {
        matches!(self, Kind::Accepted { .. }).then_some(0.75)
    }

    fn kernel(self) -> Kernel {
        let constraint = if self == Kind::Unmet { UNMET } else { MET };
        let cap = (self == Kind::AtCap).then_some(EXECUTOR_CORES);
        support::kernel(&support::config(constraint, cap))
    }
}

impl Measured {
    pub(crate) fn new(kind: Kind, extent: Extent) -> Measured {
        let (laps, turns) = if extent == Extent::Test { (1, 4) } else { (25, 400) };
        let fleet = Fleet::new(AGENTS, kind.batch());
        let [alone, shared, one, other] = std::array::from_fn(|_| kind.kernel());
        let kernels = [vec![&alone], vec![&shared, &shared], vec![&one, &other]];
        let mut groups = kernels.map(|kernels| workers(&kernels, &fleet));
        let mut fastest = [f64::INFINITY; 3];
        for _ in 0..laps {
            for (workers, fastest) in groups.iter_mut().zip(&mut fastest) {
                let turns = turns * workers.len() as u64;
                *fastest = fastest.min(lap(kind, workers, turns));
            }
        }
        let [alone, together, apart] = fastest;
        Measured { alone, together, apart }
    }
}

/// Workers of these kernels that have met the agents, and are at different places of the round.
fn workers(kernels: &[&Kernel], fleet: &Fleet) -> Vec<Worker> {
    let place = |thread| fleet.stream.len() * thread / kernels.len();
    let worker = |(thread, kernel): (usize, &&Kernel)| Worker::new(kernel, fleet, place(thread));
    let mut workers: Vec<Worker> = kernels.iter().enumerate().map(worker).collect();
    for _ in 0..2 {
        workers.iter_mut().for_each(|worker| worker.answer(fleet.stream.len() as u64));
        workers.iter_mut().for_each(Worker::end_all);
    }
    // Where a cap is to be reached it is now.
    workers.iter_mut().for_each(|worker| worker.answer(1));
    workers
}

/// Nanoseconds a batch or an update.
fn lap(kind: Kind, workers: &mut [Worker], turns: u64) -> f64 {
    let spread = |elapsed: Duration, turns: u64| elapsed.as_secs_f64() * 1e9 / turns as f64;
    if matches!(kind, Kind::Unmet | Kind::AtCap) {
        return spread(together(workers, turns, Worker::answer), turns);
    }
    workers.iter_mut().for_each(Worker::end_all);
    let answered = together(workers, turns, Worker::answer);
    workers.iter_mut().for_each(Worker::name);
    let named = workers.iter().map(|worker| worker.names.len() as u64).sum();
    let update =
        |workers: &mut [Worker], state| together(workers, turns, |worker, _| worker.update(state));
    match kind {
        Kind::Running => spread(update(workers, TaskState::Running), named),
        Kind::Ended => spread(update(workers, TaskState::Finished), named),
        Kind::EndedTogether => {
            let ended = together(workers, turns, |worker, _| worker.end_together());
            spread(ended, named / TOGETHER as u64)
        }
        _ => spread(answered, turns),
    }
}

/// A thread's handler, and what it has started.
struct Worker {
    kernel: Kernel,
    handler: Handler,
    updater: Updater,
    decisions: Decisions,
    batches: Vec<Batch>,
    next: usize,
    started: Vec<ExecutorId>,
    names: Vec<String>,
    outcomes: Vec<Outcome>,
}

impl Worker {
    fn new(kernel: &Kernel, fleet: &Fleet, next: usize) -> Worker {
        Worker {
            kernel: kernel.clone(),
            handler: kernel.handler(),
            updater: kernel.updater(),
            decisions: Decisions::new(),
            batches: fleet.stream.clone(),
            next,
            started: Vec::new(),
            names: Vec::new(),
            outcomes: Vec::new(),
        }
    }

    fn answer(&mut self, turns: u64) {
        for _ in 0..turns {
            let batch = self.batches[self.next];
            self.next = (self.next + 1) % self.batches.len();
            self.handler.resource_offers(batch, NOW, &mut self.decisions);
            let placed = self.decisions.accepts().flat_map(|accept| accept.executors);
            self.started.extend(placed.map(|executor| executor.id));
        }
    }

    /// Writes the ids as a cluster would send them back.
    fn name(&mut self) {
        self.names.clear();
        for id in self.started.drain(..) {
            let mut name = String::with_capacity(64);
            write!(name, "{}", self.kernel.executor_name(id)).expect("a string takes all");
            self.names.push(name);
        }
    }

    /// Tells of each executor that was named.
    fn update(&mut self, state: TaskState) {
        for name in &self.names {
            black_box(self.updater.status_update(&StatusUpdate::new(name, state), NOW));
        }
    }

    /// Ends all named executors, in batches.
    fn end_together(&mut self) {
        let mut updates = Vec::with_capacity(TOGETHER);
        for names in self.names.chunks(TOGETHER) {
            updates.clear();
            updates.extend(names.iter().map(|name| StatusUpdate::new(name, TaskState::Finished)));
            self.outcomes.clear();
            self.kernel.status_updates(&updates, NOW, &mut self.outcomes);
            black_box(&self.outcomes);
        }
    }

    /// Ends all that started; those that were named last have perhaps not.
    fn end_all(&mut self) {
        self.update(TaskState::Finished);
        self.name();
        self.update(TaskState::Finished);
    }
}

/// A kernel with `executors` executors on the fleet's agents.
pub(crate) fn crowded(executors: usize) -> Kernel {
    let fleet = Fleet::new(AGENTS, 100);
    let kernel = support::kernel(&support::config(MET, None::<MilliCpus>));
    Worker::new(&kernel, &fleet, 0).answer(executors as u64 / 100);
    kernel
}
