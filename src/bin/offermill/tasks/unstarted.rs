//! What the queue does with attempts that their agents never started, and with hosts that never ran.

use std::time::SystemTime;

use offermill::Timestamp;
use offermill::engine::{DecidedTask, EndedHost, REJECTIONS_MAX, TaskStart};

use crate::model::executor::{ExecutorRecord, ExecutorState};
use crate::model::task::{TaskChange, TaskEvent};
use crate::tasks::queue::{TaskQueue, TaskQueueState};
use crate::tasks::results::ResultState;
use crate::text::clock::rfc3339;

impl TaskQueue {
    /// How many attempts are told as failed that were never started: they are no failures.
    pub(crate) fn failed_unstarted(&self) -> u64 {
        self.lock().failed_unstarted
    }

    /// An executor runs: its agent starts what it is given.
    pub(crate) fn runs(&self, record: &ExecutorRecord) {
        let is_host = record.tag.is_some_and(|tag| self.is_host(tag));
        self.lock().pauses.started(&record.agent_id, is_host);
    }

    /// An agent is lost: nothing more is expected of it.
    pub(crate) fn agent_lost(&self, agent_id: &str, now: Timestamp) {
        let mut state = self.lock();
        state.pauses.agent_lost(agent_id);
        state.survey.agent_lost(agent_id, now);
    }

    /// Tells the ends that were kept until it was known whether their attempts had begun, and aren't any longer: their
    /// hosts have run or ended, their agents are lost, or it has taken a minute. Returns what has become of tasks.
    pub(crate) fn take_decided(&self, now: Timestamp) -> Vec<TaskEvent> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(hosts) = &state.hosts else { return Vec::new() };
        let decided = state.pauses.take_decided(hosts, now);
        self.tell_kept(state, decided)
    }

    /// From now on attempts that don't succeed were stopped. Returns what that means for tasks.
    pub(crate) fn stop(&self) -> Vec<TaskEvent> {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.is_stopping = true;
        let decided = state.pauses.take_undecided();
        self.tell_kept(state, decided)
    }

    fn tell_kept(&self, state: &mut TaskQueueState, decided: Vec<DecidedTask>) -> Vec<TaskEvent> {
        let mut events = Vec::new();
        for DecidedTask { tag, was_never_started, .. } in decided {
            let Ok(number) = u32::try_from(tag) else { continue };
            let Some((record, output)) = state.kept.remove(&number) else { continue };
            events.extend(match was_never_started {
                true => self.put_back_unstarted(state, number, &record),
                false => self.finish(state, number, &record, output),
            });
        }
        events
    }

    /// What becomes of a task whose attempt has ended and may not have been started. Returns what is to be told; `None`
    /// if its end is to be told as that of any other, as also if the run is being stopped.
    pub(super) fn follow_unstarted(
        &self,
        state: &mut TaskQueueState,
        number: u32,
        record: &ExecutorRecord,
        output: Option<&String>,
    ) -> Option<Vec<TaskEvent>> {
        if state.kept.contains_key(&number) {
            return Some(Vec::new());
        }
        if state.is_stopping || state.progress[number as usize].is_killed {
            return None;
        }
        let (hosts, tag, now) = (state.hosts.as_mut(), number.into(), record.changed_at);
        let start = state.pauses.start_of(hosts, tag, record.unstarted, now);
        let rejections = &mut state.progress[number as usize].rejections;
        match start {
            TaskStart::Possible => None,
            TaskStart::Rejected if *rejections >= REJECTIONS_MAX => None,
            TaskStart::Never | TaskStart::Rejected => {
                *rejections += u32::from(start == TaskStart::Rejected);
                Some(self.put_back_unstarted(state, number, record))
            }
            TaskStart::Undecided => {
                state.kept.insert(number, (record.clone(), output.cloned()));
                Some(Vec::new())
            }
        }
    }

    /// Puts back a task whose attempt was never started, and has its agent get no tasks for a while. Returns what is to
    /// be told.
    fn put_back_unstarted(
        &self,
        state: &mut TaskQueueState,
        number: u32,
        record: &ExecutorRecord,
    ) -> Vec<TaskEvent> {
        state.failed_unstarted += u64::from(record.state == ExecutorState::Failed);
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
        told.into_iter().collect()
    }
}

impl TaskQueueState {
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
