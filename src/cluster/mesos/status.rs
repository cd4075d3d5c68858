//! (stub)
use super::wire::messages::{Reason, TaskState as T, TaskStatus};
use crate::engine::seam::Update;
use crate::status::{TaskState, UpdateReason};
pub(super) fn update(s: TaskStatus) -> Option<Update> {
    let state = match s.state() {
        T::Staging => TaskState::Staging,
        T::Starting => TaskState::Starting,
        T::Running => TaskState::Running,
        T::Killing => TaskState::Killing,
        T::Finished => TaskState::Finished,
        T::Failed => TaskState::Failed,
        T::Killed => TaskState::Killed,
        T::Error => TaskState::Error,
        T::Lost => TaskState::Lost,
        T::Dropped => TaskState::Dropped,
        T::Unreachable => TaskState::Unreachable,
        T::Gone => TaskState::Gone,
        T::GoneByOperator => TaskState::GoneByOperator,
        _ => TaskState::Unknown,
    };
    let reason = match s.reason() {
        Reason::Reconciliation => UpdateReason::Reconciliation,
        Reason::InvalidOffers => UpdateReason::InvalidOffers,
        Reason::AgentDisconnected => UpdateReason::AgentDisconnected,
        Reason::AgentRemoved => UpdateReason::AgentRemoved,
        _ => UpdateReason::Other,
    };
    Some(Update {
        executor: s.task_id.value,
        agent_id: s.agent_id.map(|a| a.value),
        state,
        reason,
        message: s.message.unwrap_or_default(),
        uuid: s.uuid.filter(|u| !u.is_empty()),
    })
}
