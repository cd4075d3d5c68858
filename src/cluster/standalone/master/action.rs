//! What a master wants done, and what it answers to calls that it refuses.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cluster::standalone::protocol::WorkerEvent;
use crate::mesos_v1::messages::{Event, FrameworkInfo};

/// A connection, numbered by its owner. A number is used once.
pub type ConnectionNumber = u64;

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum MasterAction {
    /// Send this to a worker.
    TellWorker {
        /// Its connection.
        to: ConnectionNumber,
        /// The message.
        event: WorkerEvent,
    },
    /// Send this to a framework.
    TellFramework {
        /// Its connection.
        to: ConnectionNumber,
        /// The message.
        event: Box<Event>,
    },
    /// End this connection once all that was sent on it has gone.
    Close(ConnectionNumber),
    /// Append this to the journal before the next action is done.
    Record(RegistryEntry),
}

/// A line of the journal. Executors aren't in it: workers tell them when they come back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RegistryEntry {
    /// A worker was registered.
    Worker {
        /// Its id.
        id: String,
        /// What must not register twice at a time.
        address: String,
        /// Whose credentials registered it, if any were needed: nobody else's may use its id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<String>,
        /// The drain that it was told, or will be. A journal of an earlier master has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        drain: Option<WorkerDrain>,
    },
    /// A worker is forgotten.
    WorkerGone {
        /// Its id.
        id: String,
    },
    /// A framework was registered, or has changed its description.
    Framework {
        /// Its id.
        id: String,
        /// Its description.
        info: Box<FrameworkInfo>,
    },
    /// A framework is gone.
    FrameworkGone {
        /// Its id.
        id: String,
    },
}

/// A drain of a worker. It is over once the worker has left, or was started again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerDrain {
    /// The session of the worker's process.
    pub session: String,
    /// The time that its executors have to end, in milliseconds; `None` lets them run until they end by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<u64>,
}

/// A call that isn't done, with the sentence that says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedCall(pub(super) String);

impl fmt::Display for RefusedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RefusedCall {}
