//! Converts Mesos task statuses into the engine's updates.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::process_report::process_report;
use crate::engine::cluster_manager::Update;
use crate::foreign_text::cut_message;
use crate::mesos_v1::messages::{Reason, TaskState as State, TaskStatus};
use crate::status::{TaskState, UpdateReason};

/// Converts a status. A state that this crate doesn't know becomes `Unknown`, and a reason that it doesn't know becomes
/// `Other`. The update asks for an acknowledgement only if it has a uuid.
#[must_use]
pub(super) fn update(status: TaskStatus) -> Update {
    let reason = status.reason.and_then(|reason| Reason::try_from(reason).ok());
    // The time of an answer to a reconciliation is that of the answer.
    let is_answer = reason == Some(Reason::Reconciliation);
    let process = process_report(&status).map(Box::new);
    Update {
        executor: status.task_id.value,
        agent_id: status.agent_id.map(|agent| agent.value).filter(|id| !id.is_empty()),
        state: State::try_from(status.state).map_or(TaskState::Unknown, state),
        reason: reason.map_or(UpdateReason::Other, meaning),
        message: cut_message(status.message.unwrap_or_default()),
        uuid: status.uuid.filter(|uuid| !uuid.is_empty()),
        reported_at: status.timestamp.filter(|_| !is_answer).and_then(time),
        process,
        facts: None,
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
            let status = status(State::Lost.into(), Some((*reason).into()));
            assert_eq!(update(status).reason, wanted, "{name}");
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
