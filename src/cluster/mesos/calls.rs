//! Builds the messages of calls to the master.

use std::time::Duration;

use super::config::MesosConfig;
use super::framework;
use crate::engine::cluster_manager::ReconcileTask;
use crate::limits::REFUSE_MAX;
use crate::mesos_v1::json::Named as _;
use crate::mesos_v1::messages::call::{
    Accept, AcceptInverseOffers, Acknowledge, AcknowledgeOperationStatus, Call, Decline, Kill,
    Message, Reconcile, Revive, Shutdown, Subscribe, Suppress, Type, UpdateFramework,
};
use crate::mesos_v1::messages::{
    self, AgentId, DurationInfo, ExecutorId, Filters, KillPolicy, OfferId, OperationStatus, TaskId,
};

fn call(kind: Type) -> Call {
    Call { r#type: Some(kind.into()), ..Call::default() }
}

/// Sets the framework's id in a call.
pub(super) fn sign(call: &mut Call, framework_id: &str) {
    if call.framework_id.as_ref().is_none_or(|id| id.value != framework_id) {
        call.framework_id = Some(framework::framework_id(framework_id));
    }
}

/// The call's name, for display.
pub(super) fn name(call: &Call) -> &'static str {
    call.r#type().name()
}

pub(super) fn subscribe(config: &MesosConfig, framework_id: Option<&str>) -> Call {
    let subscribe = Subscribe {
        framework_info: framework::info(config, framework_id),
        suppressed_roles: Vec::new(),
        offer_constraints: framework::constraints(config),
    };
    // The same id in both places, or none: see PROTOCOL item 2 in `tests/support/mesos`.
    let framework_id = framework_id.map(framework::framework_id);
    Call { framework_id, subscribe: Some(subscribe), ..call(Type::Subscribe) }
}

pub(super) fn update_framework(config: &MesosConfig, framework_id: &str) -> Call {
    let update = UpdateFramework {
        framework_info: framework::info(config, Some(framework_id)),
        suppressed_roles: Vec::new(),
        offer_constraints: framework::constraints(config),
    };
    Call { update_framework: Some(update), ..call(Type::UpdateFramework) }
}

pub(super) fn teardown() -> Call {
    call(Type::Teardown)
}

pub(super) fn filters(refuse: Duration) -> Filters {
    Filters { refuse_seconds: Some(refuse.min(REFUSE_MAX).as_secs_f64()) }
}

pub(super) fn accept(accept: Accept) -> Call {
    Call { accept: Some(accept), ..call(Type::Accept) }
}

pub(super) fn decline(offers: Vec<String>, refuse: Duration) -> Call {
    let offer_ids = offers.into_iter().map(|value| OfferId { value }).collect();
    let decline = Decline { offer_ids, filters: Some(filters(refuse)) };
    Call { decline: Some(decline), ..call(Type::Decline) }
}

pub(super) fn accept_inverse_offers(inverse_offer_ids: Vec<OfferId>) -> Call {
    let accept = AcceptInverseOffers { inverse_offer_ids, filters: None };
    Call { accept_inverse_offers: Some(accept), ..call(Type::AcceptInverseOffers) }
}

pub(super) fn revive() -> Call {
    Call { revive: Some(Revive::default()), ..call(Type::Revive) }
}

pub(super) fn suppress() -> Call {
    Call { suppress: Some(Suppress::default()), ..call(Type::Suppress) }
}

pub(super) fn kill(executor: &str, agent_id: Option<&str>, grace: Duration) -> Call {
    let kill = Kill {
        task_id: task_id(executor),
        agent_id: agent_id.map(agent),
        kill_policy: Some(kill_policy(grace)),
    };
    Call { kill: Some(kill), ..call(Type::Kill) }
}

pub(super) fn acknowledge(executor: &str, agent_id: &str, uuid: &[u8]) -> Call {
    let acknowledge = Acknowledge {
        agent_id: agent(agent_id),
        task_id: task_id(executor),
        uuid: uuid.to_owned(),
    };
    Call { acknowledge: Some(acknowledge), ..call(Type::Acknowledge) }
}

/// Builds the acknowledgement of an operation's status. `None` if the status requires none or lacks the necessary
/// fields.
pub(super) fn acknowledge_operation(status: OperationStatus) -> Option<Call> {
    let acknowledge = AcknowledgeOperationStatus {
        agent_id: status.agent_id,
        resource_provider_id: status.resource_provider_id,
        uuid: status.uuid?.value,
        operation_id: status.operation_id?,
    };
    let kind = Type::AcknowledgeOperationStatus;
    Some(Call { acknowledge_operation_status: Some(acknowledge), ..call(kind) })
}

/// Builds a reconciliation of these executors, or of all if there are none.
pub(super) fn reconcile(tasks: &[ReconcileTask<'_>]) -> Call {
    let task = |it: &ReconcileTask<'_>| messages::call::ReconcileTask {
        task_id: task_id(it.executor),
        agent_id: Some(agent(it.agent_id)),
    };
    let reconcile = Reconcile { tasks: tasks.iter().map(task).collect() };
    Call { reconcile: Some(reconcile), ..call(Type::Reconcile) }
}

pub(super) fn shutdown(executor_id: &str, agent_id: &str) -> Call {
    let executor_id = ExecutorId { value: executor_id.to_owned() };
    let shutdown = Shutdown { executor_id, agent_id: agent(agent_id) };
    Call { shutdown: Some(shutdown), ..call(Type::Shutdown) }
}

pub(super) fn message(executor_id: &str, agent_id: &str, data: Vec<u8>) -> Call {
    let executor_id = ExecutorId { value: executor_id.to_owned() };
    let message = Message { agent_id: agent(agent_id), executor_id, data };
    Call { message: Some(message), ..call(Type::Message) }
}

fn agent(id: &str) -> AgentId {
    AgentId { value: id.to_owned() }
}

fn task_id(executor: &str) -> TaskId {
    TaskId { value: executor.to_owned() }
}

/// Builds the policy of how long a task may take to end after a kill.
#[must_use]
pub(super) fn kill_policy(grace: Duration) -> KillPolicy {
    let nanoseconds = i64::try_from(grace.as_nanos()).unwrap_or(i64::MAX);
    KillPolicy { grace_period: Some(DurationInfo { nanoseconds }) }
}
