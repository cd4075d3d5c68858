//! What the master answers when it is asked about an executor.

use super::{Cluster, View};
use crate::cluster::simulated::agenda::Agenda;
use crate::cluster::simulated::wire::{AgentRef, MasterEvent, masters_update};
use crate::status::{TaskState, UpdateReason};

/// A new master waits so long for the agents that the old one knew (`--agent_reregister_timeout`).
const REREGISTER_TIMEOUT: u64 = 600_000;

impl Cluster {
    /// Answers, or says nothing while it can't know.
    pub(super) fn reconcile(&mut self, agenda: &mut Agenda, executor: &str, agent: AgentRef) {
        let Some(state) = self.state_of(agenda.now, executor, agent) else { return };
        let update = masters_update(executor, agent, state, UpdateReason::Reconciliation);
        self.network.tell(agenda, MasterEvent::Update(update));
    }

    /// Tells of all executors that this master knows to be in reach.
    pub(super) fn tell_all(&mut self, agenda: &mut Agenda) {
        for task in &self.tasks {
            let machine = self.machine_of(task.agent);
            let active = machine.is_some_and(|it| it.view == View::Active);
            if task.alive() && task.visible && active {
                let reason = UpdateReason::Reconciliation;
                let update = masters_update(&task.name, task.agent, task.known, reason);
                self.network.tell(agenda, MasterEvent::Update(update));
            }
        }
    }

    /// Whether this master has waited long enough for agents that an earlier one knew.
    pub(super) fn waited_for_all(&self, now: u64) -> bool {
        self.masters == 0 || now >= self.leads_since + REREGISTER_TIMEOUT
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
            // A former id: gone from the master's list, and unreachable by its registry.
            return self.waited_for_all(now).then_some(TaskState::Unreachable);
        }
        match (machine.view, task) {
            (View::Absent, _) if !self.waited_for_all(now) => None,
            (View::Absent, _) => Some(TaskState::Unreachable),
            (View::Unreachable, _) => Some(TaskState::Unreachable),
            (View::Active | View::Disconnected, Some(task)) => Some(task.known),
            (View::Active | View::Disconnected, None) => Some(TaskState::Gone),
        }
    }
}
