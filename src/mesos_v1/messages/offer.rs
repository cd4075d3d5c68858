//! Offers, inverse offers, unavailability and fault domains.

use serde::{Deserialize, Serialize};

use super::{
    AgentId, AllocationInfo, Attribute, DurationInfo, ExecutorId, FrameworkId, OfferId, Resource,
    TimeInfo, Url,
};

/// Resources of one agent, offered to one role of a framework.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Offer {
    /// The offer's id.
    #[prost(message, required, tag = "1")]
    pub id: OfferId,
    /// The framework that receives it.
    #[prost(message, required, tag = "2")]
    pub framework_id: FrameworkId,
    /// The agent that has the resources.
    #[prost(message, required, tag = "3")]
    pub agent_id: AgentId,
    /// The agent's host name.
    #[prost(string, required, tag = "4")]
    pub hostname: String,
    /// The URL of the agent.
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Url>,
    /// The fault domain of the agent.
    #[prost(message, optional, tag = "11")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<DomainInfo>,
    /// The offered resources.
    #[prost(message, repeated, tag = "5")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    /// The agent's attributes.
    #[prost(message, repeated, tag = "7")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<Attribute>,
    /// The framework's executors on the agent.
    #[prost(message, repeated, tag = "6")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub executor_ids: Vec<ExecutorId>,
    /// The agent's planned maintenance.
    #[prost(message, optional, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailability: Option<Unavailability>,
    /// The role that the resources are allocated to.
    #[prost(message, optional, tag = "10")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation_info: Option<AllocationInfo>,
}

/// A request to return an agent's resources.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct InverseOffer {
    /// The inverse offer's id.
    #[prost(message, required, tag = "1")]
    pub id: OfferId,
    /// The URL of the agent.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Url>,
    /// The framework that receives it.
    #[prost(message, required, tag = "3")]
    pub framework_id: FrameworkId,
    /// The agent. Unset means all agents.
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The time of the maintenance.
    #[prost(message, required, tag = "5")]
    pub unavailability: Unavailability,
    /// The requested resources. Empty means all.
    #[prost(message, repeated, tag = "6")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
}

/// The time of an agent's planned maintenance.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Unavailability {
    /// The start.
    #[prost(message, required, tag = "1")]
    pub start: TimeInfo,
    /// The duration. Unset means without an end.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<DurationInfo>,
}

/// The domain of an agent or a master.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DomainInfo {
    /// The fault domain.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault_domain: Option<FaultDomain>,
}

/// A fault domain: machines that are likely to fail together.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct FaultDomain {
    /// The region.
    #[prost(message, required, tag = "1")]
    pub region: RegionInfo,
    /// The zone in the region.
    #[prost(message, required, tag = "2")]
    pub zone: ZoneInfo,
}

/// A region.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RegionInfo {
    /// The name.
    #[prost(string, required, tag = "1")]
    pub name: String,
}

/// A zone.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneInfo {
    /// The name, which is unique in the region.
    #[prost(string, required, tag = "1")]
    pub name: String,
}

/// The filter for declined resources.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Filters {
    /// The time for which the resources aren't offered again, in seconds, at most a year. Default: 5.
    #[prost(double, optional, default = "5", tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuse_seconds: Option<f64>,
}
