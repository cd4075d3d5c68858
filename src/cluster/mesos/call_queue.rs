//! Where calls are put that are to be sent: the doors of the lanes.
//!
//! Acknowledgements go through several lanes, for each lane has one call under way at a time, and there can be very
//! many updates. Those of one executor go through the same lane, in their order. When many wait, the link stops reading
//! events ([`CallQueue::until_there_is_room`]) until they have become fewer: the master's updates then wait in the
//! master. What the engine has taken in by then and not acknowledged yet is no more than its queue holds, and for that
//! there is room; so none is dropped.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::mesos_v1::messages::Call;

/// The most calls that wait; more fail. The offers of a large cluster can all be accepted at once.
const ORDERS_MAX: usize = 32 * 1024;
/// How many lanes acknowledgements have.
pub(super) const ACKNOWLEDGING_LANES: usize = 8;
/// No more events are read while this many acknowledgements wait …
const WAITING_HIGH: usize = 8 * 1024;
/// … until no more than this many do.
const WAITING_LOW: usize = 4 * 1024;

/// A call that waits to be sent, under one subscription.
#[derive(Debug)]
pub(super) struct QueuedCall {
    pub(super) epoch: u64,
    pub(super) what: What,
}

/// What is to be sent.
#[derive(Debug)]
pub(super) enum What {
    /// Declines of the same duration become one call.
    Decline { offers: Vec<String>, refuse: Duration },
    /// Boxed, as it is much larger than the rest.
    Accept { call: Box<Call>, agent_id: String, executors: Vec<String> },
    /// Executors that can't be described to the cluster, and the offers that they would have used.
    Indescribable { offers: Vec<String>, agent_id: String, executors: Vec<String>, why: String },
    /// A call that can be sent twice without harm.
    Plain(Box<Call>),
    /// An acknowledgement, and its place among those that wait.
    Acknowledge { call: Box<Call>, place: Place },
}

/// The doors of all lanes.
#[derive(Clone, Debug)]
pub(super) struct CallQueue {
    /// Everything whose order matters.
    main: mpsc::Sender<QueuedCall>,
    acknowledgements: Arc<[mpsc::Sender<QueuedCall>]>,
    /// How many acknowledgements wait, or are under way.
    waiting: Arc<watch::Sender<usize>>,
}

/// The other ends.
pub(super) struct Inboxes {
    pub(super) main: mpsc::Receiver<QueuedCall>,
    pub(super) acknowledgements: Vec<mpsc::Receiver<QueuedCall>>,
}

/// Why a call can't be put into a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unordered {
    /// Too many wait already.
    Full,
    /// The lane has ended.
    Closed,
}

impl From<mpsc::error::TrySendError<QueuedCall>> for Unordered {
    fn from(error: mpsc::error::TrySendError<QueuedCall>) -> Unordered {
        match error {
            mpsc::error::TrySendError::Full(_) => Unordered::Full,
            mpsc::error::TrySendError::Closed(_) => Unordered::Closed,
        }
    }
}

/// The place of one acknowledgement among those that wait: free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place(Arc<watch::Sender<usize>>);

impl Place {
    fn take(waiting: &Arc<watch::Sender<usize>>) -> Option<Place> {
        let is_taken = waiting.send_if_modified(|waiting| {
            let has_room = *waiting < ORDERS_MAX;
            *waiting += usize::from(has_room);
            has_room
        });
        is_taken.then(|| Place(Arc::clone(waiting)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting = waiting.saturating_sub(1));
    }
}

impl CallQueue {
    pub(super) fn new() -> (CallQueue, Inboxes) {
        let (main, main_inbox) = mpsc::channel(ORDERS_MAX);
        let lanes = (0..ACKNOWLEDGING_LANES).map(|_| mpsc::channel(ORDERS_MAX));
        let (doors, acknowledgements): (Vec<_>, Vec<_>) = lanes.unzip();
        let inboxes = Inboxes { main: main_inbox, acknowledgements };
        let waiting = Arc::new(watch::channel(0).0);
        (CallQueue { main, acknowledgements: doors.into(), waiting }, inboxes)
    }

    /// Orders something whose place among the others matters.
    pub(super) fn order(&self, epoch: u64, what: What) -> Result<(), Unordered> {
        Ok(self.main.try_send(QueuedCall { epoch, what })?)
    }

    /// Orders an acknowledgement of an update about `executor`.
    pub(super) fn acknowledge(
        &self,
        epoch: u64,
        executor: &str,
        call: Call,
    ) -> Result<(), Unordered> {
        let mut hasher = DefaultHasher::new();
        executor.hash(&mut hasher);
        let lane = hasher.finish() as usize % self.acknowledgements.len().max(1);
        let door = self.acknowledgements.get(lane).ok_or(Unordered::Closed)?;
        let place = Place::take(&self.waiting).ok_or(Unordered::Full)?;
        let what = What::Acknowledge { call: Box::new(call), place };
        Ok(door.try_send(QueuedCall { epoch, what })?)
    }

    /// Whether so many acknowledgements wait that no more events are read.
    pub(super) fn is_crowded(&self) -> bool {
        *self.waiting.borrow() >= WAITING_HIGH
    }

    /// Waits, if too many acknowledgements wait, until they have become fewer. Returns whether it waited.
    pub(super) async fn until_there_is_room(&self) -> bool {
        if !self.is_crowded() {
            return false;
        }
        let mut waiting = self.waiting.subscribe();
        // The sender is in here: it can't be gone.
        let _room = waiting.wait_for(|waiting| *waiting <= WAITING_LOW).await;
        true
    }
}

#[cfg(test)]
#[path = "tests/call_queue.rs"]
mod tests;
