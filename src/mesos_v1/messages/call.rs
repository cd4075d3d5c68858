//! What a framework sends.

use serde::{Deserialize, Serialize};

use super::{
    AgentId, ExecutorId, Filters, FrameworkId, FrameworkInfo, KillPolicy, OfferConstraints,
    OfferId, Operation, OperationId, ResourceProviderId, ResourceRequest, TaskId,
};
use crate::mesos_v1::json::{Base64, OptionalName, names};

/// What a framework sends; the field that `type` names is set, if that has one.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Call {
    /// Who sends it; not with the first subscription.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub framework_id: Option<FrameworkId>,
    /// Its kind.
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
    /// What a call asks for.
    pub enum Type {
        /// Not said, or not known to whoever wrote the message.
        Unknown = 0, "UNKNOWN";
        /// To get events.
        Subscribe = 1, "SUBSCRIBE";
        /// To end all tasks and forget the framework.
        Teardown = 2, "TEARDOWN";
        /// To use offers.
        Accept = 3, "ACCEPT";
        /// To give offers back.
        Decline = 4, "DECLINE";
        /// To agree to an agent's absence.
        AcceptInverseOffers = 13, "ACCEPT_INVERSE_OFFERS";
        /// Not to agree to it.
        DeclineInverseOffers = 14, "DECLINE_INVERSE_OFFERS";
        /// To be offered everything again.
        Revive = 5, "REVIVE";
        /// To end a task.
        Kill = 6, "KILL";
        /// To end an executor.
        Shutdown = 7, "SHUTDOWN";
        /// To be told no more of a status.
        Acknowledge = 8, "ACKNOWLEDGE";
        /// To be told no more of an operation's status.
        AcknowledgeOperationStatus = 15, "ACKNOWLEDGE_OPERATION_STATUS";
        /// To be told what became of tasks.
        Reconcile = 9, "RECONCILE";
        /// To be told what became of operations.
        ReconcileOperations = 16, "RECONCILE_OPERATIONS";
        /// To tell an executor something.
        Message = 10, "MESSAGE";
        /// To be offered something.
        Request = 11, "REQUEST";
        /// To be offered nothing.
        Suppress = 12, "SUPPRESS";
        /// To be another framework than was said.
        UpdateFramework = 17, "UPDATE_FRAMEWORK";
    }
}

/// To get events.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Subscribe {
    /// The framework; with the call's `framework_id` if it has one.
    #[prost(message, required, tag = "1")]
    pub framework_info: FrameworkInfo,
    /// Roles that are offered nothing for now.
    #[prost(string, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suppressed_roles: Vec<String>,
    /// Which agents are offered.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offer_constraints: Option<OfferConstraints>,
}

/// To use offers, all of one agent.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Accept {
    /// The offers.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub offer_ids: Vec<OfferId>,
    /// What is done with them, in this order.
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<Operation>,
    /// How what isn't used is treated.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filters>,
}

/// To give offers back.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Decline {
    /// The offers.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub offer_ids: Vec<OfferId>,
    /// How they are treated.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filters>,
}

/// To agree to agents' absence.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AcceptInverseOffers {
    /// The inverse offers.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inverse_offer_ids: Vec<OfferId>,
    /// For how long it isn't asked again.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filters>,
}

/// Not to agree to agents' absence.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DeclineInverseOffers {
    /// The inverse offers.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inverse_offer_ids: Vec<OfferId>,
    /// For how long it isn't asked again.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filters>,
}

/// To be offered everything again that was declined or suppressed.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Revive {
    /// For which roles; all if empty.
    #[prost(string, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
}

/// To end a task.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Kill {
    /// The task.
    #[prost(message, required, tag = "1")]
    pub task_id: TaskId,
    /// Where it is, if that is known.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// How, if not as the task said.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill_policy: Option<KillPolicy>,
}

/// To end an executor.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Shutdown {
    /// The executor.
    #[prost(message, required, tag = "1")]
    pub executor_id: ExecutorId,
    /// Where it is.
    #[prost(message, required, tag = "2")]
    pub agent_id: AgentId,
}

/// To be told no more of a status.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Acknowledge {
    /// Where the task is.
    #[prost(message, required, tag = "1")]
    pub agent_id: AgentId,
    /// The task.
    #[prost(message, required, tag = "2")]
    pub task_id: TaskId,
    /// The status.
    #[prost(bytes = "vec", required, tag = "3")]
    #[serde(with = "Base64")]
    pub uuid: Vec<u8>,
}

/// To be told no more of an operation's status.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AcknowledgeOperationStatus {
    /// Where it was done.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// At which resource provider.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_provider_id: Option<ResourceProviderId>,
    /// The status.
    #[prost(bytes = "vec", required, tag = "3")]
    #[serde(with = "Base64")]
    pub uuid: Vec<u8>,
    /// The operation.
    #[prost(message, required, tag = "4")]
    pub operation_id: OperationId,
}

/// To be told what became of tasks.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Reconcile {
    /// Which; all that the master knows to live if empty.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<ReconcileTask>,
}

/// A task that is asked about.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ReconcileTask {
    /// The task.
    #[prost(message, required, tag = "1")]
    pub task_id: TaskId,
    /// Where it should be.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
}

/// To be told what became of operations.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ReconcileOperations {
    /// Which; all if empty.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<ReconcileOperation>,
}

/// An operation that is asked about.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ReconcileOperation {
    /// The operation.
    #[prost(message, required, tag = "1")]
    pub operation_id: OperationId,
    /// Where it should have been done.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// At which resource provider.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_provider_id: Option<ResourceProviderId>,
}

/// To tell an executor something; it may get lost.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Message {
    /// Where the executor is.
    #[prost(message, required, tag = "1")]
    pub agent_id: AgentId,
    /// The executor.
    #[prost(message, required, tag = "2")]
    pub executor_id: ExecutorId,
    /// What.
    #[prost(bytes = "vec", required, tag = "3")]
    #[serde(with = "Base64")]
    pub data: Vec<u8>,
}

/// To be offered something. Mesos' own allocator doesn't listen.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    /// What.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<ResourceRequest>,
}

/// To be offered nothing.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Suppress {
    /// For which roles; all if empty.
    #[prost(string, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
}

/// To be another framework than was said.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct UpdateFramework {
    /// What it is now.
    #[prost(message, required, tag = "1")]
    pub framework_info: FrameworkInfo,
    /// Roles that are offered nothing for now.
    #[prost(string, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suppressed_roles: Vec<String>,
    /// Which agents are offered.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offer_constraints: Option<OfferConstraints>,
}
