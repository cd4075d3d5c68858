//! What a former run of the same tasks has left in the results file, and what of it isn't run again.

use std::io;

use crate::tasks::queue::TaskQueue;
use crate::tasks::results::{FormerResult, ResultState, ResultsFile};

/// What a former run has left, as far as this one says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResumedTasks {
    /// How many have succeeded.
    pub(crate) succeeded: u64,
    /// The ids of those that were in flight at its end, and are run again.
    pub(crate) in_flight: Vec<String>,
    /// The ids of those that had succeeded, but differ now, and are run again.
    pub(crate) changed: Vec<String>,
    /// How many results are of tasks that the file doesn't have.
    pub(crate) unknown: u64,
}

impl TaskQueue {
    /// Opens the results file, and leaves out what has succeeded in former runs.
    ///
    /// # Errors
    /// As [`ResultsFile::open`].
    pub(crate) fn open_results(&self, resumes: bool) -> Result<ResumedTasks, String> {
        let (results, mut former) = ResultsFile::open(&self.results_name, resumes)?;
        let mut state = self.lock();
        state.results = Some(results);
        let mut resumed = ResumedTasks::default();
        for (task, number) in self.list.tasks.iter().zip(0u32..) {
            let Some(FormerResult { state: ended, attempts, fingerprint }) =
                former.remove(&task.id)
            else {
                continue;
            };
            state.progress[number as usize].attempts = attempts;
            match ended {
                ResultState::Succeeded if !task.has_fingerprint(&fingerprint) => {
                    resumed.changed.push(task.id.clone());
                }
                ResultState::Succeeded => {
                    resumed.succeeded += 1;
                    state.counts.before += 1;
                    self.take_out(&mut state, number);
                    self.free_dependents(&mut state, number);
                }
                ResultState::Started => resumed.in_flight.push(task.id.clone()),
                _ => {}
            }
        }
        resumed.unknown = former.len() as u64;
        Ok(resumed)
    }

    /// Makes what was written outlive this machine.
    ///
    /// # Errors
    /// As [`ResultsFile::sync`].
    pub(crate) fn sync_results(&self) -> io::Result<()> {
        let state = self.lock();
        state.results.as_ref().map_or(Ok(()), ResultsFile::sync)
    }
}
