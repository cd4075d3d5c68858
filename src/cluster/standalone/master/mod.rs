//! The master's logic: frameworks, workers, offers and executors, without connections, clock and files.
//!
//! ```text
//! calls of frameworks ─┐                         ┌─► events for frameworks
//! messages of workers ─┼─► StandaloneMaster ─────┼─► messages for workers
//! closed connections ──┤   (state and time)      ├─► connections to close
//! ticks ───────────────┘                         └─► entries for the journal
//! ```
//!
//! Each method takes the time since the master's start. What follows from it is collected, and
//! [`StandaloneMaster::take_actions`] returns it in the order in which it must be done. So the same calls at the same
//! times give the same actions. What the operator is told comes from [`StandaloneMaster::take_notices`].
//!
//! # Rules
//! | | |
//! |---|---|
//! | Offers | All that is free on a worker goes to the framework that registered first and that neither suppresses offers nor declined these resources lately; what it declines, at once to the next. One offer of a worker is open at a time for each framework |
//! | Cap | Offers and executors of a framework have at most as many cores as the cap says |
//! | Refusals | Declined resources are held back from the framework for the time that it asked for, at least 1 s, unless more than these is free. Offers that aren't answered within 60 s are rescinded, and held back for 5 s |
//! | Executors | One that its worker doesn't list when it subscribes again was dropped, if it was never reported, and otherwise is gone. One that a worker lists and the master didn't launch ends, unless the worker was registered by the master's predecessor, is back for the first time, and proves by the launch's tag that it was launched there. If two workers prove that of an executor, it is the one of the later launch |
//! | Hosts of tasks | A host, and a task in one, is an executor of its own. Workers that don't say that they have hosts get neither. Whether a task's host is there its worker knows; a task that has ended with its host is gone |
//! | Bounds | A worker has at most 1024 executors, and a framework half of them; more are dropped. Ends that the framework hasn't acknowledged count |
//! | Identity | An id of a worker is used only with the credentials that it was registered with, and so is its address until the worker is forgotten |
//! | Workers | Unreachable after 60 s of silence, forgotten after 16 min. Of those without a connection and without executors, 256 of an owner and 4096 in all are remembered; of more, those that were heard of longest ago are forgotten. Time in which the master itself stood still doesn't count |
//! | Drains | A worker that drains gets no launches. It is told to end its executors within a time and to leave; or, once they have ended by themselves, to leave. The journal has that |
//! | Frameworks | One whose connection ends may come back within its failover time-out. Then it is torn down: its executors end. At most 1024 are away: of more, one of the principal that has the most is torn down, without executors if there is such a one |
//! | Recovery | After a start, no offers are made until all workers and frameworks of the journal are back, or 15 s are over |

mod accept;
mod action;
mod allocation;
#[cfg(test)]
#[allow(clippy::expect_used)]
mod checker;
mod drains;
mod framework_calls;
mod frameworks;
mod launch_tag;
mod missed_updates;
mod notice;
mod recovery;
mod registered;
mod report;
mod statuses;
mod task_info;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod timers;
mod totals;
mod worker_calls;
mod workers;
mod workers_away;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use self::registered::{OutstandingOffer, RegisteredFramework, RegisteredWorker};
use crate::cluster::standalone::protocol::{ExecutorKey, HEARTBEAT_SECONDS, WorkerEvent};
use crate::mesos_v1::messages::Event;
use crate::resources::Scalar;

pub use action::{ConnectionNumber, MasterAction, RefusedCall, RegistryEntry, WorkerDrain};
pub(crate) use frameworks::description_problem;
pub use launch_tag::LaunchKey;
pub use notice::{MasterNotice, NoticeLevel, NoticeSource};
pub use report::{
    ExecutorReport, ExecutorReports, FrameworkReport, MasterReport, WorkerPresence, WorkerReport,
};
pub use totals::MasterTotals;

/// What a master is told at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterSettings {
    /// What the ids of workers, frameworks and offers begin with. It is the same for all leaderships of a cluster.
    pub cluster: String,
    /// The number of this leadership: higher than all before it.
    pub term: u64,
    /// The key of the tags of launches. It is the same for all leaderships of a cluster.
    pub launch_key: LaunchKey,
    /// The most cores of a framework. `None` means all.
    pub max_cores: Option<Scalar>,
    /// The longest wait for workers and frameworks of the journal. 15 s is usual.
    pub recovery_timeout: Duration,
    /// The silence after which a worker is unreachable: 60 s are usual. A quarter of it is the interval of heartbeats.
    pub worker_timeout: Duration,
}

impl MasterSettings {
    /// The interval of heartbeats to workers and frameworks.
    fn heartbeat(&self) -> Duration {
        self.worker_timeout / 4
    }

