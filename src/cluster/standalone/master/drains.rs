//! Workers are drained: they take no launches any more, and leave.

use std::time::Duration;

use super::{MasterAction, StandaloneMaster, WorkerDrain};
use crate::cluster::standalone::protocol::WorkerEvent;

/// The grace period of a worker that leaves without executors, in milliseconds. They may be on their way to it.
const EMPTY_GRACE: u64 = 10_000;

impl StandaloneMaster {
    /// Drains a worker: it takes no launches any more, ends its executors within `grace` milliseconds, and leaves.
    /// Returns whether there is such a worker, with a connection.
    pub fn drain_worker(&mut self, id: &str, grace: u64, now: Duration) -> bool {
        self.begin_drain(id, Some(grace), now)
    }

    /// Decommissions a worker: it takes no launches any more, and leaves once its executors have ended by themselves.
    /// One that is drained goes on to be: it must end them within its grace period. Returns whether there is such a
    /// worker, with a connection.
    pub fn decommission_worker(&mut self, id: &str, now: Duration) -> bool {
        self.begin_drain(id, None, now)
    }

    fn begin_drain(&mut self, id: &str, grace: Option<u64>, now: Duration) -> bool {
        let connected = self.workers.get_mut(id).filter(|worker| worker.connection.is_some());
        let Some(worker) = connected else { return false };
        let current = worker.drain.as_ref().filter(|it| it.session == worker.session);
        if grace.is_none() && current.is_some() {
            // It leaves in any case, and no later.
            return true;
        }
        worker.drain = Some(WorkerDrain { session: worker.session.clone(), grace });
        let entry = worker.entry(id);
        self.actions.push(MasterAction::Record(entry));
        self.worker_leaves(id);
        match grace {
            Some(grace) => self.tell_drain(id, grace),
            None => self.end_decommission(id),
        }
        // What was offered of it doesn't count towards the cap of its framework any more.
        self.allocate(now);
        true
    }

    /// Tells a worker to leave that waits for the end of its executors, if it has none any more whose end isn't
    /// acknowledged: that of a framework that is away would be lost with the worker.
    pub(super) fn end_decommission(&mut self, id: &str) {
        let Some(worker) = self.workers.get_mut(id) else { return };
        let is_empty = worker.connection.is_some() && worker.tasks.is_empty();
        let Some(drain) = worker.drain.as_mut().filter(|it| is_empty && it.grace.is_none()) else {
            return;
        };
        // If that doesn't arrive, it is said again. The journal needn't have it.
        drain.grace = Some(EMPTY_GRACE);
        self.tell_drain(id, EMPTY_GRACE);
    }

    fn tell_drain(&mut self, id: &str, grace: u64) {
        let term = self.settings.term;
        self.tell_worker(id, WorkerEvent::Drain { term, grace });
    }
}
