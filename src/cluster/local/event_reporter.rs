//! Sends events to the engine: status updates of executors, with or without an acknowledgement token.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::engine::cluster_manager::{Event, EventSink, Update};
use crate::status::{ProcessReport, TaskState, UpdateReason};

/// Sends events. As in Mesos, updates of executors have an acknowledgement token, and updates of the cluster itself
/// don't. No update is sent twice, because events can't get lost inside one process.
pub(super) struct EventReporter {
    events: EventSink,
    started_nanos: u64,
    updates_sent: u64,
}

impl EventReporter {
    pub(super) fn new(events: EventSink) -> EventReporter {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_nanos = u64::try_from(started.as_nanos()).unwrap_or(u64::MAX);
        EventReporter { events, started_nanos, updates_sent: 0 }
    }

    pub(super) fn send(&self, event: Event) {
        self.events.send(event);
    }

    /// Sends an update of an executor, with an acknowledgement token.
    pub(super) fn executor_update(
        &mut self,
        executor: &str,
        agent_id: &str,
        state: TaskState,
        message: String,
    ) {
        self.process_update(executor, agent_id, state, message, None);
    }

    /// Sends an update of an executor, with what is known of its process.
    pub(super) fn process_update(
        &mut self,
        executor: &str,
        agent_id: &str,
        state: TaskState,
        message: String,
        process: Option<ProcessReport>,
    ) {
        self.updates_sent += 1;
        let uuid = [self.started_nanos.to_be_bytes(), self.updates_sent.to_be_bytes()].concat();
        self.send(Event::Update(Update {
            executor: executor.to_owned(),
            agent_id: Some(agent_id.to_owned()),
            state,
            reason: UpdateReason::Other,
            message,
            uuid: Some(uuid),
            reported_at: None,
            process: process.map(Box::new),
            facts: None,
        }));
    }

    /// Sends an update of the cluster about an executor, without an acknowledgement token.
    pub(super) fn cluster_update(
        &self,
        executor: &str,
        agent_id: Option<&str>,
        state: TaskState,
        reason: UpdateReason,
        message: impl Into<String>,
    ) {
        self.send(Event::Update(Update {
            executor: executor.to_owned(),
            agent_id: agent_id.map(str::to_owned),
            state,
            reason,
            message: message.into(),
            uuid: None,
            reported_at: None,
            process: None,
            facts: None,
        }));
    }
}
