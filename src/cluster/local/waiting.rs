//! Orders that were accepted, until their executors are started.

use std::collections::{BTreeMap, HashMap};

use super::message::Order;

/// An order whose room is held on an agent.
#[derive(Debug)]
pub(super) struct QueuedLaunch {
    pub(super) order: Order,
    pub(super) seat: usize,
    pub(super) agent_id: String,
}

/// Orders in the order of their acceptance; no two are of the same executor.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: BTreeMap<u64, QueuedLaunch>,
    numbers: HashMap<String, u64>,
    numbered: u64,
}

impl Queue {
    pub(super) fn push(&mut self, waiting: QueuedLaunch) {
        self.numbers.insert(waiting.order.executor.clone(), self.numbered);
        self.waiting.insert(self.numbered, waiting);
        self.numbered += 1;
    }

    pub(super) fn pop(&mut self) -> Option<QueuedLaunch> {
        let (_, first) = self.waiting.pop_first()?;
        self.numbers.remove(&first.order.executor);
        Some(first)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn get(&self, executor: &str) -> Option<&QueuedLaunch> {
        self.waiting.get(self.numbers.get(executor)?)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &QueuedLaunch> {
        self.waiting.values()
    }

    pub(super) fn remove(&mut self, executor: &str) -> Option<QueuedLaunch> {
        self.waiting.remove(&self.numbers.remove(executor)?)
    }

    /// Takes out what waits for an agent; these are the executors' ids.
    pub(super) fn remove_of(&mut self, agent_id: &str) -> Vec<String> {
        let of_agent = self.iter().filter(|it| it.agent_id == agent_id);
        let ids: Vec<String> = of_agent.map(|it| it.order.executor.clone()).collect();
        ids.iter().for_each(|id| drop(self.remove(id)));
        ids
    }
}
