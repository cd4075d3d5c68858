//! The tasks that are ready to start, and the agents that were seen.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use offermill::choosers::WaitingTasks;
use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{ResourceSums, Task};

/// What a task takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskSize {
    pub(super) cores: MilliCpus,
    pub(super) memory: Mebibytes,
    pub(super) gpus: Gpus,
}

impl TaskSize {
    pub(crate) fn of(taken: ResourceSums) -> TaskSize {
        let ResourceSums { cores, memory, gpus } = taken;
        TaskSize { cores, memory, gpus }
    }

    fn of_task(task: &Task) -> TaskSize {
        let Task { cores, memory, gpus, .. } = *task;
        TaskSize { cores, memory, gpus }
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

/// The tasks that are ready to start, in the order of their positions.
#[derive(Debug, Default)]
pub(super) struct ReadyTasks {
    waiting: WaitingTasks,
    /// How many there are of each size.
    sizes: BTreeMap<TaskSize, u32>,
}

impl ReadyTasks {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a task, whose tag is its position, if it isn't there.
    pub(super) fn insert(&mut self, task: &Task) {
        if self.waiting.insert(task.tag, task) {
            *self.sizes.entry(TaskSize::of_task(task)).or_default() += 1;
        }
    }

    /// Removes a task, if it is there.
    pub(super) fn remove(&mut self, task: &Task) {
        if !self.waiting.remove(task.tag, task) {
            return;
        }
        if let Entry::Occupied(mut count) = self.sizes.entry(TaskSize::of_task(task)) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// The tasks for a chooser.
    pub(super) fn waiting(&self) -> &WaitingTasks {
        &self.waiting
    }

    /// The positions of all, in their order.
    pub(super) fn all(&self) -> Vec<u32> {
        self.waiting.all().iter().map(|task| task.tag as u32).collect()
    }

    /// The tasks that fit on no agent, and their sizes. O(sizes × agents), and O(tasks) if there are such.
    pub(super) fn too_large(&self, agents: &SeenAgents) -> Vec<(u32, TaskSize)> {
        let sizes = self.sizes.keys().filter(|size| !agents.have_room(size));
        let sizes: BTreeSet<TaskSize> = sizes.copied().collect();
        if sizes.is_empty() {
            return Vec::new();
        }
        let all =
            self.waiting.all().into_iter().map(|task| (task.tag as u32, TaskSize::of_task(&task)));
        all.filter(|(_, size)| sizes.contains(size)).collect()
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

    fn sums(cores: u64, memory: u64) -> ResourceSums {
        let (cores, memory) = (MilliCpus::from_cores(cores), Mebibytes::new(memory));
        ResourceSums { cores, memory, gpus: Gpus::ZERO }
    }

    fn size(cores: u64, memory: u64) -> TaskSize {
        let ResourceSums { cores, memory, gpus } = sums(cores, memory);
        TaskSize { cores, memory, gpus }
    }

    /// Goal: a task is too large only if it fits on no agent, even without the tasks there. Method: two agents, one of
    /// which never offers all that it has; tasks that are added and removed twice.
    #[test]
    fn tasks_that_fit_nowhere_are_known() {
        let (mut ready, mut agents) = (ReadyTasks::default(), SeenAgents::default());
        assert!(agents.offered("S1", "h1", sums(2, 100)));
        assert!(!agents.offered("S1", "h1", sums(1, 100)));
        agents.offered("S2", "h2", sums(2, 500));
        agents.taken("S2", sums(2, 100));
        agents.offered("S2", "h2", sums(2, 400));
        let task = |at, sums: ResourceSums| Task::new(at, sums.cores, sums.memory);
        let tasks = [sums(2, 100), sums(4, 500), sums(5, 1), sums(5, 1)];
        let tasks: Vec<Task> = (0..).zip(tasks).map(|(at, sums)| task(at, sums)).collect();
        // None is counted twice.
        tasks.iter().chain(&tasks).for_each(|task| ready.insert(task));
        assert_eq!(ready.too_large(&agents), [(2, size(5, 1)), (3, size(5, 1))]);
        (0..2).for_each(|_| ready.remove(&tasks[2]));
        assert_eq!(ready.too_large(&agents), [(3, size(5, 1))]);
        ready.remove(&tasks[3]);
        assert_eq!(ready.too_large(&agents), []);
        assert_eq!(ready.all(), [0, 1]);
        let nearest = agents.nearest(&size(5, 1)).unwrap();
        assert_eq!(nearest, "the nearest agent, h1, has 2 cores, 100 MiB");
    }
}