    /// The same in milliseconds, if workers don't know it.
    fn told_heartbeat(&self) -> Option<u64> {
        let heartbeat = u64::try_from(self.heartbeat().as_millis()).unwrap_or(u64::MAX);
        (heartbeat != HEARTBEAT_SECONDS * 1000).then_some(heartbeat)
    }
}

/// A master. Its module explains it.
#[derive(Debug)]
pub struct StandaloneMaster {
    settings: MasterSettings,
    /// By the order of their registration.
    frameworks: BTreeMap<u64, RegisteredFramework>,
    workers: BTreeMap<String, RegisteredWorker>,
    offers: BTreeMap<u64, OutstandingOffer>,
    /// The worker of each executor.
    placed: HashMap<ExecutorKey, String>,
    /// What each open connection belongs to.
    connections: HashMap<ConnectionNumber, Peer>,
    /// When recovery is given up. `None` once it is over.
    recovering_until: Option<Duration>,
    next_heartbeat: Duration,
    /// When offers were made last. What was called since then has freed nothing.
    allocated_at: Duration,
    /// When time passed last.
    ticked_at: Duration,
    /// The next number for ids.
    next_number: u64,
    totals: MasterTotals,
    actions: Vec<MasterAction>,
    /// What the operator isn't told yet.
    notices: Vec<MasterNotice>,
}

/// The other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Peer {
    Framework(u64),
    Worker(String),
}

/// The counts of a master, for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct MasterCounts {
    /// Workers with a connection.
    pub workers: usize,
    /// Frameworks, also those whose connection has ended.
    pub frameworks: usize,
    /// Executors that haven't ended.
    pub executors: usize,
    /// Offers that aren't answered yet.
    pub offers: usize,
}

impl StandaloneMaster {
    /// Returns what is to be done since the last call, in order.
    pub fn take_actions(&mut self) -> Vec<MasterAction> {
        std::mem::take(&mut self.actions)
    }

    /// Returns what has happened since the last call, for the operator.
    pub fn take_notices(&mut self) -> Vec<MasterNotice> {
        std::mem::take(&mut self.notices)
    }

    /// Returns how much there is of everything.
    #[must_use]
    pub fn counts(&self) -> MasterCounts {
        let tasks = self.workers.values().flat_map(|worker| worker.tasks.values());
        MasterCounts {
            workers: self.workers.values().filter(|it| it.connection.is_some()).count(),
            frameworks: self.frameworks.len(),
            executors: tasks.filter(|task| !task.has_ended).count(),
            offers: self.offers.len(),
        }
    }

    /// Returns the number of executors of the framework with this connection, with ends that aren't acknowledged.
    #[must_use]
    pub fn executors_of(&self, connection: ConnectionNumber) -> usize {
        let Some(Peer::Framework(number)) = self.connections.get(&connection) else { return 0 };
        let Some(framework) = self.frameworks.get(number) else { return 0 };
        self.placed.keys().filter(|key| key.framework == framework.id).count()
    }

    /// Whether workers and frameworks of the journal are still waited for. No offers are made then.
    #[must_use]
    pub fn is_recovering(&self) -> bool {
        self.recovering_until.is_some()
    }

    /// A connection has ended. Nothing else is to be said of it afterwards.
    pub fn connection_closed(&mut self, connection: ConnectionNumber, now: Duration) {
        match self.connections.remove(&connection) {
            Some(Peer::Framework(number)) => self.framework_disconnected(number, now),
            Some(Peer::Worker(id)) => self.worker_disconnected(&id),
            None => {}
        }
        self.allocate(now);
    }

    /// A new number for an id: `1a2b3c4d-3-F7`.
    fn new_id(&mut self, kind: char) -> (String, u64) {
        let number = self.next_number;
        self.next_number += 1;
        let MasterSettings { cluster, term, .. } = &self.settings;
        (format!("{cluster}-{term}-{kind}{number}"), number)
    }

    fn tell_worker(&mut self, id: &str, event: WorkerEvent) {
        if let Some(to) = self.workers.get(id).and_then(|worker| worker.connection) {
            self.actions.push(MasterAction::TellWorker { to, event });
        }
    }

    fn tell_framework(&mut self, number: u64, event: Event) {
        if let Some(to) = self.frameworks.get(&number).and_then(|it| it.connection) {
            self.actions.push(MasterAction::TellFramework { to, event: Box::new(event) });
        }
    }

    fn framework_number(&self, id: &str) -> Option<u64> {
        self.frameworks.iter().find(|(_, it)| it.id == id).map(|(number, _)| *number)
    }

    /// Closes a connection from this side.
    fn hang_up(&mut self, connection: ConnectionNumber) {
        self.connections.remove(&connection);
        self.actions.push(MasterAction::Close(connection));
    }
}
