//! What answers in Spark's way show and the kernel has no need to know.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use offermill::Offer;

use crate::scenario::answer::AgentLine;
use crate::scenario::{Accept, Task};

/// Tasks and agents, for showing.
#[derive(Debug, Default)]
pub(super) struct Books {
    agents: BTreeMap<String, Agent>,
    live: HashMap<String, Live>,
    /// How many tasks there ever were.
    pub(super) placed: u64,
    /// The GPUs of those that live.
    pub(super) gpus: u64,
}

#[derive(Debug, Default)]
struct Agent {
    host: String,
    failures: u64,
    /// By length first: numbers in their order.
    tasks: BTreeSet<(usize, String)>,
    has_shuffle: bool,
}

#[derive(Debug)]
struct Live {
    agent: String,
    gpus: u64,
}

impl Books {
    /// Tasks are started.
    pub(super) fn place(&mut self, accept: &Accept, offer: &Offer<'_>) {
        for Task { id, agent, gpus, .. } in &accept.tasks {
            // Whole ones only are given.
            let gpus = *gpus as u64;
            let on = self.agents.entry(agent.clone()).or_default();
            if on.host.is_empty() {
                on.host = offer.hostname.to_owned();
            }
            on.tasks.insert((id.len(), id.clone()));
            self.live.insert(id.clone(), Live { agent: agent.clone(), gpus });
            self.placed += 1;
            self.gpus += gpus;
        }
    }

    /// A task has ended.
    pub(super) fn end(&mut self, task: &str, is_failure: bool) {
        let Some(Live { agent, gpus }) = self.live.remove(task) else { return };
        self.gpus = self.gpus.saturating_sub(gpus);
        if let Some(agent) = self.agents.get_mut(&agent) {
            agent.tasks.remove(&(task.len(), task.to_owned()));
            agent.failures += u64::from(is_failure);
        }
    }

    /// How many tasks live.
    pub(super) fn live(&self) -> u64 {
        self.live.len() as u64
    }

    /// The host of a live task's agent, if its shuffle service isn't known yet. It is from now on.
    pub(super) fn new_shuffle_host(&mut self, task: &str) -> Option<String> {
        let agent = self.agents.get_mut(&self.live.get(task)?.agent)?;
        let is_new = !std::mem::replace(&mut agent.has_shuffle, true);
        is_new.then(|| agent.host.clone())
    }

    /// All agents that ever had a task.
    pub(super) fn lines(&self) -> BTreeMap<String, AgentLine> {
        let line = |agent: &Agent| AgentLine {
            failures: agent.failures,
            tasks: agent.tasks.iter().map(|(_, task)| task.clone()).collect(),
            shuffle: agent.has_shuffle.then_some(true),
        };
        self.agents.iter().map(|(id, agent)| (id.clone(), line(agent))).collect()
    }
}
