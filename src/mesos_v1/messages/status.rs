//! What became of a task.

use serde::{Deserialize, Serialize};

use super::{
    AgentId, CheckStatusInfo, ContainerId, ExecutorId, Labels, NetworkInfo, Resource, TaskId,
    TimeInfo,
};
use crate::mesos_v1::json::{EnumName, OptionalBase64, OptionalName, names};

/// What became of a task.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskStatus {
    /// Which task.
    #[prost(message, required, tag = "1")]
    pub task_id: TaskId,
    /// Its state.
    #[prost(enumeration = "TaskState", required, tag = "2")]
    #[serde(with = "EnumName::<TaskState>")]
    pub state: i32,
    /// Why, for people.
    #[prost(string, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Who says so.
    #[prost(enumeration = "Source", optional, tag = "9")]
    #[serde(with = "OptionalName::<Source>", skip_serializing_if = "Option::is_none")]
    pub source: Option<i32>,
    /// Why.
    #[prost(enumeration = "Reason", optional, tag = "10")]
    #[serde(with = "OptionalName::<Reason>", skip_serializing_if = "Option::is_none")]
    pub reason: Option<i32>,
    /// Bytes from its executor.
    #[prost(bytes = "vec", optional, tag = "3")]
    #[serde(with = "OptionalBase64", skip_serializing_if = "Option::is_none")]
    pub data: Option<Vec<u8>>,
    /// Where it is.
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Who runs it.
    #[prost(message, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor_id: Option<ExecutorId>,
    /// When, in seconds since 1970.
    #[prost(double, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<f64>,
    /// To be acknowledged with it; without one it isn't to be acknowledged.
    #[prost(bytes = "vec", optional, tag = "11")]
    #[serde(with = "OptionalBase64", skip_serializing_if = "Option::is_none")]
    pub uuid: Option<Vec<u8>>,
    /// Whether its health check succeeded.
    #[prost(bool, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub healthy: Option<bool>,
    /// What its check found.
    #[prost(message, optional, tag = "15")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check_status: Option<CheckStatusInfo>,
    /// Labels of the status.
    #[prost(message, optional, tag = "12")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
    /// About its container.
    #[prost(message, optional, tag = "13")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_status: Option<ContainerStatus>,
    /// Since when its agent can't be reached.
    #[prost(message, optional, tag = "14")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreachable_time: Option<TimeInfo>,
    /// Which limit it hit.
    #[prost(message, optional, tag = "16")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limitation: Option<TaskResourceLimitation>,
}

names! {
    /// A task's state.
    pub enum TaskState {
        /// On its way to the agent.
        Staging = 6, "TASK_STAGING";
        /// Its executor has it.
        Starting = 0, "TASK_STARTING";
        /// It runs.
        Running = 1, "TASK_RUNNING";
        /// It is being ended.
        Killing = 8, "TASK_KILLING";
        /// It ended by itself and succeeded. Final.
        Finished = 2, "TASK_FINISHED";
        /// It ended by itself and failed. Final.
        Failed = 3, "TASK_FAILED";
        /// It was ended. Final.
        Killed = 4, "TASK_KILLED";
        /// It wasn't described rightly. Final.
        Error = 7, "TASK_ERROR";
        /// Lost, to frameworks that can't deal with partitions. It may come back.
        Lost = 5, "TASK_LOST";
        /// It got lost on its way and never ran. Final.
        Dropped = 9, "TASK_DROPPED";
        /// Its agent can't be reached. It may come back.
        Unreachable = 10, "TASK_UNREACHABLE";
        /// Its agent has none of it. Final.
        Gone = 11, "TASK_GONE";
        /// Its agent is gone, says the operator. It may come back all the same.
        GoneByOperator = 12, "TASK_GONE_BY_OPERATOR";
        /// The master knows nothing of it.
        Unknown = 13, "TASK_UNKNOWN";
    }
}

