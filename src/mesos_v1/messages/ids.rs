//! Identifiers, and other small things that many messages hold.

use serde::{Deserialize, Serialize};

use crate::mesos_v1::json::Base64;

/// A framework, as the master named it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct FrameworkId {
    /// The identifier.
    #[prost(string, required, tag = "1")]
    pub value: String,
}

/// An offer or an inverse offer.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct OfferId {
    /// The identifier.
    #[prost(string, required, tag = "1")]
    pub value: String,
}

/// An agent, as the master named it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentId {
    /// The identifier.
    #[prost(string, required, tag = "1")]
    pub value: String,
}

/// A task, as the framework named it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskId {
    /// The identifier: no slashes.
    #[prost(string, required, tag = "1")]
    pub value: String,
}

/// An executor, as the framework named it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecutorId {
    /// The identifier.
    #[prost(string, required, tag = "1")]
    pub value: String,
}

/// A container, as the agent named it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerId {
    /// The identifier.
    #[prost(string, required, tag = "1")]
    pub value: String,
    /// The container around it.
    #[prost(message, optional, boxed, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Box<ContainerId>>,
}

/// A resource provider.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceProviderId {
    /// The identifier.
    #[prost(string, required, tag = "1")]
    pub value: String,
}

/// An operation whose outcome the framework asked to be told.
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

/// A length of time.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DurationInfo {
    /// Nanoseconds.
    #[prost(int64, required, tag = "1")]
    pub nanoseconds: i64,
}

/// Labels, which Mesos hands on and shows but never reads.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Labels {
    /// In the order they were given.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Label>,
}

/// A label.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Label {
    /// Its name.
    #[prost(string, required, tag = "1")]
    pub key: String,
    /// Its value, if it has one.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Parameters.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Parameters {
    /// In the order they were given.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameter: Vec<Parameter>,
}

/// A parameter for some other program.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Parameter {
    /// Its name.
    #[prost(string, required, tag = "1")]
    pub key: String,
    /// Its value.
    #[prost(string, required, tag = "2")]
    pub value: String,
}

/// Where something listens.
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
    /// Such as `http`.
    #[prost(string, required, tag = "1")]
    pub scheme: String,
    /// Host and port.
    #[prost(message, required, tag = "2")]
    pub address: Address,
    /// The path, from the slash on.
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

/// Makes identifiers of texts.
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
