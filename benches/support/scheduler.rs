//! The kernel and the baseline behind one door, so that the same bench drives both.

use std::fmt::Write as _;
use std::hint::black_box;

use offermill::resources::MilliCpus;
use offermill::{
    Config, Decisions, ExecutorId, Handler, Kernel, Outcome, StatusUpdate, TaskState, Updater,
};

use super::NOW;
use super::fleet::Batch;
use super::plain::{Answer, Placed, Plain, UpdateOutcome};

/// Something that answers offers, and hears of the end of what it started.
pub(crate) trait Scheduler: Send {
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

    /// The cluster says how an executor is.
    fn update(&mut self, name: &str, state: TaskState);

    /// The cluster reports one state for several executors. A scheduler that takes updates in batches takes these in
    /// one.
    fn update_all(&mut self, names: &[String], state: TaskState) {
        names.iter().for_each(|name| self.update(name, state));
    }

    /// An executor has ended well.
    fn end(&mut self, name: &str) {
        self.update(name, TaskState::Finished);
    }

    /// Executors have ended well.
    fn end_all(&mut self, names: &[String]) {
        self.update_all(names, TaskState::Finished);
    }
}

/// A handler of a kernel.
pub(crate) struct Ours {
    kernel: Kernel,
    handler: Handler,
    updater: Updater,
    pub(crate) decisions: Decisions,
    outcomes: Vec<Outcome>,
    noted: Vec<ExecutorId>,
}

impl Ours {
    pub(crate) fn new(kernel: &Kernel) -> Ours {
        Ours {
            kernel: kernel.clone(),
            handler: kernel.handler(),
            updater: kernel.updater(),
            decisions: Decisions::new(),
            outcomes: Vec::new(),
            noted: Vec::new(),
        }
    }

    pub(crate) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Applies an update and says what it did.
    pub(crate) fn outcome_of(&mut self, name: &str, state: TaskState) -> Outcome {
        self.updater.status_update(&StatusUpdate::new(name, state), NOW)
    }
}

impl Scheduler for Ours {
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

    fn update(&mut self, name: &str, state: TaskState) {
        black_box(self.outcome_of(name, state));
    }

    /// In batches of 100: as many as a batch of offers starts.
    fn update_all(&mut self, names: &[String], state: TaskState) {
        let mut updates = [StatusUpdate::new("", state); 100];
        for names in names.chunks(updates.len()) {
            for (update, name) in updates.iter_mut().zip(names) {
                *update = StatusUpdate::new(name, state);
            }
            self.outcomes.clear();
            self.kernel.status_updates(&updates[..names.len()], NOW, &mut self.outcomes);
            black_box(&self.outcomes);
        }
    }
}

/// The baseline.
pub(crate) struct Baseline {
    pub(crate) plain: Plain,
    pub(crate) answer: Answer,
    noted: Vec<Placed>,
}

impl Baseline {
    pub(crate) fn new(config: &Config, constraint: &str, cap: MilliCpus) -> Baseline {
        Baseline::over(Plain::new(config, constraint, cap))
    }

    pub(crate) fn over(plain: Plain) -> Baseline {
        Baseline { plain, answer: Answer::default(), noted: Vec::new() }
    }

    /// Applies an update and says what it did.
    pub(crate) fn outcome_of(&mut self, name: &str, state: TaskState) -> UpdateOutcome {
        self.plain.update(&StatusUpdate::new(name, state), NOW)
    }
}

impl Scheduler for Baseline {
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

    fn update(&mut self, name: &str, state: TaskState) {
        black_box(self.outcome_of(name, state));
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
