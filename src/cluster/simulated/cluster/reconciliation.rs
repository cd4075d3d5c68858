//! Reconciliation: the state that the master reports of an executor.

use super::{Cluster, MasterView};
use crate::cluster::simulated::event_queue::EventQueue;
use crate::cluster::simulated::wire::{AgentRef, MasterEvent, master_update};
use crate::status::{TaskState, UpdateReason};

/// How long a new master waits for the agents that the old one knew, in milliseconds (`--agent_reregister_timeout`).
const REREGISTER_TIMEOUT_MS: u64 = 600_000;

impl Cluster {
    /// Reports an executor's state, or nothing while the master can't know it.
    pub(super) fn reconcile(&mut self, events: &mut EventQueue, executor: &str, agent: AgentRef) {
        let Some(state) = self.state_of(events.now, executor, agent) else { return };
        let update = master_update(executor, agent, state, UpdateReason::Reconciliation);
        let task = self.names.get(executor).map(|cell| &self.tasks[*cell as usize]);
        let update = match task.filter(|task| task.agent == agent) {
            Some(task) => task.describe(self.zone_told(agent), update),
            None => update,
        };
        self.network.send_event(events, MasterEvent::Update(update));
    }

    /// Reports the states of all executors on active agents.
    pub(super) fn reconcile_all(&mut self, events: &mut EventQueue) {
        for task in &self.tasks {
            let machine = self.machine_of(task.agent);
            let active = machine.is_some_and(|it| it.view == MasterView::Active);
            if task.alive() && task.visible && active {
                let reason = UpdateReason::Reconciliation;
                let update = master_update(&task.name, task.agent, task.known, reason);
                let update = task.describe(self.zone_told(task.agent), update);
                self.network.send_event(events, MasterEvent::Update(update));
            }
        }
    }

    /// Whether an agent has not registered with this master.
    pub(super) fn is_any_absent(&self) -> bool {
        self.machines.iter().any(|machine| machine.view == MasterView::Absent)
    }

    /// Whether this master has waited long enough for agents that an earlier one knew.
    pub(super) fn waited_for_all(&self, now: u64) -> bool {
        self.masters == 0 || now >= self.leads_since + REREGISTER_TIMEOUT_MS
    }

    fn state_of(&self, now: u64, executor: &str, agent: AgentRef) -> Option<TaskState> {
        let Some(machine) = self.machines.get(agent.machine as usize) else {
            return Some(TaskState::Unknown);
        };
        if agent.incarnation > machine.incarnation {
            return Some(TaskState::Unknown);
        }
        let task = self.names.get(executor).map(|cell| &self.tasks[*cell as usize]);
        let task = task.filter(|task| task.visible && task.agent == agent);
        if agent.incarnation < machine.incarnation {
            // A former id: not in the master's list, and unreachable in its registry.
            return self.waited_for_all(now).then_some(TaskState::Unreachable);
        }
        match (machine.view, task) {
            (MasterView::Absent, _) if !self.waited_for_all(now) => None,
            (MasterView::Absent, _) => Some(TaskState::Unreachable),
            (MasterView::Unreachable, _) => Some(TaskState::Unreachable),
            (MasterView::Active | MasterView::Disconnected, Some(task)) => Some(task.known),
            (MasterView::Active | MasterView::Disconnected, None) => Some(TaskState::Gone),
        }
    }
}
