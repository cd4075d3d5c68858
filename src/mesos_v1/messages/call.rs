//! Calls: the messages that a framework sends to the master.

use serde::{Deserialize, Serialize};

use super::{
    AgentId, ExecutorId, Filters, FrameworkId, FrameworkInfo, KillPolicy, OfferConstraints,
    OfferId, Operation, OperationId, ResourceProviderId, ResourceRequest, TaskId,
};
use crate::mesos_v1::json::{Base64, OptionalName, names};

/// A message from a framework to the master. The field named by `type` is set, if there is one.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Call {
    /// The id of the framework. Unset in the first subscription.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub framework_id: Option<FrameworkId>,
    /// The type of the call.
    #[prost(enumeration = "Type", optional, tag = "2")]
    #[serde(with = "OptionalName::<Type>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
    /// See [`Subscribe`].
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<Subscribe>,
    /// See [`Accept`].
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept: Option<Accept>,
    /// See [`Decline`].
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decline: Option<Decline>,
    /// See [`AcceptInverseOffers`].
    #[prost(message, optional, tag = "13")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept_inverse_offers: Option<AcceptInverseOffers>,
    /// See [`DeclineInverseOffers`].
    #[prost(message, optional, tag = "14")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decline_inverse_offers: Option<DeclineInverseOffers>,
    /// See [`Revive`].
    #[prost(message, optional, tag = "15")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revive: Option<Revive>,
    /// See [`Kill`].
    #[prost(message, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill: Option<Kill>,
    /// See [`Shutdown`].
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shutdown: Option<Shutdown>,
    /// See [`Acknowledge`].
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledge: Option<Acknowledge>,
    /// See [`AcknowledgeOperationStatus`].
    #[prost(message, optional, tag = "17")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledge_operation_status: Option<AcknowledgeOperationStatus>,
    /// See [`Reconcile`].
    #[prost(message, optional, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconcile: Option<Reconcile>,
    /// See [`ReconcileOperations`].
    #[prost(message, optional, tag = "18")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconcile_operations: Option<ReconcileOperations>,
    /// See [`Message`].
    #[prost(message, optional, tag = "10")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// See [`Request`].
    #[prost(message, optional, tag = "11")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
    /// See [`Suppress`].
    #[prost(message, optional, tag = "16")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppress: Option<Suppress>,
    /// See [`UpdateFramework`].
    #[prost(message, optional, tag = "19")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_framework: Option<UpdateFramework>,
}

names! {
    /// The type of a call.
    pub enum Type {
        /// Unset, or a value that the sender didn't know.
        Unknown = 0, "UNKNOWN";
        /// Subscribes to events.
        Subscribe = 1, "SUBSCRIBE";
        /// Ends all tasks and removes the framework.
        Teardown = 2, "TEARDOWN";
        /// Uses offers.
        Accept = 3, "ACCEPT";
        /// Declines offers.
        Decline = 4, "DECLINE";
        /// Accepts inverse offers: agrees to agents' maintenance.
        AcceptInverseOffers = 13, "ACCEPT_INVERSE_OFFERS";
        /// Declines inverse offers: doesn't agree to agents' maintenance.
        DeclineInverseOffers = 14, "DECLINE_INVERSE_OFFERS";
        /// Removes filters and suppression, so that all resources are offered again.
        Revive = 5, "REVIVE";
        /// Kills a task.
        Kill = 6, "KILL";
        /// Shuts an executor down.
        Shutdown = 7, "SHUTDOWN";
        /// Acknowledges a task's status, which is then no longer resent.
        Acknowledge = 8, "ACKNOWLEDGE";
        /// Acknowledges an operation's status, which is then no longer resent.
        AcknowledgeOperationStatus = 15, "ACKNOWLEDGE_OPERATION_STATUS";
        /// Requests the current states of tasks.
        Reconcile = 9, "RECONCILE";
        /// Requests the current states of operations.
        ReconcileOperations = 16, "RECONCILE_OPERATIONS";
        /// Sends data to an executor.
        Message = 10, "MESSAGE";
        /// Requests resources.
        Request = 11, "REQUEST";
        /// Suppresses offers.
        Suppress = 12, "SUPPRESS";
        /// Changes the framework's description.
        UpdateFramework = 17, "UPDATE_FRAMEWORK";
    }
}

/// Subscribes to events.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Subscribe {
    /// The framework. Its id equals the call's `framework_id`, if there is one.
    #[prost(message, required, tag = "1")]
    pub framework_info: FrameworkInfo,
    /// The roles that are suppressed, and receive no offers.
    #[prost(string, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suppressed_roles: Vec<String>,
    /// Constraints on the agents that are offered.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offer_constraints: Option<OfferConstraints>,
}

