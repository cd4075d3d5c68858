//! The status of a task.

use serde::{Deserialize, Serialize};

use super::{
    AgentId, CheckStatusInfo, ContainerId, ExecutorId, Labels, NetworkInfo, Resource, TaskId,
    TimeInfo,
};
use crate::mesos_v1::json::{EnumName, OptionalBase64, OptionalName, names};

/// The status of a task.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskStatus {
    /// The task's id.
    #[prost(message, required, tag = "1")]
    pub task_id: TaskId,
    /// The state.
    #[prost(enumeration = "TaskState", required, tag = "2")]
    #[serde(with = "EnumName::<TaskState>")]
    pub state: i32,
    /// A human-readable message.
    #[prost(string, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The source of the status.
    #[prost(enumeration = "Source", optional, tag = "9")]
    #[serde(with = "OptionalName::<Source>", skip_serializing_if = "Option::is_none")]
    pub source: Option<i32>,
    /// The reason.
    #[prost(enumeration = "Reason", optional, tag = "10")]
    #[serde(with = "OptionalName::<Reason>", skip_serializing_if = "Option::is_none")]
    pub reason: Option<i32>,
    /// Data from the executor.
    #[prost(bytes = "vec", optional, tag = "3")]
    #[serde(with = "OptionalBase64", skip_serializing_if = "Option::is_none")]
    pub data: Option<Vec<u8>>,
    /// The agent that the task runs on.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The executor that runs the task.
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor_id: Option<ExecutorId>,
    /// The time of the status, in seconds since 1970.
    #[prost(double, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<f64>,
    /// The UUID for the acknowledgement. If it is unset, the status must not be acknowledged.
    #[prost(bytes = "vec", optional, tag = "11")]
    #[serde(with = "OptionalBase64", skip_serializing_if = "Option::is_none")]
    pub uuid: Option<Vec<u8>>,
    /// Whether the health check succeeded.
    #[prost(bool, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub healthy: Option<bool>,
    /// The result of the check.
    #[prost(message, optional, tag = "15")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check_status: Option<CheckStatusInfo>,
    /// Labels of the status.
    #[prost(message, optional, tag = "12")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
    /// The status of the container.
    #[prost(message, optional, tag = "13")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_status: Option<ContainerStatus>,
    /// The time since which the agent is unreachable.
    #[prost(message, optional, tag = "14")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreachable_time: Option<TimeInfo>,
    /// The limit that the task exceeded.
    #[prost(message, optional, tag = "16")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limitation: Option<TaskResourceLimitation>,
}

names! {
    /// The state of a task.
    pub enum TaskState {
        /// The task is on its way to the agent.
        Staging = 6, "TASK_STAGING";
        /// The executor has received the task.
        Starting = 0, "TASK_STARTING";
        /// The task runs.
        Running = 1, "TASK_RUNNING";
        /// The task is being killed.
        Killing = 8, "TASK_KILLING";
        /// The task ended successfully. Final.
        Finished = 2, "TASK_FINISHED";
        /// The task failed. Final.
        Failed = 3, "TASK_FAILED";
        /// The task was killed. Final.
        Killed = 4, "TASK_KILLED";
        /// The task's description was invalid. Final.
        Error = 7, "TASK_ERROR";
        /// The task was lost. Sent to frameworks that don't understand partitions. It may come back.
        Lost = 5, "TASK_LOST";
        /// The task was lost on its way and never ran. Final.
        Dropped = 9, "TASK_DROPPED";
        /// The agent is unreachable. The task may come back.
        Unreachable = 10, "TASK_UNREACHABLE";
        /// The agent doesn't have the task. Final.
        Gone = 11, "TASK_GONE";
        /// The operator marked the agent as gone. The task may come back nevertheless.
        GoneByOperator = 12, "TASK_GONE_BY_OPERATOR";
        /// The task is unknown to the master.
        Unknown = 13, "TASK_UNKNOWN";
    }
}

names! {
    /// The source of a task's status.
    pub enum Source {
        /// The master.
        Master = 0, "SOURCE_MASTER";
        /// The agent.
        Agent = 1, "SOURCE_AGENT";
        /// The executor.
        Executor = 2, "SOURCE_EXECUTOR";
    }
}

