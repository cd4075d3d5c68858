//! Identifiers, times, labels, addresses and other small messages.

use serde::{Deserialize, Serialize};

use crate::mesos_v1::json::Base64;

/// A framework's id, assigned by the master.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct FrameworkId {
    /// The identifier.
    #[prost(string, required, tag = "1")]
    pub value: String,
}

/// The id of an offer or an inverse offer.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct OfferId {
    /// The identifier.
    #[prost(string, required, tag = "1")]
    pub value: String,
}

/// An agent's id, assigned by the master.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentId {
    /// The identifier.
    #[prost(string, required, tag = "1")]
    pub value: String,
}

/// A task's id, chosen by the framework.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskId {
    /// The identifier, which must not contain slashes.
    #[prost(string, required, tag = "1")]
    pub value: String,
}

/// An executor's id, chosen by the framework.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecutorId {
    /// The identifier.
    #[prost(string, required, tag = "1")]
    pub value: String,
}

/// A container's id, chosen by the agent.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerId {
    /// The identifier.
    #[prost(string, required, tag = "1")]
    pub value: String,
    /// The parent container.
    #[prost(message, optional, boxed, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Box<ContainerId>>,
}

/// The id of a resource provider.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceProviderId {
    /// The identifier.
    #[prost(string, required, tag = "1")]
    pub value: String,
}

/// The id of an operation whose status the framework wants to receive.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct OperationId {
    /// The identifier.
    #[prost(string, required, tag = "1")]
    pub value: String,
}

/// A UUID.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Uuid {
    /// Its 16 bytes.
    #[prost(bytes = "vec", required, tag = "1")]
    #[serde(with = "Base64")]
    pub value: Vec<u8>,
}

/// A point in time.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TimeInfo {
    /// Nanoseconds since 1970.
    #[prost(int64, required, tag = "1")]
    pub nanoseconds: i64,
}

/// A duration.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DurationInfo {
    /// Nanoseconds.
    #[prost(int64, required, tag = "1")]
    pub nanoseconds: i64,
}

/// Labels. Mesos passes them on and shows them, but doesn't interpret them.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Labels {
    /// The list, in its original order.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Label>,
}

/// A label.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Label {
    /// The key or name.
    #[prost(string, required, tag = "1")]
    pub key: String,
    /// The value, if there is one.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Parameters.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Parameters {
    /// The list, in its original order.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameter: Vec<Parameter>,
}

/// A parameter for another program.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Parameter {
    /// The key or name.
    #[prost(string, required, tag = "1")]
    pub key: String,
    /// The value.
    #[prost(string, required, tag = "2")]
    pub value: String,
}

/// A network address.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Address {
    /// The host name.
    #[prost(string, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// The IP address, as text.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
    /// The port.
    #[prost(int32, required, tag = "3")]
    pub port: i32,
}

/// A URL.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Url {
    /// The scheme, such as `http`.
    #[prost(string, required, tag = "1")]
    pub scheme: String,
    /// The host and port.
    #[prost(message, required, tag = "2")]
    pub address: Address,
    /// The path, including the leading slash.
    #[prost(string, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The query.
    #[prost(message, repeated, tag = "4")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub query: Vec<Parameter>,
    /// The fragment.
    #[prost(string, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fragment: Option<String>,
}

/// Implements conversions from text for identifiers.
macro_rules! from_text {
    ($($id:ident),*) => {
        $(
            impl<T: Into<String>> From<T> for $id {
                fn from(value: T) -> $id {
                    $id { value: value.into() }
                }
            }
        )*
    };
}

from_text!(FrameworkId, OfferId, AgentId, TaskId, ExecutorId, ResourceProviderId, OperationId);
