//! Descriptions of tasks and executors to launch.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    AgentId, CheckInfo, CommandInfo, ContainerInfo, DurationInfo, ExecutorId, FrameworkId,
    HealthCheck, Labels, Resource, Scalar, TaskId,
};
use crate::mesos_v1::json::{EnumName, OptionalBase64, OptionalName, names};

/// A task to launch, with either a command or an executor.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskInfo {
    /// A human-readable name.
    #[prost(string, required, tag = "1")]
    pub name: String,
    /// The id, which must be unique among the framework's live tasks.
    #[prost(message, required, tag = "2")]
    pub task_id: TaskId,
    /// The agent of the offer.
    #[prost(message, required, tag = "3")]
    pub agent_id: AgentId,
    /// The task's resources, which are taken from the offer.
    #[prost(message, repeated, tag = "4")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    /// The executor that runs it, if not Mesos' own.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor: Option<ExecutorInfo>,
    /// The command.
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandInfo>,
    /// The container.
    #[prost(message, optional, boxed, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Box<ContainerInfo>>,
    /// The health check.
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check: Option<HealthCheck>,
    /// A check whose results are only reported.
    #[prost(message, optional, tag = "13")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckInfo>,
    /// The kill policy.
    #[prost(message, optional, tag = "12")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill_policy: Option<KillPolicy>,
    /// Data for the executor.
    #[prost(bytes = "vec", optional, tag = "6")]
    #[serde(with = "OptionalBase64", skip_serializing_if = "Option::is_none")]
    pub data: Option<Vec<u8>>,
    /// Labels of the task.
    #[prost(message, optional, tag = "10")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
    /// Information for service discovery.
    #[prost(message, optional, tag = "11")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discovery: Option<DiscoveryInfo>,
    /// The maximum run time, after which the task is killed.
    #[prost(message, optional, tag = "14")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_completion_time: Option<DurationInfo>,
    /// Limits above the requested resources, by resource name. Infinity means no limit.
    #[prost(btree_map = "string, message", tag = "15")]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, Scalar>,
}

/// An executor.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecutorInfo {
    /// The type of the executor.
    #[prost(enumeration = "ExecutorType", optional, tag = "15")]
    #[serde(with = "OptionalName::<ExecutorType>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
    /// The id.
    #[prost(message, required, tag = "1")]
    pub executor_id: ExecutorId,
    /// The framework that it belongs to.
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub framework_id: Option<FrameworkId>,
    /// The command. Unset for the default executor.
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandInfo>,
    /// The container.
    #[prost(message, optional, boxed, tag = "11")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Box<ContainerInfo>>,
    /// The executor's own resources.
    #[prost(message, repeated, tag = "5")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    /// A human-readable name.
    #[prost(string, optional, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The origin of the executor. Deprecated: use labels.
    #[prost(string, optional, tag = "10")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Data for the executor.
    #[prost(bytes = "vec", optional, tag = "4")]
    #[serde(with = "OptionalBase64", skip_serializing_if = "Option::is_none")]
    pub data: Option<Vec<u8>>,
    /// Information for service discovery.
    #[prost(message, optional, tag = "12")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discovery: Option<DiscoveryInfo>,
    /// The grace period for its shutdown.
    #[prost(message, optional, tag = "13")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shutdown_grace_period: Option<DurationInfo>,
    /// Labels of the executor.
    #[prost(message, optional, tag = "14")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
}

names! {
    /// The type of an executor.
    pub enum ExecutorType {
        /// Unset, or a value that the sender didn't know.
        Unknown = 0, "UNKNOWN";
        /// Mesos' own executor.
        Default = 1, "DEFAULT";
        /// The framework's executor.
        Custom = 2, "CUSTOM";
    }
}

/// How a task is killed.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct KillPolicy {
    /// The grace period between SIGTERM and SIGKILL.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_period: Option<DurationInfo>,
}

/// Information for service discovery.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DiscoveryInfo {
    /// The visibility.
    #[prost(enumeration = "Visibility", required, tag = "1")]
    #[serde(with = "EnumName::<Visibility>")]
    pub visibility: i32,
    /// The name of the service.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The environment, such as production or test.
    #[prost(string, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// The location, such as a region.
    #[prost(string, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The version, such as 2.1.
    #[prost(string, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The ports of the service.
    #[prost(message, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<Ports>,
    /// Labels of the service.
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
}

names! {
    /// The visibility of a service.
    pub enum Visibility {
        /// Visible to the framework.
        Framework = 0, "FRAMEWORK";
        /// Visible in the cluster.
        Cluster = 1, "CLUSTER";
        /// Visible everywhere.
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
    /// The port number.
    #[prost(uint32, required, tag = "1")]
    pub number: u32,
    /// The name.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The protocol, such as `tcp`.
    #[prost(string, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The visibility, if it differs from the service's.
    #[prost(enumeration = "Visibility", optional, tag = "4")]
    #[serde(with = "OptionalName::<Visibility>", skip_serializing_if = "Option::is_none")]
    pub visibility: Option<i32>,
    /// Labels of the port.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
}
