//! What a framework does with an offer.

use serde::{Deserialize, Serialize};

use super::{AgentId, ExecutorInfo, OperationId, Resource, ResourceProviderId, TaskInfo, Uuid};
use crate::mesos_v1::json::{EnumName, OptionalName, names};

/// A step in what is done with an offer; the field that `type` names is set.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Operation {
    /// Its kind.
    #[prost(enumeration = "OperationType", optional, tag = "1")]
    #[serde(with = "OptionalName::<OperationType>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
    /// Set if the framework wants to be told what became of it; not for launches.
    #[prost(message, optional, tag = "12")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<OperationId>,
    /// Tasks to be started.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
    /// Tasks to be started together.
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch_group: Option<LaunchGroup>,
    /// Resources to be reserved.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve: Option<Reserve>,
    /// Resources whose reservation ends.
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreserve: Option<Unreserve>,
    /// Persistent disks to be made.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create: Option<Create>,
    /// Persistent disks to be removed.
    #[prost(message, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destroy: Option<Destroy>,
}

names! {
    /// What is done with an offer.
    pub enum OperationType {
        /// Not said, or not known to whoever wrote the message.
        Unknown = 0, "UNKNOWN";
        /// Start tasks.
        Launch = 1, "LAUNCH";
        /// Start tasks that belong together.
        LaunchGroup = 6, "LAUNCH_GROUP";
        /// Reserve resources.
        Reserve = 2, "RESERVE";
        /// Give up a reservation.
        Unreserve = 3, "UNRESERVE";
        /// Make persistent disks.
        Create = 4, "CREATE";
        /// Remove persistent disks.
        Destroy = 5, "DESTROY";
        /// Make a disk larger.
        GrowVolume = 11, "GROW_VOLUME";
        /// Make a disk smaller.
        ShrinkVolume = 12, "SHRINK_VOLUME";
        /// Make a disk of raw storage.
        CreateDisk = 13, "CREATE_DISK";
        /// Make raw storage of a disk.
        DestroyDisk = 14, "DESTROY_DISK";
    }
}

/// Tasks to be started.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Launch {
    /// The tasks, on the agent of the offer.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub task_infos: Vec<TaskInfo>,
}

/// Tasks to be started together, or not at all.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct LaunchGroup {
    /// Who runs them.
    #[prost(message, required, tag = "1")]
    pub executor: ExecutorInfo,
    /// The tasks.
    #[prost(message, required, tag = "2")]
    pub task_group: TaskGroupInfo,
}

/// Tasks that belong together.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskGroupInfo {
    /// The tasks.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskInfo>,
}

/// Resources to be reserved.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Reserve {
    /// What they are reserved as now.
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source: Vec<Resource>,
    /// What they shall be reserved as.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
}

/// Resources whose last reservation ends.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Unreserve {
    /// The resources, as they are.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
}

/// Persistent disks to be made.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Create {
    /// The disks, as they shall be.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Resource>,
}

/// Persistent disks to be removed.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Destroy {
    /// The disks, as they are.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Resource>,
}

/// What became of an operation.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct OperationStatus {
    /// Which operation.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<OperationId>,
    /// Its state.
    #[prost(enumeration = "OperationState", required, tag = "2")]
    #[serde(with = "EnumName::<OperationState>")]
    pub state: i32,
    /// Why, for people.
    #[prost(string, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What the resources have become.
    #[prost(message, repeated, tag = "4")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub converted_resources: Vec<Resource>,
    /// To be acknowledged with it; without one it isn't to be acknowledged.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<Uuid>,
    /// On which agent.
    #[prost(message, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// At which resource provider.
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_provider_id: Option<ResourceProviderId>,
}

names! {
    /// What became of an operation.
    pub enum OperationState {
        /// Not said, or not known to whoever wrote the message.
        Unsupported = 0, "OPERATION_UNSUPPORTED";
        /// Under way.
        Pending = 1, "OPERATION_PENDING";
        /// Done.
        Finished = 2, "OPERATION_FINISHED";
        /// It couldn't be done.
        Failed = 3, "OPERATION_FAILED";
        /// It wasn't described rightly.
        Error = 4, "OPERATION_ERROR";
        /// It got lost on its way; another try may do.
        Dropped = 5, "OPERATION_DROPPED";
        /// Its agent can't be reached.
        Unreachable = 6, "OPERATION_UNREACHABLE";
        /// Its agent is gone, says the operator.
        GoneByOperator = 7, "OPERATION_GONE_BY_OPERATOR";
        /// Its agent hasn't come back to a new master yet.
        Recovering = 8, "OPERATION_RECOVERING";
        /// Nobody knows of it.
        Unknown = 9, "OPERATION_UNKNOWN";
    }
}
