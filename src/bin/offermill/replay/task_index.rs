//! The tasks of each agent with their failures, which Spark's answers contain and the kernel doesn't track.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use offermill::Offer;

use crate::scenario::answer::AgentLine;
use crate::scenario::{AcceptLine, TaskLine};

/// The live tasks, by task and by agent.
#[derive(Debug, Default)]
pub(super) struct TaskIndex {
    agents: BTreeMap<String, AgentTasks>,
    live: HashMap<String, LiveTask>,
    /// The number of tasks that were ever launched.
    pub(super) launched: u64,
    /// The GPUs of all live tasks.
    pub(super) gpus: u64,
}

#[derive(Debug, Default)]
struct AgentTasks {
    host: String,
    failures: u64,
    /// The ids with their lengths, which come first so that numbers are in numeric order.
    tasks: BTreeSet<(usize, String)>,
    has_shuffle: bool,
}

#[derive(Debug)]
struct LiveTask {
    agent: String,
    gpus: u64,
}

impl TaskIndex {
    /// Adds the tasks of an acceptance.
    pub(super) fn insert(&mut self, accept: &AcceptLine, offer: &Offer<'_>) {
        for TaskLine { id, agent, gpus, .. } in &accept.tasks {
            // GPUs are always whole.
            let gpus = *gpus as u64;
            let entry = self.agents.entry(agent.clone()).or_default();
            if entry.host.is_empty() {
                entry.host = offer.hostname.to_owned();
            }
            entry.tasks.insert((id.len(), id.clone()));
            self.live.insert(id.clone(), LiveTask { agent: agent.clone(), gpus });
            self.launched += 1;
            self.gpus += gpus;
        }
    }

    /// Removes a task that ended.
    pub(super) fn remove(&mut self, task: &str, is_failure: bool) {
        let Some(LiveTask { agent, gpus }) = self.live.remove(task) else { return };
        self.gpus = self.gpus.saturating_sub(gpus);
        if let Some(agent) = self.agents.get_mut(&agent) {
            agent.tasks.remove(&(task.len(), task.to_owned()));
            agent.failures += u64::from(is_failure);
        }
    }

    /// Returns the number of live tasks.
    pub(super) fn live_count(&self) -> u64 {
        self.live.len() as u64
    }

    /// Returns the host of a live task's agent on the first call for that agent, and `None` from then on.
    pub(super) fn claim_shuffle_host(&mut self, task: &str) -> Option<String> {
        let agent = self.agents.get_mut(&self.live.get(task)?.agent)?;
        let is_new = !std::mem::replace(&mut agent.has_shuffle, true);
        is_new.then(|| agent.host.clone())
    }

    /// Returns the lines of all agents that ever had a task.
    pub(super) fn lines(&self) -> BTreeMap<String, AgentLine> {
        let line = |agent: &AgentTasks| AgentLine {
            failures: agent.failures,
            tasks: agent.tasks.iter().map(|(_, task)| task.clone()).collect(),
            shuffle: agent.has_shuffle.then_some(true),
            executor: None,
        };
        self.agents.iter().map(|(id, agent)| (id.clone(), line(agent))).collect()
    }
}
