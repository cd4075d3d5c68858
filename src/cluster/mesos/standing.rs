//! The subscription that stands, if one does: what every call needs to know of it.

use std::sync::Arc;

use hyper::header::HeaderValue;
use tokio::sync::watch;

use super::masters::Master;

/// A subscription.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    /// Its number, from 1: the engine counts alike.
    pub(super) epoch: u64,
    pub(super) framework_id: String,
    /// What calls must bear; another subscription has another.
    pub(super) stream_id: HeaderValue,
    pub(super) master: Master,
}

/// Where the link says which subscription stands.
pub(super) type StandingSender = watch::Sender<Option<Arc<Standing>>>;

/// Where it is looked up.
pub(super) type StandingReceiver = watch::Receiver<Option<Arc<Standing>>>;

/// The subscription with this number, if it still stands.
pub(super) fn standing(receiver: &StandingReceiver, epoch: u64) -> Option<Arc<Standing>> {
    receiver.borrow().clone().filter(|it| it.epoch == epoch)
}
