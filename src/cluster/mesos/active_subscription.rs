//! The subscription that stands, if one does: what every call needs to know of it.

use std::sync::Arc;

use hyper::header::HeaderValue;
use tokio::sync::watch;

use super::masters::Master;

/// A subscription.
#[derive(Clone, Debug)]
pub(super) struct ActiveSubscription {
    /// Its number, from 1: the engine counts alike.
    pub(super) epoch: u64,
    pub(super) framework_id: String,
    /// What calls must bear; another subscription has another.
    pub(super) stream_id: HeaderValue,
    pub(super) master: Master,
}

/// Where the link says which subscription stands.
pub(super) type StandingSender = watch::Sender<Option<Arc<ActiveSubscription>>>;

/// Where it is looked up.
pub(super) type StandingReceiver = watch::Receiver<Option<Arc<ActiveSubscription>>>;

/// The subscription with this number, if it still stands.
pub(super) fn standing(receiver: &StandingReceiver, epoch: u64) -> Option<Arc<ActiveSubscription>> {
    receiver.borrow().clone().filter(|it| it.epoch == epoch)
}

/// Where subscriptions are put in question: up to this number.
pub(super) type DoubtSender = watch::Sender<u64>;

/// Puts the subscription with this number in question: it is given up, if it still stands, for a new one.
pub(super) fn doubt(sender: &DoubtSender, epoch: u64) {
    sender.send_if_modified(|worst| {
        let worse = *worst < epoch;
        *worst = epoch.max(*worst);
        worse
    });
}
