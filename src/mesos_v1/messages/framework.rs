//! Descriptions of frameworks and masters, and their capabilities.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Address, DomainInfo, FrameworkId, Labels, Scalar};
use crate::mesos_v1::json::{OptionalName, names};

/// The description of a framework.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct FrameworkInfo {
    /// The user that runs its tasks.
    #[prost(string, required, tag = "1")]
    pub user: String,
    /// A human-readable name.
    #[prost(string, required, tag = "2")]
    pub name: String,
    /// The id, if the master has assigned one.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<FrameworkId>,
    /// The time for which its tasks are kept after it disconnects, in seconds. Default: 0.
    #[prost(double, optional, default = "0", tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failover_timeout: Option<f64>,
    /// Whether agents checkpoint its tasks, which then survive a restart of the agent. Default: false.
    #[prost(bool, optional, default = "false", tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<bool>,
    /// The role, without [`CapabilityType::MultiRole`]. Default: `*`.
    #[prost(string, optional, default = "*", tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The roles, with [`CapabilityType::MultiRole`].
    #[prost(string, repeated, tag = "12")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// The host that it runs on, for display.
    #[prost(string, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// The principal that it authenticates as.
    #[prost(string, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The URL of its web interface.
    #[prost(string, optional, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webui_url: Option<String>,
    /// The capabilities.
    #[prost(message, repeated, tag = "10")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<Capability>,
    /// Labels of the framework.
    #[prost(message, optional, tag = "11")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
    /// Offer filters by role.
    #[prost(btree_map = "string, message", tag = "13")]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub offer_filters: BTreeMap<String, OfferFilters>,
}

/// A capability of a framework.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Capability {
    /// The type of the capability.
    #[prost(enumeration = "CapabilityType", optional, tag = "1")]
    #[serde(with = "OptionalName::<CapabilityType>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
}

names! {
    /// The type of a framework's capability.
    pub enum CapabilityType {
        /// Unset, or a value that the sender didn't know.
        Unknown = 0, "UNKNOWN";
        /// Accepts revocable resources.
        RevocableResources = 1, "REVOCABLE_RESOURCES";
        /// Understands the state `TASK_KILLING`.
        TaskKillingState = 2, "TASK_KILLING_STATE";
        /// Uses GPUs. Other frameworks are not offered agents with GPUs.
        GpuResources = 3, "GPU_RESOURCES";
        /// Accepts shared resources.
        SharedResources = 4, "SHARED_RESOURCES";
        /// Understands partitions: the states for unreachable and gone tasks.
        PartitionAware = 5, "PARTITION_AWARE";
        /// Has several roles.
        MultiRole = 6, "MULTI_ROLE";
        /// Understands refined reservations.
        ReservationRefinement = 7, "RESERVATION_REFINEMENT";
        /// Accepts agents in other regions than the master's.
        RegionAware = 8, "REGION_AWARE";
    }
}

/// The offer filters of a role.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct OfferFilters {
    /// The minimum resources of an offer.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_allocatable_resources: Option<MinAllocatableResources>,
}

/// The minimum resources of an offer.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MinAllocatableResources {
    /// Alternative minimums, of which an offer must meet one. Empty means no minimum.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quantities: Vec<ResourceQuantities>,
}

/// Quantities of resources.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceQuantities {
    /// The quantity per resource name.
    #[prost(btree_map = "string, message", tag = "1")]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub quantities: BTreeMap<String, Scalar>,
}

/// The description of a master.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MasterInfo {
    /// The id, which changes with each start.
    #[prost(string, required, tag = "1")]
    pub id: String,
    /// The IPv4 address in network byte order.
    #[prost(uint32, required, tag = "2")]
    pub ip: u32,
    /// The port.
    #[prost(uint32, required, default = "5050", tag = "3")]
    pub port: u32,
    /// The libprocess address.
    #[prost(string, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<String>,
    /// The host name.
    #[prost(string, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// The version.
    #[prost(string, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The address that it listens on.
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// The fault domain.
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<DomainInfo>,
    /// The capabilities.
    #[prost(message, repeated, tag = "9")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<MasterCapability>,
}

/// A capability of a master.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MasterCapability {
    /// The type of the capability.
    #[prost(enumeration = "MasterCapabilityType", optional, tag = "1")]
    #[serde(
        with = "OptionalName::<MasterCapabilityType>",
        skip_serializing_if = "Option::is_none"
    )]
    pub r#type: Option<i32>,
}

names! {
    /// The type of a master's capability.
    pub enum MasterCapabilityType {
        /// Unset, or a value that the sender didn't know.
        Unknown = 0, "UNKNOWN";
        /// Agents can change their resources.
        AgentUpdate = 1, "AGENT_UPDATE";
        /// Agents can be drained.
        AgentDraining = 2, "AGENT_DRAINING";
    }
}
