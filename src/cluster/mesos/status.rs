//! Converts Mesos task statuses into the engine's updates.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::process_report::{hosting_executor, process_report};
use crate::engine::cluster_manager::Update;
use crate::foreign_text::cut_message;
use crate::mesos_v1::messages::{Reason, Source, TaskState as State, TaskStatus};
use crate::status::{TaskState, UpdateReason};

/// Converts a status. A state that this crate doesn't know becomes `Unknown`, and a reason that it doesn't know becomes
/// `Other`. The update asks for an acknowledgement only if it has a uuid.
///
/// A task in a host whose host has ended is [`TaskState::Gone`], as with lost agents: the failure isn't its own. What
/// an agent doesn't have any more when it comes back is told as with a removed agent: nobody knows how far it came.
/// What has failed when its agent comes back is told as with a reconciliation: the master says so, and may be ahead of
/// the agent's own updates.
#[must_use]
pub(super) fn update(status: TaskStatus) -> Update {
    let reason = status.reason.and_then(|reason| Reason::try_from(reason).ok());
    // The time of an answer to a reconciliation is that of the answer.
    let is_answer = reason == Some(Reason::Reconciliation);
    let process = process_report(&status).map(Box::new);
    let host = hosting_executor(&status).map(str::to_owned);
    let told = State::try_from(status.state).map_or(TaskState::Unknown, state);
    let source = status.source.and_then(|source| Source::try_from(source).ok());
    let message = status.message.unwrap_or_default();
    let (state, message) = match (host, told) {
        (Some(host), TaskState::Failed) => hosted_failure(&host, source, reason, message),
        _ => (told, message),
    };
    let reason = match (state, reason) {
        (TaskState::Gone, Some(Reason::AgentReregistered)) => UpdateReason::AgentRemoved,
        (TaskState::Failed, Some(Reason::AgentReregistered)) => UpdateReason::Reconciliation,
        (_, reason) => reason.map_or(UpdateReason::Other, meaning),
    };
    Update {
        executor: status.task_id.value,
        agent_id: status.agent_id.map(|agent| agent.value).filter(|id| !id.is_empty()),
        state,
        reason,
        message: cut_message(message),
        uuid: status.uuid.filter(|uuid| !uuid.is_empty()),
        reported_at: status.timestamp.filter(|_| !is_answer).and_then(time),
        process,
        facts: None,
    }
}

/// What it means that a task in a host has failed. What the agent says is about the host, as its end, and so is what
/// the host itself says when it ends. The master repeats what it has heard of tasks that have ended, after an agent was
/// away or on request, and doesn't say why they have; the update that does is kept by the agent until it is
/// acknowledged.
fn hosted_failure(
    host: &str,
    source: Option<Source>,
    reason: Option<Reason>,
    message: String,
) -> (TaskState, String) {
    match source {
        Some(Source::Master) => (TaskState::Running, message),
        Some(Source::Executor) if reason != Some(Reason::ExecutorTerminated) => {
            (TaskState::Failed, message)
        }
        _ => (TaskState::Gone, format!("its host {host} is gone: {message}")),
    }
}

/// Converts a time in seconds since 1970. `None` if there is no such time.
fn time(seconds: f64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(seconds).ok()?)
}

fn state(state: State) -> TaskState {
    match state {
        State::Staging => TaskState::Staging,
        State::Starting => TaskState::Starting,
        State::Running => TaskState::Running,
        State::Killing => TaskState::Killing,
        State::Finished => TaskState::Finished,
        State::Failed => TaskState::Failed,
        State::Killed => TaskState::Killed,
        State::Error => TaskState::Error,
        State::Lost => TaskState::Lost,
        State::Dropped => TaskState::Dropped,
        State::Unreachable => TaskState::Unreachable,
        State::Gone => TaskState::Gone,
        State::GoneByOperator => TaskState::GoneByOperator,
        State::Unknown => TaskState::Unknown,
    }
}

