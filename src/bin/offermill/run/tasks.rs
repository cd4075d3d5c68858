//! The tasks of a run (`--tasks`): what becomes of them with their executors, what they want of the cluster, and when
//! the run is over.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use offermill::Timestamp;

use super::Session;
use super::task_demand::TaskDemand;
use crate::exit::ExitStatus;
use crate::model::end_reason::EndReason;
use crate::model::event::RunEvent;
use crate::model::executor::ExecutorRecord;
use crate::model::target::SandboxPlace;
use crate::model::task::{TaskChange, TaskCounts, TaskEvent};
use crate::output::remark;
use crate::output::tasks::TaskSummary;
use crate::settings::RunSettings;
use crate::tasks::attempt_index::AttemptIndex;
use crate::tasks::queue::TaskQueue;

/// The most failed tasks that the summary names.
const FAILED_SHOWN_MAX: usize = 20;

/// The longest time that the end waits for the index of attempts.
const INDEX_TIMEOUT: Duration = Duration::from_secs(1);

/// The tasks of a session.
pub(super) struct TaskRun {
    queue: Arc<TaskQueue>,
    demand: TaskDemand,
    /// The first tasks that failed.
    failed: Vec<TaskEvent>,
    /// `None` before the run is registered, and if sandboxes aren't on this machine.
    index: Option<AttemptIndex>,
}

impl TaskRun {
    /// The tasks of these settings, if they have some.
    pub(super) fn of(settings: &RunSettings) -> Option<TaskRun> {
        let queue = Arc::clone(settings.executors.tasks()?);
        Some(TaskRun { queue, demand: TaskDemand::default(), failed: Vec::new(), index: None })
    }

    /// The queue of all tasks.
    pub(super) fn queue(&self) -> &TaskQueue {
        &self.queue
    }

    /// How many tasks are in which state.
    pub(super) fn counts(&self) -> TaskCounts {
        self.queue.counts()
    }

    /// How many executors have failed as attempts that were never started, which are no failures.
    pub(super) fn failed_unstarted(&self) -> u64 {
        self.queue.failed_unstarted()
    }

    /// Whether the tasks themselves say what they wait for, and not the cluster.
    pub(super) fn know_why(&self) -> bool {
        self.queue.has_seen_agents()
    }

    /// From now on executors that are ended are no failures of their tasks. Returns what that means for tasks.
    pub(super) fn stop(&self) -> Vec<TaskEvent> {
        self.queue.stop()
    }

    /// What the summary says of the tasks.
    pub(super) fn summary(&self) -> TaskSummary {
        if let Err(error) = self.queue.sync_results() {
            let name = self.queue.results_name();
            remark(&format!("the last lines of {name} may be lost if this machine fails: {error}"));
        }
        TaskSummary {
            counts: self.counts(),
            failed: self.failed.clone(),
            results: self.queue.results_name().to_owned(),
        }
    }

    /// Ends the index of attempts.
    pub(super) fn finish_index(&mut self) {
        if let Some(index) = self.index.take()
            && let Err(error) = index.finish(INDEX_TIMEOUT)
        {
            remark_on_index(&error);
        }
    }

    /// The exit code: that of the run, unless it is that all went well and some task has not succeeded.
    pub(super) fn exit(&self, exit: ExitStatus) -> ExitStatus {
        match exit {
            ExitStatus::Done if !self.counts().have_all_succeeded() => ExitStatus::ExecutorsFailed,
            exit => exit,
        }
    }
}

fn remark_on_index(error: &io::Error) {
    remark(&format!("`offermill logs` won't find all tasks of this run by their ids: {error}"));
}

impl Session {
    /// Tells the tasks what became of an executor. Returns whether the event is about nothing but a task, which has an
    /// event of its own.
    pub(super) fn follow_tasks(&mut self, at: Timestamp, event: &RunEvent) -> bool {
        self.index_attempts(event);
        let Some(tasks) = &self.tasks else { return false };
        if let RunEvent::Running(record)
        | RunEvent::Ending(record)
        | RunEvent::Ended(record)
        | RunEvent::GivenUp(record) = event
            && let Some(is_told) = tasks.queue.host_changed(record)
        {
            if matches!(event, RunEvent::Running(_)) {
                tasks.queue.runs(record);
            }
            self.publish_decided(at);
            return is_told;
        }
        if let RunEvent::Returned(record) = event {
            tasks.queue.runs(record);
            if tasks.queue.returned(record)
                && let Some(engine) = &self.engine
            {
                engine.kill(self.kernel.executor_id(&record.name).into_iter().collect());
            }
            self.publish_decided(at);
            return false;
        }
        if let RunEvent::Disconnected(_) = event {
            tasks.queue.no_offers_come();
            return false;
        }
        if let RunEvent::AgentLost { agent_id, .. } = event {
            tasks.queue.agent_lost(agent_id, at);
            self.publish_decided(at);
            return false;
        }
        let (events, is_told) = match event {
            RunEvent::Placed { record, .. } => {
                tasks.queue.placed(record);
                return true;
            }
            RunEvent::Running(record) => {
                tasks.queue.runs(record);
                return true;
            }
            RunEvent::Ending(_) => return true,
            RunEvent::Ended(record) => (tasks.queue.ended(record, self.output_of(record)), true),
            RunEvent::GivenUp(record) => (tasks.queue.ended(record, None), false),
            _ => return false,
        };
        self.publish_tasks(at, events);
        is_told
    }

