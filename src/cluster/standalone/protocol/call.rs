//! [`WorkerCall`]: what a worker tells its master.

use serde::{Deserialize, Serialize};

use super::amounts::WorkerResources;
use super::event::ExecutorKey;

/// A message of a worker to its master.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WorkerCall {
    /// Registers, or registers again. The first message of a connection.
    Subscribe(Box<WorkerSubscribe>),
    /// An executor's state has changed.
    Update(ExecutorUpdate),
    /// The worker is there.
    Heartbeat,
    /// The worker begins to leave: it takes no launches any more, and ends its executors.
    Leaving,
    /// The worker goes and doesn't come back under this session.
    Leave,
}

/// A worker's registration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerSubscribe {
    /// The id that a master gave it. `None` for a worker that never registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// A random text, chosen when the worker's process started.
    pub session: String,
    /// The machine's host name, for offers.
    pub hostname: String,
    /// What must not register twice at a time: the host name, unless the worker is told otherwise.
    pub address: String,
    /// The highest term that the worker was ever told; 0 if none.
    #[serde(default)]
    pub term: u64,
    /// All that its executors may use together.
    pub resources: WorkerResources,
    /// Attributes, for offers.
    #[serde(default)]
    pub attributes: Vec<WorkerAttribute>,
    /// All executors that the worker holds.
    #[serde(default)]
    pub executors: Vec<HeldExecutor>,
    /// Updates that weren't acknowledged, those of an executor in their order.
    #[serde(default)]
    pub unacknowledged: Vec<ExecutorUpdate>,
    /// Whether it takes no launches any more, because it leaves once its executors have ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaving: bool,
    /// Whether it has hosts of tasks. Workers of earlier versions don't say so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_hosts: bool,
}

/// A worker's attribute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerAttribute {
    /// Its name.
    pub name: String,
    /// Its value: a number if it is one, otherwise a text.
    pub value: String,
}

/// An executor that a worker holds: it is being started, it runs, or its end isn't acknowledged yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldExecutor {
    /// Which it is.
    #[serde(flatten)]
    pub key: ExecutorKey,
    /// Its latest state.
    pub state: ReportedState,
    /// What it uses: nothing any more once it has ended.
    pub resources: WorkerResources,
    /// The tag of its launch. A master after the one that launched it ends an executor without the right one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tag: String,
    /// Whether it has ended with its host, and not by a failure of its own. Its state is `FAILED` then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_lost: bool,
}

/// A change of an executor's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutorUpdate {
    /// Which executor.
    #[serde(flatten)]
    pub key: ExecutorKey,
    /// The update's own random number: 32 hexadecimal digits in lower case.
    pub uuid: String,
    /// The new state.
    pub state: ReportedState,
    /// When it changed, in seconds since 1970.
    pub timestamp: f64,
    /// A sentence for people, of at most 4096 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The process id on the worker's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The executor id of its host, if it is a task in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The folder of such a task on the worker's machine, of at most 4096 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Whether such a task has ended with its host, and not by a failure of its own. Its state is `FAILED` then, which
    /// masters of earlier versions know.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_lost: bool,
    /// Whether an executor was not started because the worker's machine had no process, open file, memory or disk space
    /// for it at the moment. Its state is `FAILED` then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_exhausted: bool,
}

/// An executor's state, as its worker knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReportedState {
    /// It is being started.
    Starting,
    /// It runs.
    Running,
    /// It was asked to end.
    Killing,
    /// It ended with exit code 0.
    Finished,
    /// It ended with another exit code or by a signal, or couldn't be started.
    Failed,
    /// It ended because it was killed on request.
    Killed,
    /// It was never started: the worker doesn't take launches, because it is being drained.
    Dropped,
}

impl ReportedState {
    /// Whether it is an end.
    #[must_use]
    pub const fn is_end(self) -> bool {
        match self {
            ReportedState::Starting | ReportedState::Running | ReportedState::Killing => false,
            ReportedState::Finished
            | ReportedState::Failed
            | ReportedState::Killed
            | ReportedState::Dropped => true,
        }
    }
}
