//! [`WorkerEvent`]: what a master tells a worker.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::amounts::WorkerResources;

/// A message of a master to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WorkerEvent {
    /// The worker is registered.
    Subscribed {
        /// The worker's id from now on.
        id: String,
        /// The master's term.
        term: u64,
        /// The interval of heartbeats on this connection, in milliseconds, if it isn't the usual one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        heartbeat: Option<u64>,
    },
    /// The worker isn't registered. The master closes the connection.
    Refused {
        /// Why, in a sentence.
        why: String,
        /// Whether it may be registered later, with the same message.
        may_retry: bool,
    },
    /// Start an executor.
    Launch(Box<ExecutorLaunch>),
    /// End an executor.
    Kill {
        /// Which.
        #[serde(flatten)]
        key: ExecutorKey,
        /// The master's term.
        term: u64,
        /// The time from the request to end until it is ended by force, in milliseconds.
        grace: u64,
    },
    /// An update has arrived where it is needed, and isn't sent again.
    Ack {
        /// Which executor's.
        #[serde(flatten)]
        key: ExecutorKey,
        /// The update's number.
        uuid: String,
    },
    /// End all executors of a framework, which is gone: nobody acknowledges their ends but the master.
    ShutdownFramework {
        /// The framework.
        framework: String,
        /// The master's term.
        term: u64,
    },
    /// Take no launches from now on, and end all executors. Then leave.
    Drain {
        /// The master's term.
        term: u64,
        /// The time from the requests to end until executors are ended by force, in milliseconds.
        grace: u64,
    },
    /// The master is there.
    Heartbeat,
}

/// Which executor: the ids of its framework, and its own, which the framework chose.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExecutorKey {
    /// The framework's id.
    pub framework: String,
    /// The id of the executor, a task to the framework.
    pub executor: String,
}

impl ExecutorKey {
    /// The key of a framework's executor.
    #[must_use]
    pub fn new(framework: impl Into<String>, executor: impl Into<String>) -> ExecutorKey {
        ExecutorKey { framework: framework.into(), executor: executor.into() }
    }
}

/// An executor to start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutorLaunch {
    /// Which executor.
    #[serde(flatten)]
    pub key: ExecutorKey,
    /// The place in the order of this connection's launches, from 1 on.
    pub sequence: u64,
    /// The master's term.
    pub term: u64,
    /// The framework's name, for people.
    pub name: String,
    /// What it uses.
    pub resources: WorkerResources,
    /// Its command.
    pub command: ExecutorCommand,
    /// Whether it is a host of tasks, or a task in one. Only workers that say in `SUBSCRIBE` that they have hosts are
    /// sent either.
    #[serde(default, skip_serializing_if = "LaunchHosting::is_alone")]
    pub hosting: LaunchHosting,
    /// The time from a request to end until it is ended by force, in milliseconds, where a kill says nothing else.
    pub grace: u64,
    /// A text of at most 128 bytes, to be told with the executor in `SUBSCRIBE`, and to nobody else.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tag: String,
}

/// Whether an executor is a host of tasks, or a task in a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchHosting {
    /// Neither.
    #[default]
    Alone,
    /// A host: its program speaks with the worker over its standard input.
    Host,
    /// A task in the framework's host with this executor id, which was launched on the worker before.
    In(String),
}

impl LaunchHosting {
    /// Whether it is neither a host nor a task in one.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        *self == LaunchHosting::Alone
    }

    /// The id of the host of a task.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        match self {
            LaunchHosting::Alone | LaunchHosting::Host => None,
            LaunchHosting::In(host) => Some(host),
        }
    }
}

/// The command of an executor. Its `Debug` shows neither arguments nor variables, which may be secrets.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ExecutorCommand {
    /// The program, which is looked up in `PATH`, and its arguments.
    pub argv: Vec<String>,
    /// Variables that are added to the environment.
    #[serde(default)]
    pub environment: Vec<(String, String)>,
    /// The user that runs it, if it isn't the worker's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

impl fmt::Debug for ExecutorCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutorCommand")
            .field("program", &self.argv.first())
            .field("arguments", &self.argv.len().saturating_sub(1))
            .field("variables", &self.environment.len())
            .field("user", &self.user)
            .finish()
    }
}
