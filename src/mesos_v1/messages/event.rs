//! What a framework gets.

use serde::{Deserialize, Serialize};

use super::{
    AgentId, ExecutorId, FrameworkId, InverseOffer, MasterInfo, Offer, OfferId, OperationStatus,
    TaskStatus,
};
use crate::mesos_v1::json::{Base64, OptionalName, names};

/// What a framework gets; the field that `type` names is set, if that has one.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// Its kind.
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
    /// What an event tells.
    pub enum Type {
        /// Not said, or not known to whoever wrote the message.
        Unknown = 0, "UNKNOWN";
        /// That events follow.
        Subscribed = 1, "SUBSCRIBED";
        /// What there is.
        Offers = 2, "OFFERS";
        /// What is wanted back.
        InverseOffers = 9, "INVERSE_OFFERS";
        /// That an offer isn't valid any more.
        Rescind = 3, "RESCIND";
        /// That an inverse offer isn't valid any more.
        RescindInverseOffer = 10, "RESCIND_INVERSE_OFFER";
        /// What became of a task.
        Update = 4, "UPDATE";
        /// What became of an operation.
        UpdateOperationStatus = 11, "UPDATE_OPERATION_STATUS";
        /// What an executor says.
        Message = 5, "MESSAGE";
        /// That an agent or an executor is lost.
        Failure = 6, "FAILURE";
        /// That the subscription has ended, and why.
        Error = 7, "ERROR";
        /// That the master is there.
        Heartbeat = 8, "HEARTBEAT";
    }
}

/// The first event.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Subscribed {
    /// Who the framework is.
    #[prost(message, required, tag = "1")]
    pub framework_id: FrameworkId,
    /// How often a heartbeat comes.
    #[prost(double, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_interval_seconds: Option<f64>,
    /// Who sends the events.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master_info: Option<MasterInfo>,
}

/// What there is.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Offers {
    /// The offers.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<Offer>,
}

/// What is wanted back.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct InverseOffers {
    /// The inverse offers.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inverse_offers: Vec<InverseOffer>,
}

/// An offer isn't valid any more.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Rescind {
    /// The offer.
    #[prost(message, required, tag = "1")]
    pub offer_id: OfferId,
}

/// An inverse offer isn't valid any more.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RescindInverseOffer {
    /// The inverse offer.
    #[prost(message, required, tag = "1")]
    pub inverse_offer_id: OfferId,
}

/// What became of a task.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Update {
    /// Its status.
    #[prost(message, required, tag = "1")]
    pub status: TaskStatus,
}

/// What became of an operation.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct UpdateOperationStatus {
    /// Its status.
    #[prost(message, required, tag = "1")]
    pub status: OperationStatus,
}

/// What an executor says.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Message {
    /// Where it is.
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

/// An agent is lost or, if there is an executor, that one.
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
    /// What waiting for its process gave.
    #[prost(int32, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<i32>,
}

/// The subscription has ended.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Error {
    /// Why.
    #[prost(string, required, tag = "1")]
    pub message: String,
}
