//! The tests' scene: a kernel with one handler, offers of many agents, and what is written while it answers.

use std::collections::BTreeMap;
use std::time::Duration;

use super::counts::Writes;
use crate::choosers::Chooser;
use crate::config::ExecutorCores;
use crate::kernel::lines::{Count, SharedWord, WordAddresses};
use crate::resources::{Mebibytes, MilliCpus};
use crate::sync::counting::{Write, record_writes};
use crate::{
    Config, ConfigBuilder, Decisions, ExecutorId, Handler, IdScheme, Kernel, Offer, Picks,
    Resource, StatusUpdate, Task, TaskState, Timestamp,
};

pub(super) const NOW: Timestamp = Timestamp::from_millis(1_000_000);

/// The writes by kind of word.
pub(super) type Counts = BTreeMap<SharedWord, Count>;

/// Executors of one core and 1 MiB each.
pub(super) fn config() -> ConfigBuilder {
    Config::builder()
        .executor_cores(ExecutorCores::Fixed(MilliCpus::from_cores(1)))
        .executor_memory(Mebibytes::new(1))
        .memory_overhead(Some(Mebibytes::ZERO))
}

/// What each agent offers.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) agents: usize,
    pub(super) cores: f64,
    pub(super) memory: f64,
}

impl Size {
    /// A number of agents, each with room for a number of executors.
    pub(super) fn of(agents: usize, executors: u32) -> Size {
        let room = f64::from(executors);
        Size { agents, cores: room, memory: room }
    }
}

pub(super) struct Scene {
    pub(super) kernel: Kernel,
    pub(super) handler: Handler,
    pub(super) decisions: Decisions,
}

impl Scene {
    pub(super) fn new(config: ConfigBuilder) -> Scene {
        Scene::with_ids(config, IdScheme::unique("c", 0).unwrap())
    }

    pub(super) fn with_ids(config: ConfigBuilder, ids: IdScheme) -> Scene {
        Scene::beside(&Kernel::new(config.build().unwrap(), ids))
    }

    /// Another handler of a kernel.
    pub(super) fn beside(kernel: &Kernel) -> Scene {
        let handler = kernel.handler();
        let kernel = kernel.clone();
        Scene { kernel, handler, decisions: Decisions::new() }
    }

    /// Answers one offer of each agent. Returns what that wrote.
    pub(super) fn offer(&mut self, size: Size, now: Timestamp) -> Vec<Write> {
        let resources =
            [Resource::scalar("cpus", size.cores), Resource::scalar("mem", size.memory)];
        self.offer_all(size.agents, &resources, now)
    }

    /// Places this many tasks on one offer of each agent, in turn. Returns what that wrote.
    pub(super) fn place(&mut self, size: Size, tasks: u64) -> Vec<Write> {
        let resources =
            [Resource::scalar("cpus", size.cores), Resource::scalar("mem", size.memory)];
        let task = |tag| Task::new(tag, MilliCpus::from_cores(1), Mebibytes::new(1));
        let tasks: Vec<Task> = (0..tasks).map(task).collect();
        let mut picks = Picks::new();
        self.answer(size.agents, &resources, |handler, offers, decisions| {
            let rooms = handler.propose(offers, NOW);
            Chooser::new().round_robin(rooms.list(), &tasks, &mut picks);
            rooms.commit(&picks, NOW, decisions);
        })
    }

