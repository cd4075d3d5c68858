//! The tasks of one stage, as Spark's scheduler of tasks keeps them.

use std::collections::BTreeMap;

use super::hash_order::{HashOrder, hash_of_number};

/// The tasks of one stage, without preferred places.
#[derive(Debug)]
pub(super) struct TaskSet {
    stage: u32,
    /// The tasks that wait, by number. The last is placed first.
    waiting: Vec<u32>,
    tasks: Vec<StageTask>,
    /// The attempts by their ids, and the order in which Spark visits them.
    attempts: BTreeMap<i64, Attempt>,
    order: HashOrder<i64>,
    /// Whether it was given up, so that none of its tasks is placed any more.
    is_given_up: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct StageTask {
    attempts: u32,
    failures: u32,
    has_finished: bool,
}

/// A task that was placed.
#[derive(Debug)]
struct Attempt {
    task: u32,
    agent: String,
    /// Whether it was reported to run.
    has_run: bool,
    has_ended: bool,
}

impl TaskSet {
    pub(super) fn new(stage: u32, tasks: u32) -> TaskSet {
        TaskSet {
            stage,
            waiting: (0..tasks).rev().collect(),
            tasks: (0..tasks).map(|_| StageTask::default()).collect(),
            attempts: BTreeMap::new(),
            order: HashOrder::new(),
            is_given_up: false,
        }
    }

    /// The number of tasks that may still be placed.
    pub(super) fn waiting(&self) -> usize {
        if self.is_given_up { 0 } else { self.waiting.len() }
    }

    pub(super) fn give_up(&mut self) {
        self.is_given_up = true;
    }

    /// Places the next task on an agent, with this id. Returns its name.
    pub(super) fn place(&mut self, id: i64, agent: &str) -> Option<String> {
        if self.is_given_up {
            return None;
        }
        let number = self.waiting.pop()?;
        let task = self.tasks.get_mut(number as usize)?;
        let attempt = task.attempts;
        task.attempts += 1;
        self.order.insert(hash_of_number(id), id);
        let agent = agent.to_owned();
        let placed = Attempt { task: number, agent, has_run: false, has_ended: false };
        self.attempts.insert(id, placed);
        Some(format!("task {number}.{attempt} in stage {}.0 (TID {id})", self.stage))
    }

    /// Marks an attempt as ended. Returns its task's number, unless it had ended already.
    fn end(&mut self, id: i64) -> Option<u32> {
        let attempt = self.attempts.get_mut(&id).filter(|attempt| !attempt.has_ended)?;
        attempt.has_ended = true;
        Some(attempt.task)
    }

    /// An attempt runs.
    pub(super) fn run(&mut self, id: i64) {
        if let Some(attempt) = self.attempts.get_mut(&id) {
            attempt.has_run = true;
        }
    }

    pub(super) fn finish(&mut self, id: i64) {
        let task = self.end(id);
        if let Some(task) = task.and_then(|task| self.tasks.get_mut(task as usize)) {
            task.has_finished = true;
        }
    }

    /// Ends an attempt that failed: its task waits again. After `failures_max` failures of one task all are given up.
    pub(super) fn fail(&mut self, id: i64, failures_max: u32) {
        self.end_unfinished(id, Some(failures_max));
    }

    /// Ends an attempt without success, which counts as a failure if there is a limit of failures.
    fn end_unfinished(&mut self, id: i64, failures_max: Option<u32>) {
        let Some(number) = self.end(id) else { return };
        let Some(task) = self.tasks.get_mut(number as usize) else { return };
        if let (Some(failures_max), false) = (failures_max, self.is_given_up) {
            task.failures += 1;
            if task.failures >= failures_max {
                self.is_given_up = true;
                return;
            }
        }
        if !task.has_finished {
            self.waiting.push(number);
        }
    }

    /// Whether Spark asks for offers once an attempt has failed.
    pub(super) fn wants_offers_after(&self, id: i64) -> bool {
        let attempt = self.attempts.get(&id);
        let task = attempt.and_then(|attempt| self.tasks.get(attempt.task as usize));
        !self.is_given_up && task.is_some_and(|task| !task.has_finished)
    }

    /// Fails all attempts on an agent, in Spark's order. Of those that were never reported to run it counts no failure.
    pub(super) fn fail_on(&mut self, agent: &str, failures_max: u32) {
        let runs_there =
            |id: &&i64| self.attempts.get(id).is_some_and(|it| !it.has_ended && it.agent == agent);
        let lost: Vec<i64> = self.order.keys().filter(runs_there).copied().collect();
        for id in lost {
            let has_run = self.attempts.get(&id).is_some_and(|attempt| attempt.has_run);
            self.end_unfinished(id, has_run.then_some(failures_max));
        }
    }
}
