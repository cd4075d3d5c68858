//! Reports of what executors are, when the framework asks.

use super::actor::Actor;
use super::launch_queue::QueuedLaunch;
use super::message::{AgentShare, ReconcileRequest};
use crate::cluster::process::{RunningExecutor, StartingExecutor};
use crate::status::{TaskState, UpdateReason};

impl Actor {
    /// Reports the state of the requested executors, or of all if none is named.
    pub(super) fn reconcile(&mut self, requests: &[ReconcileRequest]) {
        if requests.is_empty() {
            self.running.iter().for_each(|executor| self.report_running(executor));
            self.starting.iter().for_each(|executor| self.report_starting(executor));
            self.queue.iter().for_each(|launch| self.report_queued(launch));
            self.report_hosted();
            return;
        }
        for ReconcileRequest { executor: id, agent_id } in requests {
            if let Some(executor) = self.starting.get(id) {
                self.report_starting(executor);
            } else if let Some(executor) = self.running.get(id) {
                self.report_running(executor);
            } else if let Some(launch) = self.queue.get(id) {
                self.report_queued(launch);
            } else if let Some((agent_id, state)) = self.hosted_state(id) {
                self.report_state(id, agent_id, state);
            } else {
                self.report_gone(id, Some(agent_id), UpdateReason::Reconciliation);
            }
        }
    }

    fn report_running(&self, executor: &RunningExecutor<AgentShare>) {
        self.report_state(&executor.id, &executor.record.agent_id, executor.state());
    }

    fn report_starting(&self, executor: &StartingExecutor<AgentShare>) {
        let state = match executor.force_at {
            Some(_) => TaskState::Killing,
            None => TaskState::Starting,
        };
        self.report_state(&executor.id, &executor.record.agent_id, state);
    }

    fn report_queued(&self, launch: &QueuedLaunch) {
        self.report_state(&launch.request.executor, &launch.agent_id, TaskState::Staging);
    }

    fn report_state(&self, executor: &str, agent_id: &str, state: TaskState) {
        let reason = UpdateReason::Reconciliation;
        self.reporter.cluster_update(executor, Some(agent_id), state, reason, "");
    }

    /// Reports that an executor doesn't run. Other clusters can only report such an executor as unknown; this one
    /// starts all processes itself, so an executor without a process is gone.
    pub(super) fn report_gone(&self, executor: &str, agent_id: Option<&str>, reason: UpdateReason) {
        let message = "no such executor is running";
        self.reporter.cluster_update(executor, agent_id, TaskState::Gone, reason, message);
    }
}
