//! Resources: how much of what, whose, and on what disk.

use serde::{Deserialize, Serialize};

use super::{AgentId, Labels, Ranges, ResourceProviderId, Scalar, Set, ValueType, Volume};
use crate::mesos_v1::json::{EnumName, OptionalName, names};

/// An amount of one resource. Reserved ones come in one of two forms: with `reservations`, to frameworks that
/// understand refined reservations, else with `role` and `reservation`.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Resource {
    /// Who provides it, if not the agent itself.
    #[prost(message, optional, tag = "12")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<ResourceProviderId>,
    /// Such as `cpus`, `mem` (in MiB), `disk` (in MiB), `gpus` or `ports`.
    #[prost(string, required, tag = "1")]
    pub name: String,
    /// Its kind.
    #[prost(enumeration = "ValueType", required, tag = "2")]
    #[serde(with = "EnumName::<ValueType>")]
    pub r#type: i32,
    /// The number.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scalar: Option<Scalar>,
    /// The ranges.
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranges: Option<Ranges>,
    /// The set.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<Set>,
    /// The old form: who it is reserved for; `*` for nobody.
    #[prost(string, optional, default = "*", tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Which of the framework's roles it is offered to.
    #[prost(message, optional, tag = "11")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation_info: Option<AllocationInfo>,
    /// The old form: how it was reserved, if it was while the agent ran.
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation: Option<ReservationInfo>,
    /// The newer form: each refines the one before it; none for nobody's.
    #[prost(message, repeated, tag = "13")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<ReservationInfo>,
    /// What is special about a disk.
    #[prost(message, optional, boxed, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<Box<DiskInfo>>,
    /// Present if Mesos may take it back.
    #[prost(message, optional, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revocable: Option<RevocableInfo>,
    /// Present if several tasks may use it at once.
    #[prost(message, optional, tag = "10")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedInfo>,
}

/// What resources are offered for.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct AllocationInfo {
    /// The role.
    #[prost(string, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

/// A reservation.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ReservationInfo {
    /// Who made it; the newer form only.
    #[prost(enumeration = "ReservationType", optional, tag = "4")]
    #[serde(with = "OptionalName::<ReservationType>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
    /// For whom; the newer form only.
    #[prost(string, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Who made it.
    #[prost(string, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// Labels of the reservation.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
}

names! {
    /// How a reservation was made.
    pub enum ReservationType {
        /// Not said, or not known to whoever wrote the message.
        Unknown = 0, "UNKNOWN";
        /// When the agent was started.
        Static = 1, "STATIC";
        /// While the agent ran.
        Dynamic = 2, "DYNAMIC";
    }
}

/// What is special about a disk.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskInfo {
    /// Present if its contents are kept when tasks end.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistence: Option<Persistence>,
    /// Where a task sees it.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<Volume>,
    /// What it is made of, if it isn't the agent's own disk.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<DiskSource>,
}

/// A disk whose contents are kept.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Persistence {
    /// Which one, unique on an agent in a role.
    #[prost(string, required, tag = "1")]
    pub id: String,
    /// Who made it.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

/// What a disk is made of.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskSource {
    /// Its kind.
    #[prost(enumeration = "DiskSourceType", required, tag = "1")]
    #[serde(with = "EnumName::<DiskSourceType>")]
    pub r#type: i32,
    /// A folder.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<DiskPath>,
    /// A mounted file system.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount: Option<DiskMount>,
    /// Who the volume comes from.
    #[prost(string, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// The volume.
    #[prost(string, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What its maker says about it.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Labels>,
    /// The operator's name for its kind.
    #[prost(string, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

names! {
    /// What a disk is made of.
    pub enum DiskSourceType {
        /// Not said, or not known to whoever wrote the message.
        Unknown = 0, "UNKNOWN";
        /// A folder, which may be shared out.
        Path = 1, "PATH";
        /// A mounted file system, which is taken whole.
        Mount = 2, "MOUNT";
        /// A block device.
        Block = 3, "BLOCK";
        /// Storage that isn't made into a disk yet.
        Raw = 4, "RAW";
    }
}

/// A folder on an agent.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskPath {
    /// Where.
    #[prost(string, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// A mounted file system on an agent.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskMount {
    /// Where.
    #[prost(string, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// Its presence makes a resource revocable.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
pub struct RevocableInfo {}

/// Its presence makes a resource shared.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
pub struct SharedInfo {}

/// A wish for resources.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceRequest {
    /// Where; anywhere if not said.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// What.
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
}