names! {
    /// Who says what became of a task.
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
    /// Why a task is in its state.
    pub enum Reason {
        /// Mesos' executor failed.
        CommandExecutorFailed = 0, "REASON_COMMAND_EXECUTOR_FAILED";
        /// Its container couldn't be made.
        ContainerLaunchFailed = 21, "REASON_CONTAINER_LAUNCH_FAILED";
        /// It hit a limit.
        ContainerLimitation = 19, "REASON_CONTAINER_LIMITATION";
        /// It took too much disk.
        ContainerLimitationDisk = 20, "REASON_CONTAINER_LIMITATION_DISK";
        /// It took too much memory.
        ContainerLimitationMemory = 8, "REASON_CONTAINER_LIMITATION_MEMORY";
        /// Its resources were taken back.
        ContainerPreempted = 17, "REASON_CONTAINER_PREEMPTED";
        /// Its container couldn't be changed.
        ContainerUpdateFailed = 22, "REASON_CONTAINER_UPDATE_FAILED";
        /// It ran for longer than it may.
        MaxCompletionTimeReached = 33, "REASON_MAX_COMPLETION_TIME_REACHED";
        /// Its executor didn't report in time.
        ExecutorRegistrationTimeout = 23, "REASON_EXECUTOR_REGISTRATION_TIMEOUT";
        /// Its executor didn't report back in time.
        ExecutorReregistrationTimeout = 24, "REASON_EXECUTOR_REREGISTRATION_TIMEOUT";
        /// Its executor ended.
        ExecutorTerminated = 1, "REASON_EXECUTOR_TERMINATED";
        /// Its executor never reported; not used any more.
        ExecutorUnregistered = 2, "REASON_EXECUTOR_UNREGISTERED";
        /// The framework was removed.
        FrameworkRemoved = 3, "REASON_FRAMEWORK_REMOVED";
        /// The agent couldn't keep its folder.
        GcError = 4, "REASON_GC_ERROR";
        /// The framework isn't known.
        InvalidFrameworkid = 5, "REASON_INVALID_FRAMEWORKID";
        /// The offers weren't valid any more.
        InvalidOffers = 6, "REASON_INVALID_OFFERS";
        /// What carries its output ended.
        IoSwitchboardExited = 27, "REASON_IO_SWITCHBOARD_EXITED";
        /// There was no master.
        MasterDisconnected = 7, "REASON_MASTER_DISCONNECTED";
        /// The framework asked.
        Reconciliation = 9, "REASON_RECONCILIATION";
        /// Its agent hasn't got such resources.
        ResourcesUnknown = 18, "REASON_RESOURCES_UNKNOWN";
        /// Its agent isn't connected.
        AgentDisconnected = 10, "REASON_AGENT_DISCONNECTED";
        /// Its agent is being emptied.
        AgentDraining = 34, "REASON_AGENT_DRAINING";
        /// Its agent was removed.
        AgentRemoved = 11, "REASON_AGENT_REMOVED";
        /// Its agent was removed by the operator.
        AgentRemovedByOperator = 31, "REASON_AGENT_REMOVED_BY_OPERATOR";
        /// Its agent came back.
        AgentReregistered = 32, "REASON_AGENT_REREGISTERED";
        /// Its agent was restarted.
        AgentRestarted = 12, "REASON_AGENT_RESTARTED";
        /// Its agent isn't known.
        AgentUnknown = 13, "REASON_AGENT_UNKNOWN";
        /// It was ended before it ran.
        TaskKilledDuringLaunch = 30, "REASON_TASK_KILLED_DURING_LAUNCH";
        /// Its check found something new.
        TaskCheckStatusUpdated = 28, "REASON_TASK_CHECK_STATUS_UPDATED";
        /// Its health changed.
        TaskHealthCheckStatusUpdated = 29, "REASON_TASK_HEALTH_CHECK_STATUS_UPDATED";
        /// Its group wasn't described rightly.
        TaskGroupInvalid = 25, "REASON_TASK_GROUP_INVALID";
        /// Its group isn't allowed.
        TaskGroupUnauthorized = 26, "REASON_TASK_GROUP_UNAUTHORIZED";
        /// It wasn't described rightly.
        TaskInvalid = 14, "REASON_TASK_INVALID";
        /// It isn't allowed.
        TaskUnauthorized = 15, "REASON_TASK_UNAUTHORIZED";
        /// It isn't known.
        TaskUnknown = 16, "REASON_TASK_UNKNOWN";
    }
}

/// About a task's container.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerStatus {
    /// Which container.
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_id: Option<ContainerId>,
    /// Its networks.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network_infos: Vec<NetworkInfo>,
    /// Its executor's process.
    #[prost(uint32, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor_pid: Option<u32>,
}

/// Which limit a task hit.
#[derive(Clone, PartialEq, ::prost::Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskResourceLimitation {
    /// The resources it took too much of.
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
}
