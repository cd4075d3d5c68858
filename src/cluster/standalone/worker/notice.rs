//! What a worker tells people.

use std::time::Duration;

use crate::cluster::standalone::protocol::ExecutorUpdate;

/// Something that has happened to a worker.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum WorkerNotice {
    /// It is registered.
    Registered {
        /// The master's address.
        master: String,
        /// The worker's id.
        id: String,
        /// The master's term.
        term: u64,
    },
    /// It isn't registered any more, and tries again.
    Lost {
        /// The master's address.
        master: String,
        /// Why, in a sentence.
        why: String,
    },
    /// It couldn't be registered, and tries again. A repeated failure is told once.
    Unreachable {
        /// The master's address.
        master: String,
        /// Why, in a sentence.
        why: String,
    },
    /// The master has asked it to leave: it takes no executors any more, and ends once those that it has are over.
    Drains {
        /// The executors that haven't ended.
        executors: usize,
        /// How long they may take to end.
        grace: Duration,
    },
    /// An executor's state has changed.
    Executor(Box<ExecutorUpdate>),
    /// Something on this machine went wrong, and the worker goes on.
    Trouble {
        /// What, in a sentence.
        why: String,
    },
}

/// How a worker has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkerEnd {
    /// It was asked to end, here or by the master.
    Left {
        /// Whether a master was told.
        told: bool,
        /// Whether executors were ended by force, after their grace period.
        forced: bool,
    },
    /// The master refuses it for good.
    Refused {
        /// Why, in a sentence.
        why: String,
    },
}

/// Takes notices, on the worker's thread. It must not block.
pub(super) type WorkerObserver = Box<dyn FnMut(WorkerNotice) + Send>;
