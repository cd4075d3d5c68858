//! [`StopFlag`]: whether the cluster is to stop.

use std::sync::{Arc, Mutex, PoisonError};

/// Set when the cluster is to stop. It is set before [`ActorMessage::Stop`](super::message::ActorMessage::Stop) is
/// sent, because many messages may be queued before that one.
#[derive(Clone, Debug, Default)]
pub(super) struct StopFlag(Arc<Mutex<bool>>);

impl StopFlag {
    pub(super) fn set(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    pub(super) fn is_set(&self) -> bool {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