names! {
    /// The reason for a task's state.
    pub enum Reason {
        /// Mesos' command executor failed.
        CommandExecutorFailed = 0, "REASON_COMMAND_EXECUTOR_FAILED";
        /// The container couldn't be launched.
        ContainerLaunchFailed = 21, "REASON_CONTAINER_LAUNCH_FAILED";
        /// The container exceeded a limit.
        ContainerLimitation = 19, "REASON_CONTAINER_LIMITATION";
        /// The container exceeded its disk limit.
        ContainerLimitationDisk = 20, "REASON_CONTAINER_LIMITATION_DISK";
        /// The container exceeded its memory limit.
        ContainerLimitationMemory = 8, "REASON_CONTAINER_LIMITATION_MEMORY";
        /// The container was preempted.
        ContainerPreempted = 17, "REASON_CONTAINER_PREEMPTED";
        /// The container couldn't be updated.
        ContainerUpdateFailed = 22, "REASON_CONTAINER_UPDATE_FAILED";
        /// The task exceeded its maximum run time.
        MaxCompletionTimeReached = 33, "REASON_MAX_COMPLETION_TIME_REACHED";
        /// The executor didn't register in time.
        ExecutorRegistrationTimeout = 23, "REASON_EXECUTOR_REGISTRATION_TIMEOUT";
        /// The executor didn't reregister in time.
        ExecutorReregistrationTimeout = 24, "REASON_EXECUTOR_REREGISTRATION_TIMEOUT";
        /// The executor ended.
        ExecutorTerminated = 1, "REASON_EXECUTOR_TERMINATED";
        /// The executor never registered. No longer used.
        ExecutorUnregistered = 2, "REASON_EXECUTOR_UNREGISTERED";
        /// The framework was removed.
        FrameworkRemoved = 3, "REASON_FRAMEWORK_REMOVED";
        /// The agent couldn't exclude the task's folder from garbage collection.
        GcError = 4, "REASON_GC_ERROR";
        /// The framework is unknown.
        InvalidFrameworkid = 5, "REASON_INVALID_FRAMEWORKID";
        /// The offers were no longer valid.
        InvalidOffers = 6, "REASON_INVALID_OFFERS";
        /// The server of the container's output ended.
        IoSwitchboardExited = 27, "REASON_IO_SWITCHBOARD_EXITED";
        /// The master was disconnected.
        MasterDisconnected = 7, "REASON_MASTER_DISCONNECTED";
        /// The status answers a reconciliation.
        Reconciliation = 9, "REASON_RECONCILIATION";
        /// The resources are unknown to the agent.
        ResourcesUnknown = 18, "REASON_RESOURCES_UNKNOWN";
        /// The agent is disconnected.
        AgentDisconnected = 10, "REASON_AGENT_DISCONNECTED";
        /// The agent is draining.
        AgentDraining = 34, "REASON_AGENT_DRAINING";
        /// The agent was removed.
        AgentRemoved = 11, "REASON_AGENT_REMOVED";
        /// The operator removed the agent.
        AgentRemovedByOperator = 31, "REASON_AGENT_REMOVED_BY_OPERATOR";
        /// The agent reregistered.
        AgentReregistered = 32, "REASON_AGENT_REREGISTERED";
        /// The agent was restarted.
        AgentRestarted = 12, "REASON_AGENT_RESTARTED";
        /// The agent is unknown.
        AgentUnknown = 13, "REASON_AGENT_UNKNOWN";
        /// The task was killed during its launch.
        TaskKilledDuringLaunch = 30, "REASON_TASK_KILLED_DURING_LAUNCH";
        /// The result of the check changed.
        TaskCheckStatusUpdated = 28, "REASON_TASK_CHECK_STATUS_UPDATED";
        /// The result of the health check changed.
        TaskHealthCheckStatusUpdated = 29, "REASON_TASK_HEALTH_CHECK_STATUS_UPDATED";
        /// The task group was invalid.
        TaskGroupInvalid = 25, "REASON_TASK_GROUP_INVALID";
        /// The task group wasn't authorized.
        TaskGroupUnauthorized = 26, "REASON_TASK_GROUP_UNAUTHORIZED";
        /// The task was invalid.
        TaskInvalid = 14, "REASON_TASK_INVALID";
        /// The task wasn't authorized.
        TaskUnauthorized = 15, "REASON_TASK_UNAUTHORIZED";
        /// The task is unknown.
        TaskUnknown = 16, "REASON_TASK_UNKNOWN";
    }
}

/// The status of a task's container.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerStatus {
    /// The container's id.
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_id: Option<ContainerId>,
    /// The container's networks.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network_infos: Vec<NetworkInfo>,
    /// The process id of the executor.
    #[prost(uint32, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor_pid: Option<u32>,
}

/// The limit that a task exceeded.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskResourceLimitation {
    /// The resources whose limits were exceeded.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
}
