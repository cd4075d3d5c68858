//! Tasks that no agent runs: they are told, and fail if they aren't to wait.

use offermill::{ResourceSums, Timestamp};

use crate::model::task::{TaskChange, TaskEvent, TooLargeTasks};
use crate::tasks::queue::{TaskQueue, TaskQueueState};
use crate::tasks::results::ResultState;
use crate::tasks::too_large::TooLargeSize;

impl TaskQueue {
    /// Checks which ready tasks fit on no agent, once all agents had the time to make offers. Fails those that have
    /// waited for the time-out; tells the first task of each other size once. Returns what is to be told.
    pub(crate) fn follow_too_large(&self, now: Timestamp) -> Vec<TaskEvent> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.is_stopping || !state.too_large.is_due(now) {
            return Vec::new();
        }
        let TaskQueueState { ready, survey, too_large, .. } = state;
        if !survey.is_complete(now) {
            too_large.pause();
            return Vec::new();
        }
        let found = ready.sizes().filter_map(|size| Some((size, survey.fits_nowhere(size, now)?)));
        too_large.update(found.collect(), ready, now);
        let mut events = Vec::new();
        if let Some(timeout) = self.terms.placement_timeout {
            let overdue = too_large.take_overdue(timeout);
            for (number, why) in ready.refused(|size| overdue.get(&size).cloned()) {
                events.extend(self.refuse(state, vec![number], &why));
            }
        }
        for size in state.too_large.take_untold() {
            if let Some((first, tasks)) = self.too_large_of(state, size) {
                events.push(self.event(state, first, TaskChange::Waiting, &tasks.reason()));
            }
        }
        events
    }

    /// The ready tasks that fit on no agent, by size, in the order of the file.
    pub(crate) fn too_large(&self) -> Vec<TooLargeTasks> {
        let state = self.lock();
        let sizes = state.too_large.in_order().into_iter();
        sizes.filter_map(|size| Some(self.too_large_of(&state, size)?.1)).collect()
    }

    /// The first ready task of a size that fits on no agent, and what is told of all of them.
    fn too_large_of(
        &self,
        state: &TaskQueueState,
        size: ResourceSums,
    ) -> Option<(u32, TooLargeTasks)> {
        let TooLargeSize { first, why, .. } = state.too_large.get(size)?;
        let id = self.list.tasks[*first as usize].id.clone();
        let tasks = state.ready.count_of(size).into();
        (tasks > 0).then(|| (*first, TooLargeTasks { id, tasks, why: why.clone() }))
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
