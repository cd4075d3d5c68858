//! Finds the executors that commands name: by their own names, or as tasks.

use super::Session;
use crate::model::executor::ExecutorRecord;
use crate::output::sentence::{find_error_sentence, no_task_sentence};
use crate::tasks::find::{FoundTask, FoundTasks};

impl Session {
    /// The tasks that these names may be ids of; `None` without tasks.
    pub(super) fn find_tasks(&self, names: &[String]) -> Option<FoundTasks> {
        self.tasks.as_ref().map(|tasks| tasks.queue().find(names))
    }

    /// The living executor with this name, or that a short form of its name stands for. With tasks first the one with
    /// this whole name, then the task with this id; a number alone is always an id.
    ///
    /// # Errors
    /// With a sentence if there is none.
    pub(super) fn find_named(
        &self,
        name: &str,
        tasks: Option<&FoundTasks>,
    ) -> Result<&ExecutorRecord, String> {
        let found = self.run_state.find(name);
        let Some(tasks) = tasks else { return found.map_err(|error| find_error_sentence(&error)) };
        let is_whole = |record: &&ExecutorRecord| record.name == name;
        if let Some(record) = found.as_ref().ok().copied().filter(is_whole) {
            return Ok(record);
        }
        match tasks.get(name) {
            Some(FoundTask::InFlight(executor)) => {
                self.run_state.find(executor).map_err(|_| format!("task {name} has ended"))
            }
            Some(FoundTask::No(why)) => Err(format!("task {name} {why}")),
            None if name.bytes().all(|byte| byte.is_ascii_digit()) => Err(no_task_sentence(name)),
            None => found.map_err(|_| no_task_sentence(name)),
        }
    }
}
