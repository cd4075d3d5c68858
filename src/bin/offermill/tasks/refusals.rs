//! Tasks that are refused, because no agent can run them.

use offermill::Timestamp;

use crate::model::task::{TaskChange, TaskEvent};
use crate::tasks::queue::{TaskQueue, TaskQueueState};
use crate::tasks::results::ResultState;

impl TaskQueue {
    /// Refuses the ready tasks that fit on no agent, once all agents were seen for a while.
    pub(crate) fn refuse_too_large(&self, now: Timestamp) -> Vec<TaskEvent> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.is_stopping {
            return Vec::new();
        }
        let refused = state.ready.refused(|size| state.survey.fits_nowhere(size, now));
        let told = |(number, why): (u32, String)| self.refuse(state, vec![number], &why);
        refused.into_iter().flat_map(told).collect()
    }

    /// Refuses the ready tasks if hosts fail on all agents before they run, and none has ever run.
    pub(crate) fn refuse_without_hosts(&self, now: Timestamp) -> Vec<TaskEvent> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.is_stopping || state.counts.running > 0 {
            return Vec::new();
        }
        let Some(why) = state.pauses.no_host_runs(now) else { return Vec::new() };
        let ready = state.ready.all();
        self.refuse(state, ready, &why)
    }

    /// Fails ready tasks for this reason.
    pub(super) fn refuse(
        &self,
        state: &mut TaskQueueState,
        tasks: Vec<u32>,
        why: &str,
    ) -> Vec<TaskEvent> {
        let (mut lines, mut events) = (Vec::new(), Vec::new());
        for number in tasks {
            events.push(self.event(state, number, TaskChange::Failed, why));
            let mut line = self.line(state, number, ResultState::Failed);
            line.reason = Some(why.to_owned());
            lines.push(line);
            self.fail(state, number, &mut lines, &mut events);
        }
        state.write(&lines);
        events
    }
}
