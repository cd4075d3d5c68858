//! What a [`WorkQueue`](super::WorkQueue) does with tasks that their agents never start, and with hosts that never run.

use super::agent_pauses::{EndedHost, REJECTIONS_MAX, UnstartedEnd};
use super::notice::Notice;
use super::undecided_ends::{DecidedTask, KeptEnd, TaskStart};
use super::work_queue::{QueuedTask, TaskEnd, WorkState};
use crate::kernel::{Change, Task};
use crate::status::{Fate, TaskState};
use crate::time::Timestamp;

/// How often a task is put back because its agent has not started it.
const PUT_BACK_MAX: u32 = 16;

/// What a notice means for the queue, beside the end that it tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StartNews {
    /// No more.
    Nothing,
    /// The task is put back, or its end is kept: it isn't told now.
    Untold,
    /// It is about a host or a lost agent: more may be decided by it.
    Decisive,
}

impl WorkState {
    /// Follows a notice. Returns the end that it tells, and the ends that were kept and are decided by it.
    pub(super) fn noticed(
        &mut self,
        at: Timestamp,
        notice: &Notice,
    ) -> (Option<TaskEnd>, Vec<TaskEnd>) {
        let news = self.follow_starts(at, notice);
        self.hosts.iter_mut().for_each(|hosts| hosts.noticed(notice));
        match news {
            StartNews::Nothing => (self.follow(notice), Vec::new()),
            StartNews::Untold => (None, Vec::new()),
            StartNews::Decisive => (self.follow(notice), self.decide(at)),
        }
    }

    /// Follows what agents start and don't start. A task that was to be ended isn't put back, whatever became of it.
    fn follow_starts(&mut self, at: Timestamp, notice: &Notice) -> StartNews {
        match notice {
            Notice::Updated { executor, state: TaskState::Killing, .. } => {
                // A host that is ended has run, as far as is known.
                let Some(launched) = self.launched.get_mut(executor) else {
                    return StartNews::Decisive;
                };
                launched.has_own_end = true;
                StartNews::Nothing
            }
            Notice::Updated { executor, state: TaskState::Running, .. } => {
                if let Some(launched) = self.launched.get_mut(executor) {
                    launched.has_own_end = true;
                    if let Some(queued) = self.tasks.get(&launched.tag) {
                        self.pauses.started(&queued.agent_id, false);
                    }
                    return StartNews::Nothing;
                }
                let host = self.hosts.as_ref().and_then(|hosts| hosts.host(executor));
                let Some((_, agent_id)) = host else { return StartNews::Nothing };
                self.pauses.started(agent_id, true);
                StartNews::Decisive
            }
            Notice::Updated {
                executor,
                change: Change::Ended(_),
                state,
                reason,
                message,
                process,
                ..
            } => {
                let end = UnstartedEnd::of(*state, *reason, process.as_deref());
                match self.host_ended(executor, end, message, at) {
                    true => StartNews::Decisive,
                    false => self.follow_unstarted(executor, end, at, notice),
                }
            }
            Notice::GivenUp { executor } if self.host_ended(executor, None, "", at) => {
                StartNews::Decisive
            }
            Notice::AgentLost { agent_id } => {
                self.pauses.agent_lost(agent_id);
                self.survey.agent_lost(agent_id, at);
                StartNews::Decisive
            }
            Notice::Disconnected => {
                // No offers come until the next subscription.
                self.survey.stop();
                StartNews::Nothing
            }
            _ => StartNews::Nothing,
        }
    }

    /// Returns whether the executor is a host.
    fn host_ended(
        &mut self,
        executor: &str,
        end: Option<UnstartedEnd>,
        why: &str,
        at: Timestamp,
    ) -> bool {
        let Some(hosts) = &mut self.hosts else { return false };
        let found = hosts.host(executor).map(|(tag, agent_id)| (tag, agent_id.to_owned()));
        let Some((tag, agent_id)) = found else { return false };
        let ended = EndedHost { tag, agent_id: &agent_id, end, why, at };
        let _was_asked = self.pauses.host_ended(hosts, ended);
        true
    }