/// Converts a reason. All reasons are listed, so that a new one isn't ignored by accident.
fn meaning(reason: Reason) -> UpdateReason {
    match reason {
        Reason::AgentDisconnected => UpdateReason::AgentDisconnected,
        Reason::AgentRemoved | Reason::AgentRemovedByOperator => UpdateReason::AgentRemoved,
        Reason::Reconciliation => UpdateReason::Reconciliation,
        Reason::InvalidOffers => UpdateReason::InvalidOffers,
        Reason::AgentDraining => UpdateReason::AgentDraining,
        Reason::ContainerPreempted => UpdateReason::Preempted,
        // The states that come with these are sufficient.
        Reason::AgentReregistered
        | Reason::AgentRestarted
        | Reason::AgentUnknown
        | Reason::CommandExecutorFailed
        | Reason::ContainerLaunchFailed
        | Reason::ContainerLimitation
        | Reason::ContainerLimitationDisk
        | Reason::ContainerLimitationMemory
        | Reason::ContainerUpdateFailed
        | Reason::ExecutorRegistrationTimeout
        | Reason::ExecutorReregistrationTimeout
        | Reason::ExecutorTerminated
        | Reason::ExecutorUnregistered
        | Reason::FrameworkRemoved
        | Reason::GcError
        | Reason::InvalidFrameworkid
        | Reason::IoSwitchboardExited
        | Reason::MasterDisconnected
        | Reason::MaxCompletionTimeReached
        | Reason::ResourcesUnknown
        | Reason::TaskCheckStatusUpdated
        | Reason::TaskGroupInvalid
        | Reason::TaskGroupUnauthorized
        | Reason::TaskHealthCheckStatusUpdated
        | Reason::TaskInvalid
        | Reason::TaskKilledDuringLaunch
        | Reason::TaskUnauthorized
        | Reason::TaskUnknown => UpdateReason::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesos_v1::json::Named;

    fn status(state: i32, reason: Option<i32>) -> TaskStatus {
        TaskStatus { task_id: "etl-1.0".into(), state, reason, ..TaskStatus::default() }
    }

    /// Goal: each state is converted into the state of the same meaning. Method: all states of the protocol, by name,
    /// and unknown ones.
    #[test]
    fn states_keep_their_names() {
        for (state, name) in State::NAMES {
            assert_eq!(update(status((*state).into(), None)).state.as_str(), *name);
        }
        for unknown in [-1, 14, i32::MAX] {
            let update = update(status(unknown, Some(unknown)));
            assert_eq!((update.state, update.reason), (TaskState::Unknown, UpdateReason::Other));
        }
    }

    /// Goal: the reasons that change the kernel's decision are distinguished, and no other reason is converted into one
    /// of them. Method: all reasons of the protocol, by name.
    #[test]
    fn reasons_that_matter_are_told_apart() {
        for (reason, name) in Reason::NAMES {
            let wanted = match *name {
                "REASON_AGENT_DISCONNECTED" => UpdateReason::AgentDisconnected,
                "REASON_AGENT_REMOVED" | "REASON_AGENT_REMOVED_BY_OPERATOR" => {
                    UpdateReason::AgentRemoved
                }
                "REASON_RECONCILIATION" => UpdateReason::Reconciliation,
                "REASON_INVALID_OFFERS" => UpdateReason::InvalidOffers,
                "REASON_AGENT_DRAINING" => UpdateReason::AgentDraining,
                "REASON_CONTAINER_PREEMPTED" => UpdateReason::Preempted,
                _ => UpdateReason::Other,
            };
            let lost = status(State::Lost.into(), Some((*reason).into()));
            assert_eq!(update(lost).reason, wanted, "{name}");
            let gone = status(State::Gone.into(), Some((*reason).into()));
            let is_back = *name == "REASON_AGENT_REREGISTERED";
            let of_back = |reason| if is_back { reason } else { wanted };
            assert_eq!(update(gone).reason, of_back(UpdateReason::AgentRemoved), "{name}");
            let failed = update(status(State::Failed.into(), Some((*reason).into())));
            assert_eq!(failed.reason, of_back(UpdateReason::Reconciliation), "{name}");
        }
    }

    /// Goal: a task that fails with its host is gone, what fails by itself has failed, and what isn't told by a witness
    /// has not ended yet. Method: states, sources,
    /// reasons and executors.
    #[test]
    fn the_end_of_a_host_is_no_failure_of_its_tasks() {
        let (agent, own) = (Some(Source::Agent), Some(Source::Executor));
        let master = Some(Source::Master);
        let (ended, memory) = (Reason::ExecutorTerminated, Reason::ContainerLimitationMemory);
        for (state, source, reason, executor, wanted) in [
            (State::Failed, agent, Some(ended), "h", TaskState::Gone),
            (State::Failed, agent, Some(memory), "h", TaskState::Gone),
            (State::Failed, own, Some(ended), "h", TaskState::Gone),
            (State::Failed, own, None, "h", TaskState::Failed),
            (State::Failed, master, Some(Reason::AgentReregistered), "h", TaskState::Running),
            (State::Failed, master, Some(Reason::Reconciliation), "h", TaskState::Running),
            (State::Finished, master, Some(Reason::Reconciliation), "h", TaskState::Finished),
            (State::Killed, own, Some(ended), "h", TaskState::Killed),
            (State::Failed, agent, Some(ended), "etl-1.0", TaskState::Failed),
            (State::Failed, agent, Some(ended), "", TaskState::Failed),
        ] {
            let mut status = status(state.into(), reason.map(Into::into));
            status.source = source.map(Into::into);
            status.executor_id = Some(executor.into());
            status.message = Some("why".to_owned());
            let update = update(status);
            assert_eq!(update.state, wanted, "{state:?} {source:?} {reason:?} {executor}");
            let is_gone = update.state == TaskState::Gone;
            assert_eq!(update.message, if is_gone { "its host h is gone: why" } else { "why" });
        }
    }

    /// Goal: absent fields stay absent. Method: a status with all fields, and one with none or with empty texts.
    #[test]
    fn what_is_not_said_is_absent() {
        let mut full = status(State::Running.into(), None);
        full.agent_id = Some("S1".into());
        full.message = Some("it runs".to_owned());
        full.uuid = Some(vec![7; 16]);
        full.timestamp = Some(1.5);
        let told = update(full.clone());
        assert_eq!((told.executor.as_str(), told.agent_id.as_deref()), ("etl-1.0", Some("S1")));
        assert_eq!((told.message.as_str(), told.uuid), ("it runs", Some(vec![7; 16])));
        assert_eq!(told.reported_at, Some(UNIX_EPOCH + Duration::from_millis(1_500)));
        let mut empty = full.clone();
        (empty.uuid, empty.agent_id, empty.message) = (Some(Vec::new()), Some("".into()), None);
        empty.timestamp = None;
        let told = update(empty);
        assert_eq!((told.agent_id, told.message.as_str(), told.uuid), (None, "", None));
        assert_eq!(told.reported_at, None);
        let mut answer = full.clone();
        answer.reason = Some(Reason::Reconciliation.into());
        assert_eq!(update(answer).reported_at, None, "an answer has the time of the question");
        for absurd in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            full.timestamp = Some(absurd);
            assert_eq!(update(full.clone()).reported_at, None);
        }
    }
}
