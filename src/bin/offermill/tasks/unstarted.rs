//! What the queue does with attempts that their agents never started, and with hosts that never ran.

use std::time::SystemTime;

use crate::model::end_cause::EndCause;
use crate::model::executor::{ExecutorRecord, ExecutorState};
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
        let told = state.pauses.tell(&record.agent_id).map(|pause| {
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
        let is_host_unstarted = || {
            let Some(hosts) = &self.hosts else { return false };
            let Some(host) = hosts.host_of(number.into()) else { return false };
            hosts.has_run(host) == Some(false) || self.pauses.is_unstarted(host)
        };
        match record.cause {
            _ if record.state == ExecutorState::Finished || record.running_since.is_some() => false,
            Some(EndCause::Dropped) => true,
            Some(EndCause::AgentLost) => is_host_unstarted(),
            _ => false,
        }
    }

    /// A host has ended, or was given up. Returns whether it was to end.
    pub(super) fn host_ended(&mut self, tag: u64, record: &ExecutorRecord) -> bool {
        // Its launch may never have been prepared.
        self.picked.remove(&tag);
        let Some(hosts) = &mut self.hosts else { return true };
        let never_ran = hosts.has_run(tag) == Some(false);
        if never_ran {
            self.pauses.note_unstarted(tag);
        }
        let was_asked = hosts.remove(tag) || self.is_stopping;
        let ExecutorRecord { agent_id, message, changed_at, .. } = record;
        match (record.state, record.cause) {
            _ if was_asked || !never_ran => {}
            (ExecutorState::Failed, _) => self.pauses.host_failed(agent_id, message, *changed_at),
            (_, Some(EndCause::Dropped)) => self.pauses.refused(agent_id, message, *changed_at),
            _ => {}
        }
        was_asked
    }
}
