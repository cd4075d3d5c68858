//! What the cluster tells the engine about executors.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::engine::cluster_manager::{Event, EventSink, Update};
use crate::status::{TaskState, UpdateReason};

/// The way out for events. Updates that come from an executor bear an acknowledgement token, those
/// that the cluster gives of its own accord don't, as in Mesos. None is sent twice: events can't
/// get lost inside one process.
pub(super) struct Outbox {
    events: EventSink,
    born_nanos: u64,
    numbered: u64,
}

impl Outbox {
    pub(super) fn new(events: EventSink) -> Outbox {
        let born = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let born_nanos = u64::try_from(born.as_nanos()).unwrap_or(u64::MAX);
        Outbox { events, born_nanos, numbered: 0 }
    }

    pub(super) fn send(&self, event: Event) {
        self.events.send(event);
    }

    /// An executor's own news.
    pub(super) fn executor_says(
        &mut self,
        executor: &str,
        agent_id: &str,
        state: TaskState,
        message: String,
    ) {
        self.numbered += 1;
        let uuid = [self.born_nanos.to_be_bytes(), self.numbered.to_be_bytes()].concat();
        self.send(Event::Update(Update {
            executor: executor.to_owned(),
            agent_id: Some(agent_id.to_owned()),
            state,
            reason: UpdateReason::Other,
            message,
            uuid: Some(uuid),
        }));
    }

    /// What the cluster itself has to say about an executor.
    pub(super) fn cluster_says(
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
        }));
    }
}
