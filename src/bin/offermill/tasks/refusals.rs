//! Tasks that no agent runs: they are told, and fail if they aren't to wait.

use std::collections::HashMap;

use offermill::{ResourceSums, Timestamp};

use crate::model::task::{TaskChange, TaskEvent, TooLargeTasks};
use crate::tasks::queue::{TaskQueue, TaskQueueState};
use crate::tasks::results::ResultState;
use crate::tasks::too_large::sentence;

impl TaskQueue {
    /// Checks which ready tasks fit on no agent, once all agents had the time to make offers. Fails those that have
    /// waited for the time-out; tells the first task of each other size once. What is too much for one check is left to
    /// the next ones. Returns what is to be told.
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
        too_large.update(survey.too_large(ready.sizes(), now), ready, now);
        let mut events = Vec::new();
        if let Some(timeout) = self.terms.placement_timeout {
            let overdue = too_large.take_overdue(timeout).into_iter();
            let why = |size| Some((size, sentence(&survey.nearest(size)?)));
            let overdue: HashMap<ResourceSums, String> = overdue.filter_map(why).collect();
            for (number, why) in ready.refused(|size| overdue.get(&size).cloned()) {
                events.extend(self.refuse(state, vec![number], &why));
            }
        }
        for (size, first) in state.too_large.take_untold(self.terms.placement_timeout) {
            if let Some(tasks) = self.too_large_of(state, size, first) {
                events.push(self.event(state, first, TaskChange::Waiting, &tasks.reason()));
            }
        }
        events
    }

    /// The ready tasks that fit on no agent, by size, in the order of the file: of so many sizes at most.
    pub(crate) fn too_large(&self, sizes_max: usize) -> Vec<TooLargeTasks> {
        let state = self.lock();
        let sizes = state.too_large.in_order().into_iter();
        let tasks = sizes.filter_map(|(size, first)| self.too_large_of(&state, size, first));
        tasks.take(sizes_max).collect()
    }

    /// What is told of all ready tasks of a size that fits on no agent, of which this is the first.
    fn too_large_of(
        &self,
        state: &TaskQueueState,
        size: ResourceSums,
        first: u32,
    ) -> Option<TooLargeTasks> {
        let tasks = u64::from(state.ready.count_of(size));
        if tasks == 0 {
            return None;
        }
        let id = self.list.tasks[first as usize].id.clone();
        Some(TooLargeTasks { id, tasks, why: sentence(&state.survey.nearest(size)?) })
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
