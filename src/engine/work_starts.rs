//! What a [`WorkQueue`](super::WorkQueue) does with tasks that their agents never start, and with hosts that never run.

use super::agent_pauses::{EndedHost, UnstartedEnd};
use super::notice::Notice;
use super::work_queue::{LaunchedTask, QueuedTask, TaskEnd, WorkState};
use crate::kernel::{Change, Task};
use crate::status::{Fate, TaskState};
use crate::time::Timestamp;

/// How often a task is put back because its agent has not started it.
const PUT_BACK_MAX: u32 = 16;

impl WorkState {
    /// Follows what agents start and don't start. Returns whether a task was put back that wasn't started; one that was
    /// to be ended isn't, whatever became of it.
    pub(super) fn follow_starts(&mut self, at: Timestamp, notice: &Notice) -> bool {
        match notice {
            Notice::Updated { executor, state: TaskState::Killing, .. } => {
                if let Some(launched) = self.launched.get_mut(executor) {
                    launched.has_own_end = true;
                }
                false
            }
            Notice::Updated { executor, state: TaskState::Running, .. } => {
                if let Some(launched) = self.launched.get_mut(executor) {
                    launched.has_own_end = true;
                    self.pauses.started(&launched.agent_id, false);
                } else if let Some((_, agent_id)) =
                    self.hosts.as_ref().and_then(|hosts| hosts.host(executor))
                {
                    self.pauses.started(agent_id, true);
                }
                false
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
                self.host_ended(executor, end, message, at);
                self.put_back_unstarted(executor, end, message, at)
            }
            Notice::GivenUp { executor } => {
                self.host_ended(executor, None, "", at);
                false
            }
            Notice::AgentLost { agent_id } => {
                self.pauses.agent_lost(agent_id);
                false
            }
            _ => false,
        }
    }

    fn host_ended(&mut self, executor: &str, end: Option<UnstartedEnd>, why: &str, at: Timestamp) {
        let Some(hosts) = &mut self.hosts else { return };
        let found = hosts.host(executor).map(|(tag, agent_id)| (tag, agent_id.to_owned()));
        if let Some((tag, agent_id)) = found {
            let ended = EndedHost { tag, agent_id: &agent_id, end, why, at };
            let _was_asked = self.pauses.host_ended(hosts, ended);
        }
    }

    fn put_back_unstarted(
        &mut self,
        executor: &str,
        end: Option<UnstartedEnd>,
        why: &str,
        at: Timestamp,
    ) -> bool {
        let Some(LaunchedTask { tag, agent_id, has_own_end: false }) = self.launched.get(executor)
        else {
            return false;
        };
        let tag = *tag;
        if !self.pauses.was_never_started(self.hosts.as_ref(), tag, end) {
            return false;
        }
        self.pauses.refused(agent_id, why, at);
        // Perhaps it is the task's own fault. Then its end tells the reason.
        let Some(queued) = self.tasks.get_mut(&tag).filter(|it| it.put_back < PUT_BACK_MAX) else {
            return false;
        };
        queued.put_back += 1;
        self.put_back += 1;
        self.launched.remove(executor);
        self.take_back(tag);
        true
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
