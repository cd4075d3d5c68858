//! Resources, reservations and disks.

use serde::{Deserialize, Serialize};

use super::{AgentId, Labels, Ranges, ResourceProviderId, Scalar, Set, ValueType, Volume};
use crate::mesos_v1::json::{EnumName, OptionalName, names};

/// An amount of one resource. Frameworks that understand refined reservations receive reservations in `reservations`,
/// others in `role` and `reservation`.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Resource {
    /// The resource provider, if it is not the agent itself.
    #[prost(message, optional, tag = "12")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<ResourceProviderId>,
    /// The name, such as `cpus`, `mem` (in MiB), `disk` (in MiB), `gpus` or `ports`.
    #[prost(string, required, tag = "1")]
    pub name: String,
    /// The kind; it determines which other field is set.
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
    /// The pre-refinement form: the role that it is reserved for. `*` means unreserved.
    #[prost(string, optional, default = "*", tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The framework's role that it is allocated to.
    #[prost(message, optional, tag = "11")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation_info: Option<AllocationInfo>,
    /// The pre-refinement form: the dynamic reservation, if there is one.
    #[prost(message, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation: Option<ReservationInfo>,
    /// The post-refinement form: the stack of reservations, each of which refines the one before it. Empty means
    /// unreserved.
    #[prost(message, repeated, tag = "13")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<ReservationInfo>,
    /// Properties of a disk.
    #[prost(message, optional, boxed, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<Box<DiskInfo>>,
    /// Set if Mesos may revoke the resource.
    #[prost(message, optional, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revocable: Option<RevocableInfo>,
    /// Set if several tasks may use the resource at the same time.
    #[prost(message, optional, tag = "10")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedInfo>,
}

/// The allocation of a resource.
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
    /// Whether it is static or dynamic. Only in the new form.
    #[prost(enumeration = "ReservationType", optional, tag = "4")]
    #[serde(with = "OptionalName::<ReservationType>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
    /// The role. Only in the new form.
    #[prost(string, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The principal that created it.
    #[prost(string, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// Labels of the reservation.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
}

names! {
    /// The type of a reservation.
    pub enum ReservationType {
        /// Unset, or a value that the sender didn't know.
        Unknown = 0, "UNKNOWN";
        /// Static: configured when the agent was started.
        Static = 1, "STATIC";
        /// Dynamic: made while the agent runs.
        Dynamic = 2, "DYNAMIC";
    }
}

/// Properties of a disk.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskInfo {
    /// Set if the content is kept when tasks end.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistence: Option<Persistence>,
    /// The volume: the path in the task's container.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<Volume>,
    /// The source of the disk, if it is not the agent's own disk.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<DiskSource>,
}

/// A persistent volume.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Persistence {
    /// The id, which is unique per agent and role.
    #[prost(string, required, tag = "1")]
    pub id: String,
    /// The principal that created it.
    #[prost(string, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

/// The source of a disk.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskSource {
    /// The kind; it determines which other field is set.
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
    /// The vendor of the volume.
    #[prost(string, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// The id of the volume.
    #[prost(string, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The vendor's metadata.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Labels>,
    /// The profile: the operator's name for its kind.
    #[prost(string, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

names! {
    /// The source of a disk.
    pub enum DiskSourceType {
        /// Unset, or a value that the sender didn't know.
        Unknown = 0, "UNKNOWN";
        /// A folder, which can be divided.
        Path = 1, "PATH";
        /// A mounted file system, which can't be divided.
        Mount = 2, "MOUNT";
        /// A block device.
        Block = 3, "BLOCK";
        /// Raw storage that isn't a disk yet.
        Raw = 4, "RAW";
    }
}

/// A folder on an agent.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskPath {
    /// The path.
    #[prost(string, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// A mounted file system on an agent.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskMount {
    /// The path.
    #[prost(string, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// Marks a resource as revocable by its presence.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
pub struct RevocableInfo {}

/// Marks a resource as shared by its presence.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
pub struct SharedInfo {}

/// A request for resources.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceRequest {
    /// The agent. Unset means any agent.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The resources.
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
}
