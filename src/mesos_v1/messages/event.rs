//! Events: the messages that the master sends to a framework.

use serde::{Deserialize, Serialize};

use super::{
    AgentId, ExecutorId, FrameworkId, InverseOffer, MasterInfo, Offer, OfferId, OperationStatus,
    TaskStatus,
};
use crate::mesos_v1::json::{Base64, OptionalName, names};

/// A message from the master to a framework. The field named by `type` is set, if there is one.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// The type of the event.
    #[prost(enumeration = "Type", optional, tag = "1")]
    #[serde(with = "OptionalName::<Type>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
    /// See [`Subscribed`].
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribed: Option<Subscribed>,
    /// See [`Offers`].
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offers: Option<Offers>,
    /// See [`InverseOffers`].
    #[prost(message, optional, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inverse_offers: Option<InverseOffers>,
    /// See [`Rescind`].
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rescind: Option<Rescind>,
    /// See [`RescindInverseOffer`].
    #[prost(message, optional, tag = "10")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rescind_inverse_offer: Option<RescindInverseOffer>,
    /// See [`Update`].
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<Update>,
    /// See [`UpdateOperationStatus`].
    #[prost(message, optional, tag = "11")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_operation_status: Option<UpdateOperationStatus>,
    /// See [`Message`].
    #[prost(message, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// See [`Failure`].
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// See [`Error`].
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

names! {
    /// The type of an event.
    pub enum Type {
        /// Unset, or a value that the sender didn't know.
        Unknown = 0, "UNKNOWN";
        /// The subscription succeeded.
        Subscribed = 1, "SUBSCRIBED";
        /// New offers.
        Offers = 2, "OFFERS";
        /// New inverse offers.
        InverseOffers = 9, "INVERSE_OFFERS";
        /// An offer is no longer valid.
        Rescind = 3, "RESCIND";
        /// An inverse offer is no longer valid.
        RescindInverseOffer = 10, "RESCIND_INVERSE_OFFER";
        /// A task's status changed.
        Update = 4, "UPDATE";
        /// An operation's status changed.
        UpdateOperationStatus = 11, "UPDATE_OPERATION_STATUS";
        /// Data from an executor.
        Message = 5, "MESSAGE";
        /// An agent or an executor was lost.
        Failure = 6, "FAILURE";
        /// The subscription has ended because of an error.
        Error = 7, "ERROR";
        /// The connection is alive.
        Heartbeat = 8, "HEARTBEAT";
    }
}

/// The first event of a subscription, which confirms it.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Subscribed {
    /// The framework's id.
    #[prost(message, required, tag = "1")]
    pub framework_id: FrameworkId,
    /// The interval between heartbeats, in seconds.
    #[prost(double, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_interval_seconds: Option<f64>,
    /// The master that sends the events.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master_info: Option<MasterInfo>,
}

/// New offers.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Offers {
    /// The offers.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<Offer>,
}

/// New inverse offers.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct InverseOffers {
    /// The inverse offers.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inverse_offers: Vec<InverseOffer>,
}

/// An offer is no longer valid.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Rescind {
    /// The offer.
    #[prost(message, required, tag = "1")]
    pub offer_id: OfferId,
}

/// An inverse offer is no longer valid.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RescindInverseOffer {
    /// The inverse offer.
    #[prost(message, required, tag = "1")]
    pub inverse_offer_id: OfferId,
}

/// A task's status changed.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Update {
    /// The new status.
    #[prost(message, required, tag = "1")]
    pub status: TaskStatus,
}

/// An operation's status changed.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct UpdateOperationStatus {
    /// The new status.
    #[prost(message, required, tag = "1")]
    pub status: OperationStatus,
}

/// Data from an executor.
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

/// An agent was lost, or only its executor if `executor_id` is set.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Failure {
    /// The agent.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The executor.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor_id: Option<ExecutorId>,
    /// The exit status of the executor's process, as returned by `wait`.
    #[prost(int32, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<i32>,
}

/// The subscription has ended because of an error.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Error {
    /// The reason.
    #[prost(string, required, tag = "1")]
    pub message: String,
}
