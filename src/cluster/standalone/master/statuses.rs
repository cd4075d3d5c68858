//! What frameworks are told about their tasks.

use super::registered::task_state;
use super::{MasterNotice, StandaloneMaster};
use crate::cluster::standalone::protocol::{
    ExecutorKey, ExecutorUpdate, ReportedState, WorkerEvent,
};
use crate::mesos_v1::host_labels::{EXHAUSTED_LABEL, FOLDER_LABEL, PID_LABEL};
use crate::mesos_v1::messages::event::{Type, Update};
use crate::mesos_v1::messages::{
    ContainerStatus, Event, Label, Labels, Reason, Source, TaskState, TaskStatus,
};

/// An event of this type, with nothing else set.
pub(super) fn event(of: Type) -> Event {
    Event { r#type: Some(of.into()), ..Event::default() }
}

/// The state for frameworks that know `TASK_LOST` alone for whatever was lost.
fn state_for(state: TaskState, is_partition_aware: bool) -> TaskState {
    match state {
        TaskState::Dropped
        | TaskState::Unreachable
        | TaskState::Gone
        | TaskState::GoneByOperator
        | TaskState::Unknown
            if !is_partition_aware =>
        {
            TaskState::Lost
        }
        state => state,
    }
}

impl StandaloneMaster {
    /// Tells a framework a state that the master found out. It needs no acknowledgement.
    pub(super) fn report(
        &mut self,
        key: &ExecutorKey,
        worker: Option<&str>,
        state: TaskState,
        reason: Reason,
        message: &str,
    ) {
        let Some(number) = self.framework_number(&key.framework) else { return };
        let is_aware =
            self.frameworks.get(&number).is_some_and(|framework| framework.is_partition_aware());
        let status = TaskStatus {
            task_id: key.executor.as_str().into(),
            state: state_for(state, is_aware).into(),
            message: (!message.is_empty()).then(|| message.to_owned()),
            source: Some(Source::Master.into()),
            reason: Some(reason.into()),
            agent_id: worker.map(Into::into),
            ..TaskStatus::default()
        };
        let update = Some(Update { status });
        self.tell_framework(number, Event { update, ..event(Type::Update) });
    }

    /// Takes a worker's update: its resources are free if it is an end, and the framework is told. Returns whether
    /// something has become free: workers repeat ends until they are acknowledged.
    pub(super) fn take_update(&mut self, worker: &str, update: ExecutorUpdate) -> bool {
        let state = task_state(update.state, update.is_lost);
        let own = self.workers.get_mut(worker).and_then(|it| it.tasks.get_mut(&update.key));
        let Some(task) = own else {
            // It was launched by somebody else, or its end is acknowledged: the framework isn't told.
            self.acknowledge_update(worker, &update.key, update.uuid, false);
            return false;
        };
        let is_end = update.state.is_end();
        let frees = is_end && !task.has_ended;
        if !task.has_ended {
            task.state = state;
            task.has_ended = is_end;
            self.totals.count_end(state);
        }
        // That it has ended may be known from the list with which its worker came back.
        if is_end && task.end_uuid.is_none() {
            task.end_uuid = Some(update.uuid.clone());
            if matches!(update.state, ReportedState::Failed | ReportedState::Dropped) {
                self.notices.push(MasterNotice::ExecutorFailed {
                    key: update.key.clone(),
                    worker: worker.to_owned(),
                    state,
                    message: update.message.clone().unwrap_or_default(),
                });
            }
        }
        // It isn't what the framework asked for, nor a failure of its own.
        let is_unwanted =
            task.kill_grace.is_none() && matches!(state, TaskState::Killed | TaskState::Failed);
        let is_drained =
            is_unwanted && self.workers.get(worker).is_some_and(|it| it.ends_executors);
        let Some(number) = self.framework_number(&update.key.framework) else {
            // During recovery it may still come back.
            if !self.is_recovering() {
                self.acknowledge_update(worker, &update.key, update.uuid, is_end);
            }
            return frees;
        };
        let Some(framework) = self.frameworks.get_mut(&number) else { return frees };
        if framework.connection.is_none() {
            framework.missed.keep(worker, &update);
            return frees;
        }
        let is_aware = framework.is_partition_aware();
        let labels = status_labels(&update);
        let status = TaskStatus {
            task_id: update.key.executor.as_str().into(),
            state: state_for(state, is_aware).into(),
            message: update.message,
            source: Some(Source::Executor.into()),
            reason: is_drained.then(|| Reason::AgentDraining.into()),
            agent_id: Some(worker.into()),
            executor_id: Some(update.host.as_ref().unwrap_or(&update.key.executor).as_str().into()),
            timestamp: Some(update.timestamp),
            uuid: uuid_bytes(&update.uuid),
            container_status: update.pid.map(|pid| ContainerStatus {
                executor_pid: Some(pid),
                ..ContainerStatus::default()
            }),
            labels,
            ..TaskStatus::default()
        };
        let update = Some(Update { status });
        self.tell_framework(number, Event { update, ..event(Type::Update) });
        frees
    }

    /// Tells a worker that an update has arrived. An executor whose end is acknowledged is forgotten.
    pub(super) fn acknowledge_update(
        &mut self,
        worker: &str,
        key: &ExecutorKey,
        uuid: String,
        is_end: bool,
    ) {
        self.tell_worker(worker, WorkerEvent::Ack { key: key.clone(), uuid });
        if is_end {
            self.forget_task(worker, key);
        }
    }

    /// Forgets an executor. A worker that waits for the last one leaves then.
    pub(super) fn forget_task(&mut self, worker: &str, key: &ExecutorKey) {
        if let Some(it) = self.workers.get_mut(worker) {
            it.tasks.remove(key);
        }
        if self.placed.get(key).is_some_and(|placed| placed == worker) {
            self.placed.remove(key);
        }
        self.end_decommission(worker);
    }
}

/// The labels by which the hosts of tasks on Mesos tell of a task's process; of other executors the one that says that
/// the worker's machine had nothing left for it.
fn status_labels(update: &ExecutorUpdate) -> Option<Labels> {
    let is_hosted = update.host.is_some();
    let pid = update.pid.filter(|_| is_hosted).map(|pid| pid.to_string());
    let folder = update.folder.clone().filter(|_| is_hosted);
    let is_exhausted = (update.is_exhausted && !is_hosted).then(|| "true".to_owned());
    let told = [(PID_LABEL, pid), (FOLDER_LABEL, folder), (EXHAUSTED_LABEL, is_exhausted)];
    let told = told.into_iter().filter(|(_, value)| value.is_some());
    let labels: Vec<Label> =
        told.map(|(key, value)| Label { key: key.to_owned(), value }).collect();
    (!labels.is_empty()).then_some(Labels { labels })
}

/// The bytes of 32 hexadecimal digits.
fn uuid_bytes(digits: &str) -> Option<Vec<u8>> {
    let number = u128::from_str_radix(digits, 16).ok()?;
    Some(number.to_be_bytes().to_vec())
}

/// The 32 hexadecimal digits of bytes, if they are 16.
pub(super) fn uuid_digits(bytes: &[u8]) -> Option<String> {
    let bytes: [u8; 16] = bytes.try_into().ok()?;
    Some(format!("{:032x}", u128::from_be_bytes(bytes)))
}
