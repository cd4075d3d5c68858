//! The active subscription, if there is one: the data that each call needs of it.

use std::sync::Arc;

use hyper::header::HeaderValue;
use tokio::sync::watch;

use crate::cluster::http_client::Master;

/// A subscription.
#[derive(Clone, Debug)]
pub(super) struct ActiveSubscription {
    /// Its number, from 1. The engine counts in the same way.
    pub(super) epoch: u64,
    pub(super) framework_id: String,
    /// The header that associates calls with this subscription.
    pub(super) stream_id: HeaderValue,
    pub(super) master: Master,
}

/// Publishes the active subscription.
pub(super) type SubscriptionSender = watch::Sender<Option<Arc<ActiveSubscription>>>;

/// Reads the active subscription.
pub(super) type SubscriptionReceiver = watch::Receiver<Option<Arc<ActiveSubscription>>>;

/// The subscription with this number, if it is still active.
pub(super) fn active(
    receiver: &SubscriptionReceiver,
    epoch: u64,
) -> Option<Arc<ActiveSubscription>> {
    receiver.borrow().clone().filter(|it| it.epoch == epoch)
}

/// Requests that subscriptions up to a number are replaced.
pub(super) type ResubscribeSender = watch::Sender<u64>;

/// Requests that the subscription with this number is replaced by a new one, if it is still active.
pub(super) fn request_resubscription(sender: &ResubscribeSender, epoch: u64) {
    sender.send_if_modified(|requested| {
        let is_new = *requested < epoch;
        *requested = epoch.max(*requested);
        is_new
    });
}
