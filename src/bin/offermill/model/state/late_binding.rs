//! Executors whose agents the cluster chooses after they were placed, and what it says until they start.

use std::collections::BTreeMap;

use offermill::TaskState;

use super::RunState;
use crate::model::end_cause::EndCause;
use crate::model::executor::{ExecutorRecord, ExecutorState};
use crate::model::target::OnExit;
use crate::model::waiting::{PlacementProgress, StartDelays};

impl RunState {
    /// How far the run has come; `placed` is the number of executors that the kernel has placed.
    pub(crate) fn progress(&self, placed: u64) -> PlacementProgress {
        // A cluster that leaves executors behind chooses agents late.
        let placed = if self.on_exit == OnExit::Left { self.bound } else { placed };
        PlacementProgress {
            placed,
            alive: self.alive(),
            unconnected: self.why_unconnected(),
            delays: StartDelays { unstarted: self.unstarted(), denied: self.denied.clone() },
        }
    }

    /// What executors wait for that have been placed and don't run yet: each reason with their number.
    fn unstarted(&self) -> Vec<(String, u64)> {
        if self.on_exit != OnExit::Left || self.count(ExecutorState::Starting) == 0 {
            return Vec::new();
        }
        let mut numbers: BTreeMap<&str, u64> = BTreeMap::new();
        let is_waiting = |record: &&ExecutorRecord| {
            record.state == ExecutorState::Starting && !record.message.is_empty()
        };
        for record in self.by_name.values().filter_map(|number| self.records.get(number)) {
            if is_waiting(&record) {
                *numbers.entry(&record.message).or_default() += 1;
            }
        }
        let mut sorted: Vec<(String, u64)> =
            numbers.into_iter().map(|(why, number)| (why.to_owned(), number)).collect();
        sorted.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
        sorted
    }

    /// Records the agent of an executor. `None` if the executor is unknown or has ended.
    pub(super) fn bind(
        &mut self,
        executor: &str,
        agent_id: String,
        hostname: String,
    ) -> Option<ExecutorRecord> {
        let number = *self.by_name.get(executor)?;
        let record = self.records.get_mut(&number).filter(|record| record.agent_id.is_empty())?;
        record.host = if hostname.is_empty() { agent_id.clone() } else { hostname };
        record.address = Some(record.host.clone());
        record.agent_id = agent_id;
        // It said why it had no agent.
        record.message.clear();
        let copy = record.clone();
        self.bound += 1;
        self.count_on_agent(&copy.agent_id, &copy.host, copy.state, self.kind_of(&copy));
        Some(copy)
    }

    /// Records what an executor waits for before it starts; empty if it waits no more.
    pub(super) fn record_delay(&mut self, executor: &str, why: String) {
        let number = self.by_name.get(executor);
        let record = number.and_then(|number| self.records.get_mut(number));
        if let Some(record) = record.filter(|record| record.state == ExecutorState::Starting) {
            record.message = why;
        }
    }

    /// Records why an executor wasn't taken at all, and that another one runs.
    pub(super) fn record_denial(&mut self, state: TaskState, message: &str) {
        match state {
            TaskState::Dropped if self.on_exit == OnExit::Left => {
                self.denied = Some(message.to_owned());
            }
            TaskState::Running => self.denied = None,
            _ => {}
        }
    }

    /// Forgets an executor that has just ended, if the cluster hasn't taken it: for as long as a quota is full, there
    /// is one after another of them, and nothing ran. It is counted, and its replacement is that of the one before it.
    pub(super) fn forget_denied(&mut self, ended: &ExecutorRecord) {
        let is_denied = self.on_exit == OnExit::Left
            && ended.agent_id.is_empty()
            && ended.cause == Some(EndCause::Dropped);
        if !is_denied {
            return;
        }
        // It is the last that has ended.
        let Some(number) = self.ended.pop_back() else { return };
        self.records.remove(&number);
        self.unreplaced.retain(|unreplaced| *unreplaced != number);
        self.counts[ended.state as usize] -= 1;
        self.denials += 1;
        let is_former = |former: &ExecutorRecord| former.replaced_by.as_ref() == Some(&ended.name);
        if let Some((former, record)) = self.records.iter_mut().find(|(_, it)| is_former(it)) {
            record.replaced_by = None;
            self.unreplaced.push_front(*former);
            self.counted_before += 1;
        }
    }
}
