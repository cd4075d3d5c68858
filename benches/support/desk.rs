//! The kernel and the baseline behind one door, so that the same bench drives both.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use offermill::resources::MilliCpus;
use offermill::{Config, Decisions, ExecutorId, Handler, Kernel, StatusUpdate, TaskState};

use super::fleet::{Batch, Fleet};
use super::plain::{Answer, Placed, Plain};
use super::{EXECUTOR_CORES, NOW};

/// Something that answers offers, and hears of the end of what it started.
pub(crate) trait Desk: Send {
    /// Answers a batch; the answer stays until the next.
    fn answer(&mut self, batch: Batch);

    /// Remembers the ids of the executors that the last answer started.
    fn note(&mut self);

    /// The ids remembered, as a cluster would send them back; forgets them.
    fn noted(&mut self, names: &mut Vec<String>);

    /// The ids of the executors that the last answer started, as a cluster would send them back.
    fn names(&mut self, names: &mut Vec<String>) {
        self.note();
        self.noted(names);
    }

    /// An executor has ended well.
    fn end(&mut self, name: &str);
}

/// A handler of a kernel.
pub(crate) struct Ours {
    kernel: Kernel,
    handler: Handler,
    pub(crate) decisions: Decisions,
    noted: Vec<ExecutorId>,
}

impl Ours {
    pub(crate) fn new(kernel: &Kernel) -> Ours {
        let decisions = Decisions::new();
        Ours { kernel: kernel.clone(), handler: kernel.handler(), decisions, noted: Vec::new() }
    }
}

impl Desk for Ours {
    fn answer(&mut self, batch: Batch) {
        self.handler.resource_offers(batch, NOW, &mut self.decisions);
        black_box(&self.decisions);
    }

    fn note(&mut self) {
        let placed = self.decisions.accepts().flat_map(|accept| accept.executors);
        self.noted.extend(placed.map(|executor| executor.id));
    }

    fn noted(&mut self, names: &mut Vec<String>) {
        reuse(names, self.noted.drain(..), |id, name| {
            write!(name, "{}", self.kernel.executor_name(id)).expect("a string takes all");
        });
    }

    fn end(&mut self, name: &str) {
        let update = StatusUpdate::new(name, TaskState::Finished);
        black_box(self.kernel.status_update(&update, NOW));
    }
}

/// The baseline.
pub(crate) struct Baseline {
    plain: Plain,
    pub(crate) answer: Answer,
    noted: Vec<Placed>,
}

impl Baseline {
    pub(crate) fn new(config: &Config, constraint: &str, cap: MilliCpus) -> Baseline {
        let plain = Plain::new(config, constraint, EXECUTOR_CORES, cap);
        Baseline { plain, answer: Answer::default(), noted: Vec::new() }
    }
}

impl Desk for Baseline {
    fn answer(&mut self, batch: Batch) {
        self.plain.answer(batch, NOW, &mut self.answer);
        black_box(&self.answer);
    }

    fn note(&mut self) {
        self.noted.extend_from_slice(&self.answer.placed);
    }

    fn noted(&mut self, names: &mut Vec<String>) {
        let plain = &self.plain;
        reuse(names, self.noted.drain(..), |placed, name| plain.write_name(&placed, name));
    }

    fn end(&mut self, name: &str) {
        black_box(self.plain.update(&StatusUpdate::new(name, TaskState::Finished)));
    }
}

/// Writes one text an item, in the memory that earlier texts had.
pub(super) fn reuse<T>(
    names: &mut Vec<String>,
    items: impl Iterator<Item = T>,
    write: impl Fn(T, &mut String),
) {
    let mut count = 0;
    for item in items {
        if count == names.len() {
            names.push(String::new());
        }
        names[count].clear();
        write(item, &mut names[count]);
        count += 1;
    }
    names.truncate(count);
}

/// A desk with its stream of offers, which begins anew when it is through.
#[derive(Clone)]
pub(crate) struct Stream<D> {
    pub(crate) desk: D,
    batches: Vec<Batch>,
    next: usize,
    live: VecDeque<Vec<String>>,
    /// The executors of [`Stream::start`].
    started: Vec<String>,
}

/// The time that turns took, by what they did.
#[derive(Clone, Copy, Default)]
pub(crate) struct Spent {
    pub(crate) accept: Duration,
    pub(crate) end: Duration,
}

/// So many batches' executors live at a time.
pub(crate) const BATCHES_LIVE: usize = 100;

impl<D: Desk> Stream<D> {
    /// `desk` has met the fleet's agents when this returns.
    pub(crate) fn new(mut desk: D, fleet: &Fleet) -> Stream<D> {
        let mut names = Vec::new();
        for batch in &fleet.met {
            desk.answer(batch);
            desk.names(&mut names);
            names.iter().for_each(|name| desk.end(name));
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
        self.started.iter().for_each(|name| self.desk.end(name));
    }

    /// Answers batches whose executors end when [`BATCHES_LIVE`] more batches have been answered. Counts the desk's
    /// time alone: the ids' texts are the cluster's work.
    pub(crate) fn start_and_end(&mut self, turns: u64) -> Spent {
        let mut spent = Spent::default();
        for _ in 0..turns {
            let mut names = Vec::new();
            if self.live.len() == BATCHES_LIVE {
                names = self.live.pop_front().unwrap_or_default();
                let start = Instant::now();
                names.iter().for_each(|name| self.desk.end(name));
                spent.end += start.elapsed();
            }
            let start = Instant::now();
            self.answer();
            spent.accept += start.elapsed();
            self.desk.names(&mut names);
            self.live.push_back(names);
        }
        spent
    }
}
