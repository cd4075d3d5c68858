//! Checks of tasks.

use serde::{Deserialize, Serialize};

use super::{CommandInfo, Protocol};
use crate::mesos_v1::json::{OptionalName, names};

/// How Mesos finds out whether a task is healthy; the field that `type` names is set.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct HealthCheck {
    /// After so long it begins. Default 15.
    #[prost(double, optional, default = "15", tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<f64>,
    /// Between two checks. Default 10.
    #[prost(double, optional, default = "10", tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_seconds: Option<f64>,
    /// A check that takes longer has failed; 0 for no limit. Default 20.
    #[prost(double, optional, default = "20", tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    /// So many in a row end the task. Default 3.
    #[prost(uint32, optional, default = "3", tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consecutive_failures: Option<u32>,
    /// For so long after the start failures don't count. Default 10.
    #[prost(double, optional, default = "10", tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<f64>,
    /// Its kind.
    #[prost(enumeration = "HealthCheckType", optional, tag = "8")]
    #[serde(with = "OptionalName::<HealthCheckType>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
    /// A command that has to succeed.
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandInfo>,
    /// A page that has to be there.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HealthCheckHttp>,
    /// A port that has to be open.
    #[prost(message, optional, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<HealthCheckTcp>,
}

/// A page that has to be there.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct HealthCheckHttp {
    /// Which IP. Default 4.
    #[prost(enumeration = "Protocol", optional, default = "Ipv4", tag = "5")]
    #[serde(with = "OptionalName::<Protocol>", skip_serializing_if = "Option::is_none")]
    pub protocol: Option<i32>,
    /// `http` or `https`.
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
    /// What counts as there.
    #[prost(uint32, repeated, packed = "false", tag = "4")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<u32>,
}

/// A port that has to be open.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct HealthCheckTcp {
    /// Which IP. Default 4.
    #[prost(enumeration = "Protocol", optional, default = "Ipv4", tag = "2")]
    #[serde(with = "OptionalName::<Protocol>", skip_serializing_if = "Option::is_none")]
    pub protocol: Option<i32>,
    /// The port.
    #[prost(uint32, required, tag = "1")]
    pub port: u32,
}

names! {
    /// How health is checked.
    pub enum HealthCheckType {
        /// Not said, or not known to whoever wrote the message.
        Unknown = 0, "UNKNOWN";
        /// By a command.
        Command = 1, "COMMAND";
        /// By a page.
        Http = 2, "HTTP";
        /// By a port.
        Tcp = 3, "TCP";
    }
}

/// What Mesos looks at without drawing conclusions; the field that `type` names is set.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckInfo {
    /// Its kind.
    #[prost(enumeration = "CheckType", optional, tag = "1")]
    #[serde(with = "OptionalName::<CheckType>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
    /// A command.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CheckCommand>,
    /// A page.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<CheckHttp>,
    /// A port.
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<CheckTcp>,
    /// After so long it begins. Default 15.
    #[prost(double, optional, default = "15", tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<f64>,
    /// Between two checks. Default 10.
    #[prost(double, optional, default = "10", tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_seconds: Option<f64>,
    /// A check that takes longer has no result; 0 for no limit. Default 20.
    #[prost(double, optional, default = "20", tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
}

/// A command to be looked at.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckCommand {
    /// The command.
    #[prost(message, required, tag = "1")]
    pub command: CommandInfo,
}

/// A page to be looked at.
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

/// A port to be looked at.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckTcp {
    /// The port.
    #[prost(uint32, required, tag = "1")]
    pub port: u32,
}

names! {
    /// What is looked at.
    pub enum CheckType {
        /// Not said, or not known to whoever wrote the message.
        Unknown = 0, "UNKNOWN";
        /// A command.
        Command = 1, "COMMAND";
        /// A page.
        Http = 2, "HTTP";
        /// A port.
        Tcp = 3, "TCP";
    }
}

/// What a check found.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckStatusInfo {
    /// Its kind.
    #[prost(enumeration = "CheckType", optional, tag = "1")]
    #[serde(with = "OptionalName::<CheckType>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
    /// Of a command.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CheckStatusCommand>,
    /// Of a page.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<CheckStatusHttp>,
    /// Of a port.
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<CheckStatusTcp>,
}

/// What became of a command.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckStatusCommand {
    /// Its exit code; none if it didn't end in time.
    #[prost(int32, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// What became of a page.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckStatusHttp {
    /// Its status; none if there was no answer in time.
    #[prost(uint32, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_code: Option<u32>,
}

/// What became of a port.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckStatusTcp {
    /// Whether it was open; none if it couldn't be told in time.
    #[prost(bool, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<bool>,
}