/// Uses offers, which must all be of one agent.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Accept {
    /// The offers.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub offer_ids: Vec<OfferId>,
    /// The operations on the offers, in order.
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<Operation>,
    /// The filter for the unused resources.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filters>,
}

/// Declines offers.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Decline {
    /// The offers.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub offer_ids: Vec<OfferId>,
    /// The filter for the declined resources.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filters>,
}

/// Accepts inverse offers: agrees to agents' maintenance.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AcceptInverseOffers {
    /// The inverse offers.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inverse_offer_ids: Vec<OfferId>,
    /// The filter, which limits how soon inverse offers are repeated.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filters>,
}

/// Declines inverse offers: doesn't agree to agents' maintenance.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DeclineInverseOffers {
    /// The inverse offers.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inverse_offer_ids: Vec<OfferId>,
    /// The filter, which limits how soon inverse offers are repeated.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filters>,
}

/// Removes filters and suppression, so that all resources are offered again.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Revive {
    /// The roles. Empty means all roles.
    #[prost(string, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
}

/// Kills a task.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Kill {
    /// The task.
    #[prost(message, required, tag = "1")]
    pub task_id: TaskId,
    /// The agent that it runs on, if known.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The kill policy, if it differs from the task's own.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill_policy: Option<KillPolicy>,
}

/// Shuts an executor down.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Shutdown {
    /// The executor.
    #[prost(message, required, tag = "1")]
    pub executor_id: ExecutorId,
    /// The agent that it runs on.
    #[prost(message, required, tag = "2")]
    pub agent_id: AgentId,
}

/// Acknowledges a task's status, which is then no longer resent.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Acknowledge {
    /// The agent that the task runs on.
    #[prost(message, required, tag = "1")]
    pub agent_id: AgentId,
    /// The task.
    #[prost(message, required, tag = "2")]
    pub task_id: TaskId,
    /// The UUID of the status.
    #[prost(bytes = "vec", required, tag = "3")]
    #[serde(with = "Base64")]
    pub uuid: Vec<u8>,
}

/// Acknowledges an operation's status, which is then no longer resent.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AcknowledgeOperationStatus {
    /// The agent of the operation.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The resource provider of the operation.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_provider_id: Option<ResourceProviderId>,
    /// The UUID of the status.
    #[prost(bytes = "vec", required, tag = "3")]
    #[serde(with = "Base64")]
    pub uuid: Vec<u8>,
    /// The operation.
    #[prost(message, required, tag = "4")]
    pub operation_id: OperationId,
}

/// Requests the current states of tasks.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Reconcile {
    /// The tasks. Empty means all tasks that the master knows to be alive.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<ReconcileTask>,
}

/// A task to reconcile.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ReconcileTask {
    /// The task.
    #[prost(message, required, tag = "1")]
    pub task_id: TaskId,
    /// The agent that it is expected on.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
}

/// Requests the current states of operations.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ReconcileOperations {
    /// The operations. Empty means all operations.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<ReconcileOperation>,
}

/// An operation to reconcile.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ReconcileOperation {
    /// The operation.
    #[prost(message, required, tag = "1")]
    pub operation_id: OperationId,
    /// The agent that it is expected on.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The resource provider of the operation.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_provider_id: Option<ResourceProviderId>,
}

/// Sends data to an executor. Delivery is not guaranteed.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Message {
    /// The agent that the executor runs on.
    #[prost(message, required, tag = "1")]
    pub agent_id: AgentId,
    /// The executor.
    #[prost(message, required, tag = "2")]
    pub executor_id: ExecutorId,
    /// The data.
    #[prost(bytes = "vec", required, tag = "3")]
    #[serde(with = "Base64")]
    pub data: Vec<u8>,
}

/// Requests resources. Mesos' own allocator ignores it.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    /// The requested resources.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<ResourceRequest>,
}

/// Suppresses offers.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Suppress {
    /// The roles. Empty means all roles.
    #[prost(string, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
}

/// Changes the framework's description.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct UpdateFramework {
    /// The new description.
    #[prost(message, required, tag = "1")]
    pub framework_info: FrameworkInfo,
    /// The roles that are suppressed, and receive no offers.
    #[prost(string, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suppressed_roles: Vec<String>,
    /// Constraints on the agents that are offered.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offer_constraints: Option<OfferConstraints>,
}
