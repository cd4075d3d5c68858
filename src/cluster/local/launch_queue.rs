//! The queue of accepted launches whose starts have not begun.

use std::collections::{BTreeMap, HashMap};

use super::message::LaunchRequest;

/// A launch whose resources are reserved on an agent.
#[derive(Debug)]
pub(super) struct QueuedLaunch {
    pub(super) request: LaunchRequest,
    pub(super) agent: usize,
    pub(super) agent_id: String,
}

/// Launches in the order in which they were accepted, one per executor at most.
#[derive(Debug, Default)]
pub(super) struct LaunchQueue {
    queued: BTreeMap<u64, QueuedLaunch>,
    numbers: HashMap<String, u64>,
    next_number: u64,
}

impl LaunchQueue {
    pub(super) fn push(&mut self, launch: QueuedLaunch) {
        self.numbers.insert(launch.request.executor.clone(), self.next_number);
        self.queued.insert(self.next_number, launch);
        self.next_number += 1;
    }

    pub(super) fn pop(&mut self) -> Option<QueuedLaunch> {
        let (_, first) = self.queued.pop_first()?;
        self.numbers.remove(&first.request.executor);
        Some(first)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }

    pub(super) fn get(&self, executor: &str) -> Option<&QueuedLaunch> {
        self.queued.get(self.numbers.get(executor)?)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &QueuedLaunch> {
        self.queued.values()
    }

    pub(super) fn remove(&mut self, executor: &str) -> Option<QueuedLaunch> {
        self.queued.remove(&self.numbers.remove(executor)?)
    }

    /// Removes the launches on an agent, and returns the ids of their executors.
    pub(super) fn remove_agent(&mut self, agent_id: &str) -> Vec<String> {
        let of_agent = self.iter().filter(|it| it.agent_id == agent_id);
        let ids: Vec<String> = of_agent.map(|it| it.request.executor.clone()).collect();
        ids.iter().for_each(|id| drop(self.remove(id)));
        ids
    }
}