    /// Writes down which executor is which task, if their sandboxes are on this machine.
    fn index_attempts(&mut self, event: &RunEvent) {
        let Some(tasks) = &mut self.tasks else { return };
        let written = match (event, &self.settings.target.sandboxes, &mut tasks.index) {
            (RunEvent::Registered { framework_id, .. }, SandboxPlace::Here(folder), None) => {
                AttemptIndex::start(folder, framework_id).map(|index| tasks.index = Some(index))
            }
            (RunEvent::Placed { record, .. }, _, Some(index)) => match tasks.queue.id_of(record) {
                Some(id) => index.add(id, &record.name),
                None => Ok(()),
            },
            _ => Ok(()),
        };
        if let Err(error) = written {
            tasks.index = None;
            remark_on_index(&error);
        }
    }

    /// Does what depends on the time: demand, tasks that fit nowhere, and the end.
    pub(super) fn refresh_tasks(&mut self, now: Timestamp) {
        let Some(tasks) = &mut self.tasks else { return };
        let mut events = tasks.queue.take_decided(now);
        events.extend(tasks.queue.follow_too_large(now));
        events.extend(tasks.queue.refuse_without_hosts(now));
        self.publish_tasks(now, events);
        let Some(tasks) = &mut self.tasks else { return };
        if let Some(why) = tasks.queue.failure() {
            return self.stop(EndReason::ResultsFailed(why));
        }
        let idle = tasks.queue.end_idle_hosts(now);
        let idle = idle.iter().filter_map(|name| self.kernel.executor_id(name)).collect();
        if let Some(engine) = &self.engine {
            engine.kill(idle);
        }
        let counts = tasks.counts();
        if counts.ended() == counts.all {
            self.stop(EndReason::TasksEnded(counts));
        }
    }

    /// Tells what a host or a lost agent has decided about tasks.
    fn publish_decided(&mut self, at: Timestamp) {
        let Some(tasks) = &self.tasks else { return };
        let events = tasks.queue.take_decided(at);
        self.publish_tasks(at, events);
    }

    pub(super) fn publish_tasks(&mut self, at: Timestamp, events: Vec<TaskEvent>) {
        for event in events {
            let is_failure = matches!(event.what, TaskChange::Failed | TaskChange::Skipped);
            if let Some(tasks) = &mut self.tasks
                && is_failure
                && tasks.failed.len() < FAILED_SHOWN_MAX
            {
                tasks.failed.push(event.clone());
            }
            self.publish(at, RunEvent::Task(event));
        }
        self.follow_task_demand(at);
    }

    /// Has offers suppressed while none are wanted for tasks, by an executor limit of 0.
    fn follow_task_demand(&mut self, now: Timestamp) {
        let (Some(tasks), Some(engine)) = (&mut self.tasks, &self.engine) else { return };
        if let Some(is_wanted) = tasks.demand.follow(&tasks.queue, &self.kernel, now) {
            let limit = if is_wanted { self.settings.config.executor_limit() } else { Some(0) };
            // The limit of the settings is allowed, and so is none.
            let _set = engine.set_executor_limit(limit);
        }
    }

    /// The file with the output of an executor, on its agent.
    fn output_of(&self, record: &ExecutorRecord) -> Option<String> {
        let folder = match (&record.process.sandbox, &self.settings.target.sandboxes) {
            (Some(folder), _) => folder.clone(),
            (None, place @ (SandboxPlace::OnAgents | SandboxPlace::OnWorkers)) => {
                let path = place.path(&self.run_state.framework_id);
                path.replace("{agent_id}", &record.agent_id).replace("{executor}", &record.name)
            }
            (None, _) => return None,
        };
        Some(format!("{folder}/stdout"))
    }
}
