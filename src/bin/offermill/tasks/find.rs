//! Finds tasks by their ids, for commands, and the ids of executors that are tasks.

use std::collections::{HashMap, HashSet};

use crate::model::executor::ExecutorRecord;
use crate::tasks::queue::{TaskQueue, TaskStage};

/// Tasks by their ids.
pub(crate) type FoundTasks = HashMap<String, FoundTask>;

/// A task that was found by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FoundTask {
    /// It is in flight, as this executor.
    InFlight(String),
    /// It isn't; why, as the rest of a sentence.
    No(&'static str),
}

impl TaskQueue {
    /// Those of these ids that tasks have, with what the tasks do. Reads the list of tasks once.
    pub(crate) fn find(&self, ids: &[String]) -> FoundTasks {
        let wanted: HashSet<&str> = ids.iter().map(String::as_str).collect();
        let tasks = self.list.tasks.iter().zip(0u32..);
        let numbers: Vec<u32> = tasks
            .filter_map(|(task, number)| wanted.contains(&*task.id).then_some(number))
            .collect();
        let state = self.lock();
        let found = |number: u32| {
            let progress = &state.progress[number as usize];
            let found = match progress.stage {
                _ if state.kept.contains_key(&number) => {
                    FoundTask::No("is gone with its host, and may start again")
                }
                TaskStage::InFlight if !progress.executor.is_empty() => {
                    FoundTask::InFlight(progress.executor.clone())
                }
                TaskStage::InFlight => FoundTask::No("is about to start"),
                TaskStage::Waiting => FoundTask::No("waits for other tasks"),
                TaskStage::Ready => FoundTask::No("hasn't started yet"),
                TaskStage::Over => FoundTask::No("has ended"),
            };
            (self.list.tasks[number as usize].id.clone(), found)
        };
        numbers.into_iter().map(found).collect()
    }

    /// An executor is asked to end by a command. If it is a task, it isn't started again, whatever becomes of its host.
    pub(crate) fn kill_asked(&self, record: &ExecutorRecord) {
        let number = record.tag.and_then(|tag| usize::try_from(tag).ok());
        let mut state = self.lock();
        let progress = number.and_then(|number| state.progress.get_mut(number));
        if let Some(progress) = progress.filter(|it| it.executor == record.name) {
            progress.is_killed = true;
        }
    }

    /// The id of the task of which an executor is an attempt; `None` if it is a host.
    pub(crate) fn id_of(&self, record: &ExecutorRecord) -> Option<&str> {
        let number = usize::try_from(record.tag?).ok()?;
        self.list.tasks.get(number).map(|task| &*task.id)
    }
}
