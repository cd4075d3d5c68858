//! Health checks and other checks of tasks.

use serde::{Deserialize, Serialize};

use super::{CommandInfo, Protocol};
use crate::mesos_v1::json::{OptionalName, names};

/// A health check of a task. The field named by `type` is set.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct HealthCheck {
    /// The delay before the first check, in seconds. Default: 15.
    #[prost(double, optional, default = "15", tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<f64>,
    /// The interval between two checks, in seconds. Default: 10.
    #[prost(double, optional, default = "10", tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_seconds: Option<f64>,
    /// The time after which a check has failed, in seconds. 0 means no limit. Default: 20.
    #[prost(double, optional, default = "20", tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    /// The number of consecutive failures after which the task is killed. Default: 3.
    #[prost(uint32, optional, default = "3", tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consecutive_failures: Option<u32>,
    /// The time after the start during which failures don't count, in seconds. Default: 10.
    #[prost(double, optional, default = "10", tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<f64>,
    /// The kind; it determines which other field is set.
    #[prost(enumeration = "HealthCheckType", optional, tag = "8")]
    #[serde(with = "OptionalName::<HealthCheckType>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
    /// A command that must succeed.
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandInfo>,
    /// An HTTP request that must succeed.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HealthCheckHttp>,
    /// A TCP port that must accept connections.
    #[prost(message, optional, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<HealthCheckTcp>,
}

/// An HTTP request that must succeed.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct HealthCheckHttp {
    /// The IP version. Default: IPv4.
    #[prost(enumeration = "Protocol", optional, default = "Ipv4", tag = "5")]
    #[serde(with = "OptionalName::<Protocol>", skip_serializing_if = "Option::is_none")]
    pub protocol: Option<i32>,
    /// The scheme: `http` or `https`.
    #[prost(string, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// The port.
    #[prost(uint32, required, tag = "1")]
    pub port: u32,
    /// The path.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The HTTP status codes that count as success.
    #[prost(uint32, repeated, packed = "false", tag = "4")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<u32>,
}

/// A TCP port that must accept connections.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct HealthCheckTcp {
    /// The IP version. Default: IPv4.
    #[prost(enumeration = "Protocol", optional, default = "Ipv4", tag = "2")]
    #[serde(with = "OptionalName::<Protocol>", skip_serializing_if = "Option::is_none")]
    pub protocol: Option<i32>,
    /// The port.
    #[prost(uint32, required, tag = "1")]
    pub port: u32,
}

names! {
    /// The type of a health check.
    pub enum HealthCheckType {
        /// Unset, or a value that the sender didn't know.
        Unknown = 0, "UNKNOWN";
        /// Runs a command.
        Command = 1, "COMMAND";
        /// Sends an HTTP request.
        Http = 2, "HTTP";
        /// Connects to a TCP port.
        Tcp = 3, "TCP";
    }
}

/// A check whose results are only reported. The field named by `type` is set.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckInfo {
    /// The kind; it determines which other field is set.
    #[prost(enumeration = "CheckType", optional, tag = "1")]
    #[serde(with = "OptionalName::<CheckType>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
    /// A command.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CheckCommand>,
    /// An HTTP request.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<CheckHttp>,
    /// A TCP connection.
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<CheckTcp>,
    /// The delay before the first check, in seconds. Default: 15.
    #[prost(double, optional, default = "15", tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<f64>,
    /// The interval between two checks, in seconds. Default: 10.
    #[prost(double, optional, default = "10", tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_seconds: Option<f64>,
    /// The time after which a check has no result, in seconds. 0 means no limit. Default: 20.
    #[prost(double, optional, default = "20", tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
}

/// A check that runs a command.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckCommand {
    /// The command.
    #[prost(message, required, tag = "1")]
    pub command: CommandInfo,
}

/// A check that sends an HTTP request.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckHttp {
    /// The port.
    #[prost(uint32, required, tag = "1")]
    pub port: u32,
    /// The path.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// A check that connects to a TCP port.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckTcp {
    /// The port.
    #[prost(uint32, required, tag = "1")]
    pub port: u32,
}

names! {
    /// The type of a check.
    pub enum CheckType {
        /// Unset, or a value that the sender didn't know.
        Unknown = 0, "UNKNOWN";
        /// A command.
        Command = 1, "COMMAND";
        /// An HTTP request.
        Http = 2, "HTTP";
        /// A TCP connection.
        Tcp = 3, "TCP";
    }
}

/// The result of a check.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckStatusInfo {
    /// The kind; it determines which other field is set.
    #[prost(enumeration = "CheckType", optional, tag = "1")]
    #[serde(with = "OptionalName::<CheckType>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
    /// The result of a command.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CheckStatusCommand>,
    /// The result of an HTTP request.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<CheckStatusHttp>,
    /// The result of a TCP connection.
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<CheckStatusTcp>,
}

/// The result of a command.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckStatusCommand {
    /// The exit code. Unset if the command didn't end in time.
    #[prost(int32, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// The result of an HTTP request.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckStatusHttp {
    /// The HTTP status. Unset if there was no answer in time.
    #[prost(uint32, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_code: Option<u32>,
}

/// The result of a TCP connection.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckStatusTcp {
    /// Whether the connection succeeded. Unset if it took too long.
    #[prost(bool, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<bool>,
}
