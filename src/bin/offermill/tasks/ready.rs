//! The tasks that are ready to start, by size, and the agents that were seen.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use offermill::choosers::EqualTasks;
use offermill::config::QueueId;
use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{QueuesLeft, ResourceSums, Room};

use crate::tasks::task::TaskSpec;

/// What a task takes. Tasks of one size have room together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskSize {
    pub(super) cores: MilliCpus,
    pub(super) memory: Mebibytes,
    pub(super) gpus: Gpus,
}

/// The queue and the size of tasks that are alike to a batch.
type TaskKind = (QueueId, TaskSize);

impl TaskSize {
    pub(crate) fn of(task: &TaskSpec) -> TaskSize {
        TaskSize { cores: task.cores, memory: task.memory, gpus: task.gpus }
    }

    /// As in `4 cores and 512 MiB`.
    pub(crate) fn sentence(&self) -> String {
        let TaskSize { cores, memory, gpus } = self;
        match *gpus {
            Gpus::ZERO => format!("{cores:#} and {memory}"),
            gpus => format!("{cores:#}, {memory} and {gpus:#}"),
        }
    }

    fn sums(&self) -> ResourceSums {
        let TaskSize { cores, memory, gpus } = *self;
        ResourceSums { cores, memory, gpus }
    }

    /// How many tasks of this size fit into what is left.
    fn fitting(&self, left: ResourceSums) -> u64 {
        self.sums().times_in(left)
    }
}

/// The tasks that are ready to start.
#[derive(Debug, Default)]
pub(super) struct ReadyTasks {
    /// The positions of tasks, by queue and size.
    by_kind: BTreeMap<TaskKind, BTreeSet<u32>>,
}

impl ReadyTasks {
    pub(super) fn is_empty(&self) -> bool {
        self.by_kind.is_empty()
    }

    pub(super) fn insert(&mut self, task: u32, queue: QueueId, size: TaskSize) {
        self.by_kind.entry((queue, size)).or_default().insert(task);
    }

    pub(super) fn remove(&mut self, task: u32, queue: QueueId, size: TaskSize) {
        let kind = (queue, size);
        if let Some(tasks) = self.by_kind.get_mut(&kind) {
            tasks.remove(&task);
            if tasks.is_empty() {
                self.by_kind.remove(&kind);
            }
        }
    }

    /// The first tasks, in their order, of each queue and size that fits: as many as have room if others get none.
    pub(super) fn first(&self, rooms: &[Room], queues: &QueuesLeft) -> Vec<u32> {
        let (mut first, fitting) = (Vec::new(), EqualTasks::new(rooms));
        for ((queue, size), tasks) in &self.by_kind {
            let wanted = size.fitting(queues.room(*queue)).min(tasks.len() as u64);
            let most = fitting.count(size.sums(), wanted);
            first.extend(tasks.iter().take(usize::try_from(most).unwrap_or(usize::MAX)));
        }
        first.sort_unstable();
        first
    }

    /// Whether any of them fits into a room.
    pub(super) fn have_one_for(&self, room: &Room) -> bool {
        self.by_kind.keys().any(|(_, size)| size.fitting(room.left()) > 0)
    }

    /// All of them, in their order.
    pub(super) fn all(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.by_kind.values().flatten().copied().collect();
        all.sort_unstable();
        all
    }

    /// Tasks of the sizes that fit on no agent, and the sizes.
    pub(super) fn too_large(&self, agents: &SeenAgents) -> Vec<(u32, TaskSize)> {
        let kinds = self.by_kind.iter().filter(|((_, size), _)| !agents.have_room(size));
        kinds.flat_map(|((_, size), tasks)| tasks.iter().map(|task| (*task, *size))).collect()
    }
}

/// The agents that have made offers, and what each has for this run.
#[derive(Debug, Default)]
pub(super) struct SeenAgents {
    agents: HashMap<String, SeenAgent>,
}

#[derive(Debug)]
struct SeenAgent {
    host: String,
    /// What tasks have there.
    held: ResourceSums,
    /// What is left of its last offer.
    left: ResourceSums,
    /// The most that it has offered.
    most: ResourceSums,
    /// It was reported lost, and has offered nothing since.
    is_lost: bool,
}

impl SeenAgent {
    /// Whether it may still be there: tasks on a lost agent may run, and it may come back with them.
    fn is_there(&self) -> bool {
        !self.is_lost || self.held != ResourceSums::NONE
    }

    /// Whether a task of this size fits: into the most that the agent has offered, or if no task were there.
    fn has_room(&self, size: &TaskSize) -> bool {
        size.fitting(self.most) > 0 || size.fitting(self.held.saturating_add(self.left)) > 0
    }
}

impl SeenAgents {
    pub(super) fn is_empty(&self) -> bool {
        self.there().next().is_none()
    }

    /// Records what an agent offers. Returns whether it is more than ever before.
    pub(super) fn offered(&mut self, agent_id: &str, host: &str, left: ResourceSums) -> bool {
        if !self.agents.contains_key(agent_id) {
            let (host, none) = (host.to_owned(), ResourceSums::NONE);
            let fresh = SeenAgent { host, held: none, left: none, most: none, is_lost: false };
            self.agents.insert(agent_id.to_owned(), fresh);
        }
        let Some(agent) = self.agents.get_mut(agent_id) else { return false };
        (agent.left, agent.is_lost) = (left, false);
        let most = agent.most.max_of_each(left);
        std::mem::replace(&mut agent.most, most) != most
    }

    /// An agent is lost. It isn't forgotten before the last task there has ended or was given up.
    pub(super) fn lost(&mut self, agent_id: &str) {
        if let Some(agent) = self.agents.get_mut(agent_id) {
            agent.is_lost = true;
        }
        self.agents.retain(|_, agent| agent.is_there());
    }