    /// Puts back a task whose attempt was never started, and keeps the end of one that may not have been.
    fn follow_unstarted(
        &mut self,
        executor: &str,
        end: Option<UnstartedEnd>,
        at: Timestamp,
        notice: &Notice,
    ) -> StartNews {
        let tag = match self.launched.get(executor) {
            Some(launched) if !launched.has_own_end => launched.tag,
            _ => return StartNews::Nothing,
        };
        if self.kept.contains_key(&tag) {
            return StartNews::Untold;
        }
        let Some(queued) = self.tasks.get_mut(&tag) else { return StartNews::Nothing };
        let start = self.pauses.start_of(self.hosts.as_mut(), tag, end, at);
        match start {
            TaskStart::Possible => StartNews::Nothing,
            TaskStart::Rejected if queued.rejections >= REJECTIONS_MAX => StartNews::Nothing,
            TaskStart::Undecided => {
                self.kept.insert(tag, KeptEnd { at, notice: notice.clone() });
                StartNews::Untold
            }
            TaskStart::Never | TaskStart::Rejected => {
                queued.rejections += u32::from(start == TaskStart::Rejected);
                match self.put_back_unstarted(at, notice) {
                    true => StartNews::Untold,
                    false => StartNews::Nothing,
                }
            }
        }
    }

    /// Has a task wait again whose end this is, and its agent have a pause. Returns `false` if its end is to be told
    /// instead.
    fn put_back_unstarted(&mut self, at: Timestamp, notice: &Notice) -> bool {
        let Notice::Updated { executor, message, .. } = notice else { return false };
        let Some(launched) = self.launched.get(executor) else { return false };
        let tag = launched.tag;
        let Some(queued) = self.tasks.get_mut(&tag) else { return false };
        self.pauses.refused(&queued.agent_id, message, at);
        if queued.put_back >= PUT_BACK_MAX {
            // Perhaps it is the task's own fault. Then its end tells the reason.
            return false;
        }
        queued.put_back += 1;
        self.put_back += 1;
        self.launched.remove(executor);
        self.take_back(tag);
        true
    }

    /// Tells the kept ends that are decided by now, as far as their tasks aren't put back.
    pub(super) fn decide(&mut self, now: Timestamp) -> Vec<TaskEnd> {
        let Some(hosts) = &self.hosts else { return Vec::new() };
        let decided = self.pauses.take_decided(hosts, now);
        self.tell_kept(decided)
    }

    /// Tells all ends that are kept: nothing more is reported about hosts.
    pub(super) fn decide_all(&mut self) -> Vec<TaskEnd> {
        let decided = self.pauses.take_undecided();
        self.tell_kept(decided)
    }

    fn tell_kept(&mut self, decided: Vec<DecidedTask>) -> Vec<TaskEnd> {
        let told = |DecidedTask { tag, was_never_started }| {
            let KeptEnd { at, notice } = self.kept.remove(&tag)?;
            let is_put_back = was_never_started && self.put_back_unstarted(at, &notice);
            if is_put_back { None } else { self.follow(&notice) }
        };
        decided.into_iter().filter_map(told).collect()
    }

    /// Ends the tasks that wait if none is in flight and no host will run.
    pub(super) fn refuse_without_hosts(&mut self, at: Timestamp, notice: &Notice) -> Vec<TaskEnd> {
        let is_end = matches!(notice, Notice::Updated { change: Change::Ended(_), .. });
        if !is_end || self.waiting.len() < self.tasks.len() {
            return Vec::new();
        }
        let Some(why) = self.pauses.no_host_runs(at) else { return Vec::new() };
        self.fail_waiting(&why)
    }

    /// Ends the tasks that wait, in their order: none of them will start, for this reason.
    pub(super) fn fail_waiting(&mut self, why: &str) -> Vec<TaskEnd> {
        let ended = |task: Task| {
            let QueuedTask { task, rank, .. } = self.tasks.remove(&task.tag)?;
            let (executor, message) = (String::new(), why.to_owned());
            Some(TaskEnd { task, rank, executor, fate: Fate::Failed, message, process: None })
        };
        self.waiting.take().into_iter().filter_map(ended).collect()
    }
}
