//! The tasks that are ready to start, by size, and the agents that were seen.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{ResourceSums, Room};

use crate::tasks::task::TaskSpec;

/// What a task takes. Tasks of one size have room together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskSize {
    pub(super) cores: MilliCpus,
    pub(super) memory: Mebibytes,
    pub(super) gpus: Gpus,
}

impl TaskSize {
    pub(crate) fn of(task: &TaskSpec) -> TaskSize {
        TaskSize { cores: task.cores, memory: task.memory, gpus: task.gpus }
    }

    /// As in `4 cores and 512 MiB`.
    pub(crate) fn sentence(&self) -> String {
        let TaskSize { cores, memory, gpus } = self;
        match gpus.get() {
            0 => format!("{cores} cores and {memory}"),
            gpus => format!("{cores} cores, {memory} and {gpus} GPUs"),
        }
    }

    /// How many tasks of this size fit into what is left.
    fn fitting(&self, left: ResourceSums) -> u64 {
        let by = |left: u64, taken: u64| left.checked_div(taken).unwrap_or(u64::MAX);
        by(left.cores.millis(), self.cores.millis())
            .min(by(left.memory.get(), self.memory.get()))
            .min(by(left.gpus.get().into(), self.gpus.get().into()))
    }
}

/// The tasks that are ready to start.
#[derive(Debug, Default)]
pub(super) struct ReadyTasks {
    /// The positions of tasks, by size.
    by_size: BTreeMap<TaskSize, BTreeSet<u32>>,
}

impl ReadyTasks {
    pub(super) fn is_empty(&self) -> bool {
        self.by_size.is_empty()
    }

    pub(super) fn insert(&mut self, task: u32, size: TaskSize) {
        self.by_size.entry(size).or_default().insert(task);
    }

    pub(super) fn remove(&mut self, task: u32, size: TaskSize) {
        if let Some(tasks) = self.by_size.get_mut(&size) {
            tasks.remove(&task);
            if tasks.is_empty() {
                self.by_size.remove(&size);
            }
        }
    }

    /// The first tasks, in their order, of each size that fits: as many as have room if those of other sizes get none.
    pub(super) fn first(&self, rooms: &[Room]) -> Vec<u32> {
        let mut first = Vec::new();
        for (size, tasks) in &self.by_size {
            let fitting = |room: &Room| size.fitting(room.left()).min(room.tasks().into());
            let most: u64 = rooms.iter().map(fitting).fold(0, u64::saturating_add);
            first.extend(tasks.iter().take(usize::try_from(most).unwrap_or(usize::MAX)));
        }
        first.sort_unstable();
        first
    }

    /// Tasks of the sizes that fit on no agent, and the sizes.
    pub(super) fn too_large(&self, agents: &SeenAgents) -> Vec<(u32, TaskSize)> {
        let sizes = self.by_size.iter().filter(|(size, _)| !agents.have_room(size));
        sizes.flat_map(|(size, tasks)| tasks.iter().map(|task| (*task, *size))).collect()
    }
}

/// The agents that have made offers: for each, the most that it has had for this run at a time.
#[derive(Debug, Default)]
pub(super) struct SeenAgents {
    agents: HashMap<String, SeenAgent>,
}

#[derive(Debug)]
struct SeenAgent {
    host: String,
    /// What tasks have there.
    held: ResourceSums,
    most: ResourceSums,
}

impl SeenAgents {
    /// Records what an agent offers. Returns whether it is more than ever before.
    pub(super) fn offered(&mut self, agent_id: &str, host: &str, left: ResourceSums) -> bool {
        let fresh = || SeenAgent {
            host: host.to_owned(),
            held: ResourceSums::NONE,
            most: ResourceSums::NONE,
        };
        if !self.agents.contains_key(agent_id) {
            self.agents.insert(agent_id.to_owned(), fresh());
        }
        let Some(agent) = self.agents.get_mut(agent_id) else { return false };
        let most = agent.most.max_of_each(agent.held.saturating_add(left));
        std::mem::replace(&mut agent.most, most) != most
    }

    /// Records that a task has taken this of an agent.
    pub(super) fn taken(&mut self, agent_id: &str, taken: ResourceSums) {
        if let Some(agent) = self.agents.get_mut(agent_id) {
            agent.held = agent.held.saturating_add(taken);
        }
    }

    /// Records that a task has freed this of an agent.
    pub(super) fn freed(&mut self, agent_id: &str, freed: ResourceSums) {
        if let Some(agent) = self.agents.get_mut(agent_id) {
            agent.held = agent.held.saturating_sub(freed);
        }
    }

    /// Whether some agent is large enough.
    fn have_room(&self, size: &TaskSize) -> bool {
        self.agents.values().any(|agent| size.fitting(agent.most) > 0)
    }

    /// What the agent that lacks the least has, as in `host-1 has at most 4 cores and 8192 MiB`; `None` if no agent was
    /// seen.
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
        let agents = self.agents.values();
        let nearest =
            agents.max_by(|a, b| nearness(a).total_cmp(&nearness(b)).then(b.host.cmp(&a.host)))?;
        let ResourceSums { cores, memory, gpus } = nearest.most;
        let gpus = if size.gpus > Gpus::ZERO { format!(", {gpus} GPUs") } else { String::new() };
        Some(format!("the nearest agent, {}, has {cores} cores, {memory}{gpus}", nearest.host))
    }
}