    /// Records that a task has taken this of an agent.
    pub(super) fn taken(&mut self, agent_id: &str, taken: ResourceSums) {
        if let Some(agent) = self.agents.get_mut(agent_id) {
            agent.held = agent.held.saturating_add(taken);
            agent.left = agent.left.saturating_sub(taken);
        }
    }

    /// Records that a task has freed this of an agent. The next offer has it.
    pub(super) fn freed(&mut self, agent_id: &str, freed: ResourceSums) {
        if let Some(agent) = self.agents.get_mut(agent_id) {
            agent.held = agent.held.saturating_sub(freed);
        }
    }

    fn there(&self) -> impl Iterator<Item = &SeenAgent> {
        self.agents.values().filter(|agent| agent.is_there())
    }

    /// Whether some agent is large enough.
    fn have_room(&self, size: &TaskSize) -> bool {
        self.there().any(|agent| agent.has_room(size))
    }

    /// What the agent that lacks the least has, as in `the nearest agent, host-1, has 4 cores, 8192 MiB`. `None` if no
    /// agent was seen.
    pub(super) fn nearest(&self, size: &TaskSize) -> Option<String> {
        let ratio = |have: u64, asked: u64| match asked {
            0 => 1.0,
            asked => (have as f64 / asked as f64).min(1.0),
        };
        let nearness = |agent: &SeenAgent| {
            let ResourceSums { cores, memory, gpus } = agent.most;
            ratio(cores.millis(), size.cores.millis())
                * ratio(memory.get(), size.memory.get())
                * ratio(gpus.get().into(), size.gpus.get().into())
        };
        // Of equal ones the first by name.
        let order = |a: &&SeenAgent, b: &&SeenAgent| {
            nearness(a).total_cmp(&nearness(b)).then(b.host.cmp(&a.host))
        };
        let nearest = self.there().max_by(order)?;
        let ResourceSums { cores, memory, gpus } = nearest.most;
        let gpus = if size.gpus > Gpus::ZERO { format!(", {gpus:#}") } else { String::new() };
        Some(format!("the nearest agent, {}, has {cores:#}, {memory}{gpus}", nearest.host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use offermill::config::Queue;
    use offermill::{Config, ConfigBuilder, IdScheme, Kernel};

    fn left(config: ConfigBuilder) -> QueuesLeft {
        Kernel::new(config.build().unwrap(), IdScheme::plain()).queues_left()
    }

    fn sums(cores: u64, memory: u64) -> ResourceSums {
        let (cores, memory) = (MilliCpus::from_cores(cores), Mebibytes::new(memory));
        ResourceSums { cores, memory, gpus: Gpus::ZERO }
    }

    fn size(cores: u64, memory: u64) -> TaskSize {
        let ResourceSums { cores, memory, gpus } = sums(cores, memory);
        TaskSize { cores, memory, gpus }
    }

    /// Goal: tasks are taken in their order, of each size as many as have room. Method: two sizes in turn, of which the
    /// larger fits in one room alone.
    #[test]
    fn the_first_of_each_size_are_taken() {
        let mut ready = ReadyTasks::default();
        let queue = QueueId::DEFAULT;
        for task in 0..10 {
            ready.insert(task, queue, if task % 2 == 0 { size(3, 10) } else { size(1, 10) });
        }
        let left = left(Config::builder());
        let rooms = [Room::new(0, sums(2, 100), 9), Room::new(1, sums(3, 100), 9)];
        assert_eq!(ready.first(&rooms, &left), [0, 1, 3, 5, 7, 9]);
        let one = [Room::new(0, sums(2, 100), 1)];
        assert_eq!(ready.first(&one, &left), [1]);
        ready.remove(1, queue, size(1, 10));
        assert_eq!(ready.first(&one, &left), [3]);
    }

    /// Goal: tasks of a full queue don't stand before those of another one. Method: two of a queue with room for one,
    /// then two without bounds, all of one size, and room for three.
    #[test]
    fn full_queues_hold_up_no_other() {
        let queue = Queue::new("q").max_cores(Some(MilliCpus::from_cores(1)));
        let queues = [QueueId::new(1), QueueId::new(1), QueueId::DEFAULT, QueueId::DEFAULT];
        let mut ready = ReadyTasks::default();
        (0..).zip(queues).for_each(|(task, queue)| ready.insert(task, queue, size(1, 10)));
        let rooms = [Room::new(0, sums(3, 100), 9)];
        assert_eq!(ready.first(&rooms, &left(Config::builder().queue(queue))), [0, 2, 3]);
    }

    /// Goal: a task is too large only if it fits on no agent, even without the tasks there. Method: two agents, one of
    /// which never offers all that it has.
    #[test]
    fn tasks_that_fit_nowhere_are_known() {
        let (mut ready, mut agents) = (ReadyTasks::default(), SeenAgents::default());
        assert!(agents.offered("S1", "h1", sums(2, 100)));
        assert!(!agents.offered("S1", "h1", sums(1, 100)));
        agents.offered("S2", "h2", sums(2, 500));
        agents.taken("S2", sums(2, 100));
        agents.offered("S2", "h2", sums(2, 400));
        for (task, size) in [size(2, 100), size(4, 500), size(5, 1)].into_iter().enumerate() {
            ready.insert(task as u32, QueueId::DEFAULT, size);
        }
        let too_large: Vec<u32> = ready.too_large(&agents).iter().map(|(task, _)| *task).collect();
        assert_eq!(too_large, [2]);
        let nearest = agents.nearest(&size(5, 1)).unwrap();
        assert_eq!(nearest, "the nearest agent, h1, has 2 cores, 100 MiB");
    }
}
