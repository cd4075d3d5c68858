//! What the queue does with attempts that their agents never started, and with hosts that never ran.

use std::time::SystemTime;

use offermill::Timestamp;
use offermill::engine::EndedHost;

use crate::model::executor::ExecutorRecord;
use crate::model::task::{TaskChange, TaskEvent};
use crate::tasks::queue::{TaskQueue, TaskQueueState};
use crate::tasks::results::ResultState;
use crate::text::clock::rfc3339;

impl TaskQueue {
    /// An executor runs: its agent starts what it is given.
    pub(crate) fn runs(&self, record: &ExecutorRecord) {
        let is_host = record.tag.is_some_and(|tag| self.is_host(tag));
        self.lock().pauses.started(&record.agent_id, is_host);
    }

    /// An agent is lost: nothing more is expected of it.
    pub(crate) fn agent_lost(&self, agent_id: &str, now: Timestamp) {
        let mut state = self.lock();
        state.pauses.agent_lost(agent_id);
        state.agents.lost(agent_id);
        state.survey.changed(now);
    }

    /// Puts back a task whose attempt was never started, and has its agent get no tasks for a while. Returns what is to
    /// be told; `None` if the attempt may have been started, or the run is being stopped.
    pub(super) fn put_back_unstarted(
        &self,
        state: &mut TaskQueueState,
        number: u32,
        record: &ExecutorRecord,
    ) -> Option<Vec<TaskEvent>> {
        if state.is_stopping || !state.was_never_started(number, record) {
            return None;
        }
        let now = record.changed_at;
        state.pauses.refused(&record.agent_id, &record.message, now);
        let mut line = self.line(state, number, ResultState::NotStarted);
        line.ended = Some(rfc3339(SystemTime::now()));
        line.reason = Some(record.message.clone()).filter(|why| !why.is_empty());
        // One of many that end alike: they are in the results.
        let told = state.pauses.take_new_pause(&record.agent_id).map(|pause| {
            let pause = pause.as_secs();
            let why = format!("{}; the agent gets no tasks for {pause} s", record.message);
            self.event(state, number, TaskChange::NotStarted, &why)
        });
        state.land(number, &self.list.tasks[number as usize]);
        self.put_back(state, number);
        state.write(&[line]);
        Some(told.into_iter().collect())
    }
}

impl TaskQueueState {
    /// Whether nothing of an attempt has run: its agent says so, or its host has ended before it took tasks.
    fn was_never_started(&self, number: u32, record: &ExecutorRecord) -> bool {
        self.pauses.was_never_started(self.hosts.as_ref(), number.into(), record.unstarted)
    }

    /// A host has ended, or was given up. Returns whether it was to end.
    pub(super) fn host_ended(&mut self, tag: u64, record: &ExecutorRecord) -> bool {
        // Its launch may never have been prepared.
        self.picked.remove(&tag);
        let Some(hosts) = &mut self.hosts else { return true };
        let ExecutorRecord { agent_id, unstarted: end, message: why, changed_at: at, .. } = record;
        let ended = EndedHost { tag, agent_id, end: *end, why, at: *at };
        self.pauses.host_ended(hosts, ended) || self.is_stopping
    }
}
