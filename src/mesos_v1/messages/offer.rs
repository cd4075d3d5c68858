//! Offers, what asks them back, and where agents are.

use serde::{Deserialize, Serialize};

use super::{
    AgentId, AllocationInfo, Attribute, DurationInfo, ExecutorId, FrameworkId, OfferId, Resource,
    TimeInfo, Url,
};

/// Resources of one agent, offered to one role of a framework.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Offer {
    /// Which offer it is.
    #[prost(message, required, tag = "1")]
    pub id: OfferId,
    /// Who it is for.
    #[prost(message, required, tag = "2")]
    pub framework_id: FrameworkId,
    /// Whose resources they are.
    #[prost(message, required, tag = "3")]
    pub agent_id: AgentId,
    /// The agent's host name.
    #[prost(string, required, tag = "4")]
    pub hostname: String,
    /// Where the agent listens.
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Url>,
    /// Where the agent is.
    #[prost(message, optional, tag = "11")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<DomainInfo>,
    /// What is offered.
    #[prost(message, repeated, tag = "5")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    /// The agent's attributes.
    #[prost(message, repeated, tag = "7")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<Attribute>,
    /// The framework's executors that run there.
    #[prost(message, repeated, tag = "6")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub executor_ids: Vec<ExecutorId>,
    /// When the agent is expected to be gone.
    #[prost(message, optional, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailability: Option<Unavailability>,
    /// Which role it is for.
    #[prost(message, optional, tag = "10")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation_info: Option<AllocationInfo>,
}

/// A wish to have an agent's resources back.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct InverseOffer {
    /// Which inverse offer it is.
    #[prost(message, required, tag = "1")]
    pub id: OfferId,
    /// Where the agent listens.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Url>,
    /// Who is asked.
    #[prost(message, required, tag = "3")]
    pub framework_id: FrameworkId,
    /// Which agent; all of them if not said.
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// When they are wanted.
    #[prost(message, required, tag = "5")]
    pub unavailability: Unavailability,
    /// What is wanted; all of it if empty.
    #[prost(message, repeated, tag = "6")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
}

/// When an agent is expected to be gone.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Unavailability {
    /// From when on.
    #[prost(message, required, tag = "1")]
    pub start: TimeInfo,
    /// For how long; for good if not said.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<DurationInfo>,
}

/// Where an agent or a master is.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DomainInfo {
    /// What it fails together with.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault_domain: Option<FaultDomain>,
}

/// What fails together.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct FaultDomain {
    /// The region.
    #[prost(message, required, tag = "1")]
    pub region: RegionInfo,
    /// The zone in it.
    #[prost(message, required, tag = "2")]
    pub zone: ZoneInfo,
}

/// A region.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RegionInfo {
    /// Its name.
    #[prost(string, required, tag = "1")]
    pub name: String,
}

/// A zone.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ZoneInfo {
    /// Its name, within the region.
    #[prost(string, required, tag = "1")]
    pub name: String,
}

/// How a declined offer is treated.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Filters {
    /// For so long its resources aren't offered again, at most a year. Default 5.
    #[prost(double, optional, default = "5", tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuse_seconds: Option<f64>,
}
