//! Frameworks and masters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Address, DomainInfo, FrameworkId, Labels, Scalar};
use crate::mesos_v1::json::{OptionalName, names};

/// A framework, as it presents itself.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct FrameworkInfo {
    /// Who its tasks run as.
    #[prost(string, required, tag = "1")]
    pub user: String,
    /// A name, for people.
    #[prost(string, required, tag = "2")]
    pub name: String,
    /// Its id, once it has one.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<FrameworkId>,
    /// For so many seconds its tasks are kept when it is gone. Default 0.
    #[prost(double, optional, default = "0", tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failover_timeout: Option<f64>,
    /// Whether agents write down what they run of it. Default no.
    #[prost(bool, optional, default = "false", tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<bool>,
    /// Its role, without [`CapabilityType::MultiRole`]. Default `*`.
    #[prost(string, optional, default = "*", tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Its roles, with [`CapabilityType::MultiRole`].
    #[prost(string, repeated, tag = "12")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Where it runs, for people.
    #[prost(string, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Who it is.
    #[prost(string, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// A page about it.
    #[prost(string, optional, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webui_url: Option<String>,
    /// What it understands.
    #[prost(message, repeated, tag = "10")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<Capability>,
    /// Labels of the framework.
    #[prost(message, optional, tag = "11")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
    /// What it wants to be offered, by role.
    #[prost(btree_map = "string, message", tag = "13")]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub offer_filters: BTreeMap<String, OfferFilters>,
}

/// Something that a framework understands.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Capability {
    /// What.
    #[prost(enumeration = "CapabilityType", optional, tag = "1")]
    #[serde(with = "OptionalName::<CapabilityType>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
}

names! {
    /// What a framework understands.
    pub enum CapabilityType {
        /// Not said, or not known to whoever wrote the message.
        Unknown = 0, "UNKNOWN";
        /// Resources that Mesos may take back.
        RevocableResources = 1, "REVOCABLE_RESOURCES";
        /// That a task is being ended.
        TaskKillingState = 2, "TASK_KILLING_STATE";
        /// GPUs; others aren't offered agents that have some.
        GpuResources = 3, "GPU_RESOURCES";
        /// Resources that several tasks use.
        SharedResources = 4, "SHARED_RESOURCES";
        /// That a task can't be reached, or is gone.
        PartitionAware = 5, "PARTITION_AWARE";
        /// Several roles.
        MultiRole = 6, "MULTI_ROLE";
        /// Reservations that refine others.
        ReservationRefinement = 7, "RESERVATION_REFINEMENT";
        /// Agents in other regions than the master's.
        RegionAware = 8, "REGION_AWARE";
    }
}

/// What a role wants to be offered.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct OfferFilters {
    /// Only offers of so much.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_allocatable_resources: Option<MinAllocatableResources>,
}

/// The least that is worth an offer.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MinAllocatableResources {
    /// Any one of them will do; with none, any offer will.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quantities: Vec<ResourceQuantities>,
}

/// How much of each resource.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceQuantities {
    /// How much, by the resource's name.
    #[prost(btree_map = "string, message", tag = "1")]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub quantities: BTreeMap<String, Scalar>,
}

/// A master.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MasterInfo {
    /// Its id, a new one with each start.
    #[prost(string, required, tag = "1")]
    pub id: String,
    /// Its IPv4 address, a number in network order.
    #[prost(uint32, required, tag = "2")]
    pub ip: u32,
    /// Its port.
    #[prost(uint32, required, default = "5050", tag = "3")]
    pub port: u32,
    /// Its name to other parts of Mesos.
    #[prost(string, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<String>,
    /// Its host name.
    #[prost(string, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Its version.
    #[prost(string, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where it listens.
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// Where it is.
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<DomainInfo>,
    /// What it understands.
    #[prost(message, repeated, tag = "9")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<MasterCapability>,
}

/// Something that a master understands.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MasterCapability {
    /// What.
    #[prost(enumeration = "MasterCapabilityType", optional, tag = "1")]
    #[serde(
        with = "OptionalName::<MasterCapabilityType>",
        skip_serializing_if = "Option::is_none"
    )]
    pub r#type: Option<i32>,
}

names! {
    /// What a master understands.
    pub enum MasterCapabilityType {
        /// Not said, or not known to whoever wrote the message.
        Unknown = 0, "UNKNOWN";
        /// Agents that change what they have.
        AgentUpdate = 1, "AGENT_UPDATE";
        /// Agents that are being emptied.
        AgentDraining = 2, "AGENT_DRAINING";
    }
}