    pub(super) fn offer_all(
        &mut self,
        agents: usize,
        resources: &[Resource<'_>],
        now: Timestamp,
    ) -> Vec<Write> {
        self.answer(agents, resources, |handler, offers, decisions| {
            handler.resource_offers(offers, now, decisions);
        })
    }

    /// Has `answer` answer one offer of each agent. Returns what that wrote.
    fn answer(
        &mut self,
        agents: usize,
        resources: &[Resource<'_>],
        answer: impl FnOnce(&mut Handler, &[Offer<'_>], &mut Decisions),
    ) -> Vec<Write> {
        let names: Vec<String> = (0..agents).map(|agent| format!("S{agent}")).collect();
        let offers: Vec<Offer<'_>> =
            names.iter().map(|name| Offer::new(name, name, name, resources, &[])).collect();
        record_writes(|| answer(&mut self.handler, &offers, &mut self.decisions))
    }

    /// The executors that the last batch placed.
    pub(super) fn started(&self) -> Vec<ExecutorId> {
        let executors = self.decisions.accepts().flat_map(|accept| accept.executors);
        executors.map(|executor| executor.id).collect()
    }

    /// Answers offers that are accepted, and ends the executors, so that everything is allocated afterwards.
    pub(super) fn warm_up(&mut self, size: Size) {
        for _ in 0..2 {
            self.offer(size, NOW);
            self.end_started();
        }
    }

    /// The same with tasks.
    pub(super) fn warm_up_tasks(&mut self, size: Size, tasks: u64) {
        for _ in 0..2 {
            self.place(size, tasks);
            self.end_started();
        }
    }

    fn end_started(&self) {
        self.started().into_iter().for_each(|id| drop(self.update(id, TaskState::Finished)));
    }

    pub(super) fn update(&self, id: ExecutorId, state: TaskState) -> Vec<Write> {
        self.update_named(&self.kernel.executor_name(id).to_string(), state)
    }

    pub(super) fn update_named(&self, name: &str, state: TaskState) -> Vec<Write> {
        let update = StatusUpdate::new(name, state);
        record_writes(|| drop(self.kernel.status_update(&update, NOW)))
    }

    /// The same by an updater, which is dropped afterwards and then frees the cell.
    pub(super) fn update_by_updater(&self, id: ExecutorId, state: TaskState) -> Vec<Write> {
        let name = self.kernel.executor_name(id).to_string();
        let mut updater = self.kernel.updater();
        record_writes(|| drop(updater.status_update(&StatusUpdate::new(&name, state), NOW)))
    }

    /// Reports an update of all executors that the last batch placed, together.
    pub(super) fn update_all(&self, state: TaskState) -> Vec<Write> {
        let name = |id| self.kernel.executor_name(id).to_string();
        let names: Vec<String> = self.started().into_iter().map(name).collect();
        let updates: Vec<StatusUpdate<'_>> =
            names.iter().map(|name| StatusUpdate::new(name, state)).collect();
        let mut outcomes = Vec::new();
        record_writes(|| self.kernel.status_updates(&updates, NOW, &mut outcomes))
    }

    pub(super) fn count(&self, writes: &[Write]) -> Counts {
        WordAddresses::of(&self.kernel, &[&self.handler]).count(writes)
    }
}

/// The sum of what each of several things wrote.
pub(super) fn all(writes: impl IntoIterator<Item = Vec<Write>>) -> Vec<Write> {
    writes.into_iter().flatten().collect()
}

/// A number of writes, each to a line of its own unless `lines` says otherwise.
fn put(counts: &mut Counts, word: SharedWord, writes: u64, lines: u64) {
    if writes > 0 {
        counts.insert(word, Count { writes, lines });
    }
}

/// The numbers that the benchmark's model uses, as counts.
pub(super) fn expected(writes: Writes) -> Counts {
    let mut counts = Counts::new();
    put(&mut counts, SharedWord::Admission, writes.admission, 1);
    put(&mut counts, SharedWord::Released, writes.released, 1);
    put(&mut counts, SharedWord::Sequence, writes.sequence, 1);
    put(&mut counts, SharedWord::Stack, writes.stack, 1);
    put(&mut counts, SharedWord::Agent, writes.agents, writes.agents);
    put(&mut counts, SharedWord::EndedCounts, writes.ended, 1);
    put(&mut counts, SharedWord::Executor, writes.words, writes.executors);
    put(&mut counts, SharedWord::Hints, writes.hints, 1);
    put(&mut counts, SharedWord::Links, writes.links, 1);
    put(&mut counts, SharedWord::Own(0), writes.own, 1);
    counts
}

/// Those counts, and some more.
pub(super) fn and(mut counts: Counts, more: &[(SharedWord, u64, u64)]) -> Counts {
    for (word, writes, lines) in more {
        let count = counts.entry(*word).or_default();
        count.writes += writes;
        count.lines += lines;
    }
    counts
}

pub(super) fn after(seconds: u64) -> Timestamp {
    NOW.plus(Duration::from_secs(seconds))
}
