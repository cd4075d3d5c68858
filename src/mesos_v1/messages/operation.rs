//! Operations on offers, and their statuses.

use serde::{Deserialize, Serialize};

use super::{AgentId, ExecutorInfo, OperationId, Resource, ResourceProviderId, TaskInfo, Uuid};
use crate::mesos_v1::json::{EnumName, OptionalName, names};

/// An operation on an offer. The field named by `type` is set.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Operation {
    /// The type of the operation.
    #[prost(enumeration = "OperationType", optional, tag = "1")]
    #[serde(with = "OptionalName::<OperationType>", skip_serializing_if = "Option::is_none")]
    pub r#type: Option<i32>,
    /// The operation's id. If it is set, the framework receives statuses. Not for launches.
    #[prost(message, optional, tag = "12")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<OperationId>,
    /// Launches tasks.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
    /// Launches a group of tasks.
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch_group: Option<LaunchGroup>,
    /// Reserves resources.
    #[prost(message, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve: Option<Reserve>,
    /// Removes a reservation.
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreserve: Option<Unreserve>,
    /// Creates persistent volumes.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create: Option<Create>,
    /// Destroys persistent volumes.
    #[prost(message, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destroy: Option<Destroy>,
}

names! {
    /// The type of an operation.
    pub enum OperationType {
        /// Unset, or a value that the sender didn't know.
        Unknown = 0, "UNKNOWN";
        /// Launches tasks.
        Launch = 1, "LAUNCH";
        /// Launches a group of tasks.
        LaunchGroup = 6, "LAUNCH_GROUP";
        /// Reserves resources.
        Reserve = 2, "RESERVE";
        /// Removes a reservation.
        Unreserve = 3, "UNRESERVE";
        /// Creates persistent volumes.
        Create = 4, "CREATE";
        /// Destroys persistent volumes.
        Destroy = 5, "DESTROY";
        /// Grows a volume.
        GrowVolume = 11, "GROW_VOLUME";
        /// Shrinks a volume.
        ShrinkVolume = 12, "SHRINK_VOLUME";
        /// Creates a disk from raw storage.
        CreateDisk = 13, "CREATE_DISK";
        /// Destroys a disk, which becomes raw storage.
        DestroyDisk = 14, "DESTROY_DISK";
    }
}

/// Launches tasks.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Launch {
    /// The tasks, on the agent of the offer.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub task_infos: Vec<TaskInfo>,
}

/// Launches a group of tasks, either all or none.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct LaunchGroup {
    /// The executor that runs them.
    #[prost(message, required, tag = "1")]
    pub executor: ExecutorInfo,
    /// The tasks.
    #[prost(message, required, tag = "2")]
    pub task_group: TaskGroupInfo,
}

/// A group of tasks.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskGroupInfo {
    /// The tasks.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskInfo>,
}

/// Reserves resources.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Reserve {
    /// The resources with their current reservations.
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source: Vec<Resource>,
    /// The resources with their new reservations.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
}

/// Removes the last reservation of resources.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Unreserve {
    /// The resources in their current form.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
}

/// Creates persistent volumes.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Create {
    /// The volumes to create.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Resource>,
}

/// Destroys persistent volumes.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Destroy {
    /// The volumes to destroy.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Resource>,
}

/// The status of an operation.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct OperationStatus {
    /// The operation's id.
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<OperationId>,
    /// The state.
    #[prost(enumeration = "OperationState", required, tag = "2")]
    #[serde(with = "EnumName::<OperationState>")]
    pub state: i32,
    /// A human-readable message.
    #[prost(string, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The resources that resulted from the operation.
    #[prost(message, repeated, tag = "4")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub converted_resources: Vec<Resource>,
    /// The UUID for the acknowledgement. If it is unset, the status must not be acknowledged.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<Uuid>,
    /// The agent.
    #[prost(message, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The resource provider.
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_provider_id: Option<ResourceProviderId>,
}

names! {
    /// The status of an operation.
    pub enum OperationState {
        /// Unset, or a value that the sender didn't know.
        Unsupported = 0, "OPERATION_UNSUPPORTED";
        /// The operation is in progress.
        Pending = 1, "OPERATION_PENDING";
        /// The operation succeeded.
        Finished = 2, "OPERATION_FINISHED";
        /// The operation failed.
        Failed = 3, "OPERATION_FAILED";
        /// The operation was invalid.
        Error = 4, "OPERATION_ERROR";
        /// The operation was lost on its way. A retry may succeed.
        Dropped = 5, "OPERATION_DROPPED";
        /// The agent is unreachable.
        Unreachable = 6, "OPERATION_UNREACHABLE";
        /// The operator marked the agent as gone.
        GoneByOperator = 7, "OPERATION_GONE_BY_OPERATOR";
        /// The agent hasn't reregistered with a new master yet.
        Recovering = 8, "OPERATION_RECOVERING";
        /// The operation is unknown to the master.
        Unknown = 9, "OPERATION_UNKNOWN";
    }
}
