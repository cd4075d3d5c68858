//! What happens to a worker, and what it has to do: the inputs and the actions of [`WorkerState`](super::state).

use std::time::Duration;

use crate::cluster::standalone::protocol::{
    ExecutorKey, ExecutorLaunch, ExecutorUpdate, ReportedState, WorkerCall, WorkerEvent,
};

/// When something happens.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WorkerTime {
    /// The time since the worker's start.
    pub(super) since_start: Duration,
    /// Seconds since 1970, for updates.
    pub(super) unix: f64,
}

/// What happens to a worker.
#[derive(Debug)]
pub(super) enum WorkerInput {
    /// The master has sent a message.
    Event(WorkerEvent),
    /// The connection has ended, or none could be made.
    Disconnected,
    /// An executor's process runs. `folder` is that of a task in a host.
    Running { key: ExecutorKey, pid: Option<u32>, message: String, folder: Option<String> },
    /// An executor has ended, or couldn't be started. `is_lost` says that it has ended with its host.
    Ended { key: ExecutorKey, state: ReportedState, message: String, is_lost: bool },
    /// An executor was not started, because the machine has nothing left for it.
    Exhausted { key: ExecutorKey, message: String },
    /// All executors are to end, and then the worker.
    Leave { grace: Duration },
    /// Time has passed.
    Tick,
}

/// What a worker has to do. Actions are done in their order.
#[derive(Debug, PartialEq)]
pub(super) enum WorkerAction {
    /// Write the id and the term to the disk.
    Persist { id: String, term: u64 },
    /// Send a message to the master.
    Send(WorkerCall),
    /// Close the connection, and make another one.
    Disconnect { why: String },
    /// Start an executor.
    Start(Box<ExecutorLaunch>),
    /// Ask an executor to end, and end it by force after `grace`.
    End { key: ExecutorKey, grace: Duration },
    /// Tell people that the worker is registered, and send heartbeats at this interval, in milliseconds.
    Registered { id: String, term: u64, heartbeat: Option<u64> },
    /// Tell people that the master has asked the worker to leave.
    Drains { executors: usize, grace: Duration },
    /// Tell people that an executor's state has changed.
    Changed(Box<ExecutorUpdate>),
    /// End the worker.
    Exit(ExitReason),
}

/// Why a worker ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ExitReason {
    /// It was asked to, here or by the master, and has told the master.
    Left,
    /// The master refuses it for good.
    Refused { why: String },
}
