//! Tasks and executors as they are asked for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    AgentId, CheckInfo, CommandInfo, ContainerInfo, DurationInfo, ExecutorId, FrameworkId,
    HealthCheck, Labels, Resource, Scalar, TaskId,
};
use crate::mesos_v1::json::{EnumName, OptionalBase64, OptionalName, names};

/// A task to be started, with either a command or an executor.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskInfo {
    /// A name, for people.
    #[prost(string, required, tag = "1")]
    pub name: String,
    /// Its id, unique among the framework's living tasks.
    #[prost(message, required, tag = "2")]
    pub task_id: TaskId,
    /// Where: the agent of the offer.
    #[prost(message, required, tag = "3")]
    pub agent_id: AgentId,
    /// What it takes, out of the offer.
    #[prost(message, repeated, tag = "4")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    /// Who runs it, if not Mesos' own executor.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor: Option<ExecutorInfo>,
    /// What it runs.
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandInfo>,
    /// In what container.
    #[prost(message, optional, boxed, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Box<ContainerInfo>>,
    /// How Mesos finds out whether it is healthy.
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check: Option<HealthCheck>,
    /// What else Mesos looks at.
    #[prost(message, optional, tag = "13")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckInfo>,
    /// How it is ended.
    #[prost(message, optional, tag = "12")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill_policy: Option<KillPolicy>,
    /// Bytes for its executor.
    #[prost(bytes = "vec", optional, tag = "6")]
    #[serde(with = "OptionalBase64", skip_serializing_if = "Option::is_none")]
    pub data: Option<Vec<u8>>,
    /// Labels of the task.
    #[prost(message, optional, tag = "10")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
    /// What service discovery is told.
    #[prost(message, optional, tag = "11")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discovery: Option<DiscoveryInfo>,
    /// It is ended when it has run for so long.
    #[prost(message, optional, tag = "14")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_completion_time: Option<DurationInfo>,
    /// More than it asked for that it may use, by resource; infinity for no limit.
    #[prost(btree_map = "string, message", tag = "15")]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, Scalar>,
}

/// An executor.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecutorInfo {
    /// Its kind.
    #[prost(enumeration = "ExecutorType", optional, tag = "15")]
    #[serde(with = "OptionalName::<ExecutorType>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
    /// Its id.
    #[prost(message, required, tag = "1")]
    pub executor_id: ExecutorId,
    /// Whose it is.
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub framework_id: Option<FrameworkId>,
    /// What it runs; none for the default executor.
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandInfo>,
    /// In what container.
    #[prost(message, optional, boxed, tag = "11")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Box<ContainerInfo>>,
    /// What it takes for itself.
    #[prost(message, repeated, tag = "5")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    /// A name, for people.
    #[prost(string, optional, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it came from; labels are used for that now.
    #[prost(string, optional, tag = "10")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Bytes for it.
    #[prost(bytes = "vec", optional, tag = "4")]
    #[serde(with = "OptionalBase64", skip_serializing_if = "Option::is_none")]
    pub data: Option<Vec<u8>>,
    /// What service discovery is told.
    #[prost(message, optional, tag = "12")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discovery: Option<DiscoveryInfo>,
    /// For how long it may shut down.
    #[prost(message, optional, tag = "13")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shutdown_grace_period: Option<DurationInfo>,
    /// Labels of the executor.
    #[prost(message, optional, tag = "14")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
}

names! {
    /// Whose program an executor is.
    pub enum ExecutorType {
        /// Not said, or not known to whoever wrote the message.
        Unknown = 0, "UNKNOWN";
        /// Mesos' own.
        Default = 1, "DEFAULT";
        /// The framework's.
        Custom = 2, "CUSTOM";
    }
}

/// How a task is ended.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct KillPolicy {
    /// For how long it may end by itself after SIGTERM, before SIGKILL.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_period: Option<DurationInfo>,
}

/// What service discovery is told.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DiscoveryInfo {
    /// Who may see it.
    #[prost(enumeration = "Visibility", required, tag = "1")]
    #[serde(with = "EnumName::<Visibility>")]
    pub visibility: i32,
    /// The service.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Such as production or test.
    #[prost(string, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// Such as a region.
    #[prost(string, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Such as 2.1.
    #[prost(string, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its ports.
    #[prost(message, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<Ports>,
    /// Labels of the service.
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
}

names! {
    /// Who may see a service.
    pub enum Visibility {
        /// The framework.
        Framework = 0, "FRAMEWORK";
        /// The cluster.
        Cluster = 1, "CLUSTER";
        /// Everybody.
        External = 2, "EXTERNAL";
    }
}

/// Ports.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Ports {
    /// The ports.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Port>,
}

/// A port of a service.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Port {
    /// Its number.
    #[prost(uint32, required, tag = "1")]
    pub number: u32,
    /// Its name.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Such as `tcp`.
    #[prost(string, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Who may see it, if it differs.
    #[prost(enumeration = "Visibility", optional, tag = "4")]
    #[serde(with = "OptionalName::<Visibility>", skip_serializing_if = "Option::is_none")]
    pub visibility: Option<i32>,
    /// Labels of the port.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
}
