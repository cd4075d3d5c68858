//! The messages of Mesos' v1 executor API, as far as hosts of tasks use them: an executor sends [`Call`]s to its agent
//! and receives [`Event`]s. Only in protocol buffers.

use super::{ExecutorId, FrameworkId, FrameworkInfo, KillPolicy, TaskId, TaskInfo, TaskStatus};

/// A message from an executor to its agent. The field named by `type` is set.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Call {
    /// The executor.
    #[prost(message, required, tag = "1")]
    pub executor_id: ExecutorId,
    /// Its framework.
    #[prost(message, required, tag = "2")]
    pub framework_id: FrameworkId,
    /// The type of the call.
    #[prost(enumeration = "CallType", optional, tag = "3")]
    pub r#type: Option<i32>,
    /// See [`Subscribe`].
    #[prost(message, optional, tag = "4")]
    pub subscribe: Option<Subscribe>,
    /// See [`Update`].
    #[prost(message, optional, tag = "5")]
    pub update: Option<Update>,
    /// See [`Message`].
    #[prost(message, optional, tag = "6")]
    pub message: Option<Message>,
}

/// The type of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum CallType {
    /// Unset, or a value that the sender didn't know.
    Unknown = 0,
    /// Subscribes to events.
    Subscribe = 1,
    /// Reports a task's state.
    Update = 2,
    /// Sends data to the framework.
    Message = 3,
}

/// Subscribes to events; again after a disconnection, with what the agent has not acknowledged.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Subscribe {
    /// The tasks of which no update was acknowledged.
    #[prost(message, repeated, tag = "1")]
    pub unacknowledged_tasks: Vec<TaskInfo>,
    /// The updates, in their order.
    #[prost(message, repeated, tag = "2")]
    pub unacknowledged_updates: Vec<Update>,
}

/// Reports a task's state.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Update {
    /// The state.
    #[prost(message, required, tag = "1")]
    pub status: TaskStatus,
}

/// Data for the framework.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Message {
    /// The data.
    #[prost(bytes = "vec", required, tag = "2")]
    pub data: Vec<u8>,
}

/// A message from the agent to an executor. The field named by `type` is set, if there is one.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Event {
    /// The type of the event.
    #[prost(enumeration = "EventType", optional, tag = "1")]
    pub r#type: Option<i32>,
    /// See [`Subscribed`].
    #[prost(message, optional, tag = "2")]
    pub subscribed: Option<Subscribed>,
    /// See [`Acknowledged`].
    #[prost(message, optional, tag = "3")]
    pub acknowledged: Option<Acknowledged>,
    /// See [`Launch`].
    #[prost(message, optional, tag = "4")]
    pub launch: Option<Launch>,
    /// See [`Kill`].
    #[prost(message, optional, tag = "5")]
    pub kill: Option<Kill>,
    /// See [`FrameworkMessage`].
    #[prost(message, optional, tag = "6")]
    pub message: Option<FrameworkMessage>,
    /// See [`Error`].
    #[prost(message, optional, tag = "7")]
    pub error: Option<Error>,
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum EventType {
    /// Unset, or a value that the sender didn't know.
    Unknown = 0,
    /// The first event of a subscription.
    Subscribed = 1,
    /// A task is to be started.
    Launch = 2,
    /// A task is to be ended.
    Kill = 3,
    /// An update has arrived.
    Acknowledged = 4,
    /// Data from the framework.
    Message = 5,
    /// A call makes no sense to the agent.
    Error = 6,
    /// The executor is to end.
    Shutdown = 7,
    /// Several tasks are to be started together.
    LaunchGroup = 8,
    /// Nothing has happened.
    Heartbeat = 9,
}

/// The first event of a subscription.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Subscribed {
    /// The framework, with its id.
    #[prost(message, required, tag = "2")]
    pub framework_info: FrameworkInfo,
}

/// An update has arrived.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Acknowledged {
    /// The task.
    #[prost(message, required, tag = "1")]
    pub task_id: TaskId,
    /// The UUID of the update.
    #[prost(bytes = "vec", required, tag = "2")]
    pub uuid: Vec<u8>,
}

/// A task is to be started.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Launch {
    /// The task.
    #[prost(message, required, tag = "1")]
    pub task: TaskInfo,
}

/// A task is to be ended.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Kill {
    /// The task.
    #[prost(message, required, tag = "1")]
    pub task_id: TaskId,
    /// How, if not as its description says.
    #[prost(message, optional, tag = "2")]
    pub kill_policy: Option<KillPolicy>,
}

/// Data from the framework.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FrameworkMessage {
    /// The data.
    #[prost(bytes = "vec", required, tag = "1")]
    pub data: Vec<u8>,
}

/// A call makes no sense to the agent.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Error {
    /// The agent's words.
    #[prost(string, required, tag = "1")]
    pub message: String,
}
