//! The bounded queues of calls to the master: one for ordered calls, several for acknowledgements.
//!
//! Acknowledgements have several queues, because a sender has one call in flight at a time and there can be very many
//! updates. Those of one executor go through the same queue, in order. When many wait, the subscriber stops reading
//! events ([`CallQueue::wait_for_room`]) until there are fewer: the master's updates then wait at the master. The
//! updates that the engine has received by then and not acknowledged are no more than its queue holds, and there is
//! room for all of them; so no acknowledgement is dropped.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::mesos_v1::messages::Call;

/// The maximum number of calls in a queue. The offers of a large cluster can all be accepted at once.
const QUEUED_MAX: usize = 32 * 1024;
/// The number of queues for acknowledgements.
pub(super) const ACKNOWLEDGEMENT_QUEUES: usize = 8;
/// The number of waiting acknowledgements from which no more events are read …
const WAITING_HIGH: usize = 8 * 1024;
/// … until this number is reached again.
const WAITING_LOW: usize = 4 * 1024;

/// A call that waits to be sent under one subscription.
#[derive(Debug)]
pub(super) struct QueuedCall {
    pub(super) epoch: u64,
    pub(super) what: CallPayload,
}

/// The content of a [`QueuedCall`].
#[derive(Debug)]
pub(super) enum CallPayload {
    /// Consecutive declines with the same duration are merged into one call.
    Decline { offers: Vec<String>, refuse: Duration },
    /// Boxed, because the call is much larger than the other variants.
    Accept { call: Box<Call>, agent_id: String, executors: Vec<String> },
    /// Executors that can't be expressed as Mesos tasks, and the offers that they would have used.
    Unlaunchable { offers: Vec<String>, agent_id: String, executors: Vec<String>, why: String },
    /// A call that can be sent twice without harm.
    Plain(Box<Call>),
    /// An acknowledgement, and its slot among those that wait.
    Acknowledge { call: Box<Call>, slot: QueueSlot },
}

/// The sending ends of all queues.
#[derive(Clone, Debug)]
pub(super) struct CallQueue {
    /// All calls except acknowledgements: their order matters.
    main: mpsc::Sender<QueuedCall>,
    acknowledgements: Arc<[mpsc::Sender<QueuedCall>]>,
    /// The number of acknowledgements that wait or are in flight.
    waiting: Arc<watch::Sender<usize>>,
}

/// The receiving ends of all queues.
pub(super) struct Inboxes {
    pub(super) main: mpsc::Receiver<QueuedCall>,
    pub(super) acknowledgements: Vec<mpsc::Receiver<QueuedCall>>,
}

/// Why a call can't be queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EnqueueError {
    /// Too many calls wait.
    Full,
    /// The sender has ended.
    Closed,
}

impl From<mpsc::error::TrySendError<QueuedCall>> for EnqueueError {
    fn from(error: mpsc::error::TrySendError<QueuedCall>) -> EnqueueError {
        match error {
            mpsc::error::TrySendError::Full(_) => EnqueueError::Full,
            mpsc::error::TrySendError::Closed(_) => EnqueueError::Closed,
        }
    }
}

/// One acknowledgement's slot among those that wait. Dropping it frees the slot.
#[derive(Debug)]
pub(super) struct QueueSlot(Arc<watch::Sender<usize>>);

impl QueueSlot {
    fn reserve(waiting: &Arc<watch::Sender<usize>>) -> Option<QueueSlot> {
        let is_reserved = waiting.send_if_modified(|waiting| {
            let has_room = *waiting < QUEUED_MAX;
            *waiting += usize::from(has_room);
            has_room
        });
        is_reserved.then(|| QueueSlot(Arc::clone(waiting)))
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting = waiting.saturating_sub(1));
    }
}

impl CallQueue {
    pub(super) fn new() -> (CallQueue, Inboxes) {
        let (main, main_inbox) = mpsc::channel(QUEUED_MAX);
        let queues = (0..ACKNOWLEDGEMENT_QUEUES).map(|_| mpsc::channel(QUEUED_MAX));
        let (senders, acknowledgements): (Vec<_>, Vec<_>) = queues.unzip();
        let inboxes = Inboxes { main: main_inbox, acknowledgements };
        let waiting = Arc::new(watch::channel(0).0);
        (CallQueue { main, acknowledgements: senders.into(), waiting }, inboxes)
    }

    /// Queues a call that must keep its order among the others.
    pub(super) fn enqueue(&self, epoch: u64, what: CallPayload) -> Result<(), EnqueueError> {
        Ok(self.main.try_send(QueuedCall { epoch, what })?)
    }

    /// Queues an acknowledgement of an update about `executor`.
    pub(super) fn acknowledge(
        &self,
        epoch: u64,
        executor: &str,
        call: Call,
    ) -> Result<(), EnqueueError> {
        let mut hasher = DefaultHasher::new();
        executor.hash(&mut hasher);
        let queue = hasher.finish() as usize % self.acknowledgements.len().max(1);
        let sender = self.acknowledgements.get(queue).ok_or(EnqueueError::Closed)?;
        let slot = QueueSlot::reserve(&self.waiting).ok_or(EnqueueError::Full)?;
        let what = CallPayload::Acknowledge { call: Box::new(call), slot };
        Ok(sender.try_send(QueuedCall { epoch, what })?)
    }

    /// Whether too many acknowledgements wait to read more events.
    pub(super) fn is_crowded(&self) -> bool {
        *self.waiting.borrow() >= WAITING_HIGH
    }

    /// If too many acknowledgements wait, waits until there are fewer. Returns whether it waited.
    pub(super) async fn wait_for_room(&self) -> bool {
        if !self.is_crowded() {
            return false;
        }
        let mut waiting = self.waiting.subscribe();
        // `self` holds the sender, so the wait can't fail.
        let _room = waiting.wait_for(|waiting| *waiting <= WAITING_LOW).await;
        true
    }
}

#[cfg(test)]
#[path = "tests/call_queue.rs"]
mod tests;
