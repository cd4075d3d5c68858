//! Offers that wait for a handler, by the judge's own account: rules 6, 7 and 9.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use crate::cluster::simulated::wire::{SimOffer, offer_number};

/// An offer waits in the offer queue for so long at most, in milliseconds.
const WAITS_MAX: u64 = 1_000;

#[derive(Default)]
pub(super) struct OpenOffers {
    /// Subscriptions so far: the number of the present one.
    subscription: u64,
    /// Offers of the present subscription that are neither in a batch yet nor rescinded, and when they arrived.
    offers: BTreeMap<u64, u64>,
    /// Rescinded while they waited: they must not be answered.
    rescinded: BTreeSet<u64>,
    /// What found no room in the offer queue, and is to be declined.
    overflown: BTreeSet<u64>,
    /// Whether all handlers are at their batches, and when they were last.
    busy: bool,
    busy_until: u64,
}

impl OpenOffers {
    /// A subscription begins: offers of earlier ones are dead.
    pub(super) fn subscribed(&mut self) {
        self.disconnected();
        self.subscription += 1;
    }

    pub(super) fn disconnected(&mut self) {
        self.offers.clear();
        self.rescinded.clear();
        self.overflown.clear();
    }

    /// Offers arrive, perhaps for the second time.
    pub(super) fn arrive(&mut self, offers: &[SimOffer], virtual_now: u64) {
        for offer in offers {
            self.rescinded.remove(&offer.number);
            self.offers.insert(offer.number, virtual_now);
        }
    }

    pub(super) fn rescinded(&mut self, offer: u64) {
        if self.offers.remove(&offer).is_some() {
            self.rescinded.insert(offer);
        }
    }

    pub(super) fn overflow(&mut self, offers: &[SimOffer]) {
        for offer in offers {
            self.offers.remove(&offer.number);
            self.overflown.insert(offer.number);
        }
    }

    /// What found no room must have been declined by now.
    pub(super) fn overflow_ends(&mut self) -> Result<(), Finding> {
        let open = std::mem::take(&mut self.overflown);
        let Some(number) = open.first() else { return Ok(()) };
        Err((6, format!("offer O{number} found no room, and is not declined")))
    }

    /// An offer that found no room is declined. `false` if it is none.
    pub(super) fn overflown(&mut self, id: &str) -> bool {
        offer_number(id).is_some_and(|number| self.overflown.remove(&number))
    }

    /// Whether all handlers are at their batches from now on.
    pub(super) fn handlers_busy(&mut self, busy: bool, virtual_now: u64) {
        if std::mem::replace(&mut self.busy, busy) {
            self.busy_until = virtual_now;
        }
    }

    /// Whether an offer that arrived then has waited for too long, though a handler was free.
    fn late(&self, arrived: u64, virtual_now: u64) -> bool {
        !self.busy && arrived.max(self.busy_until) + WAITS_MAX < virtual_now
    }

    /// A handler takes these.
    pub(super) fn taken(&mut self, batch: &[SimOffer], virtual_now: u64) -> Result<(), Finding> {
        batch.iter().try_for_each(|offer| {
            let (number, subscription) = (offer.number, self.subscription);
            match self.offers.remove(&number) {
                Some(arrived) if self.late(arrived, virtual_now) => {
                    Err((9, format!("offer O{number} waited for {} ms", virtual_now - arrived)))
                }
                Some(_) => Ok(()),
                None if self.rescinded.contains(&number) => {
                    Err((6, format!("offer O{number} was rescinded and is answered")))
                }
                None => {
                    let what =
                        format!("offer O{number} does not wait in subscription {subscription}");
                    Err((7, what))
                }
            }
        })
    }

    /// An answer must bear the present subscription's number. One that bears an earlier one must not be sent: it is
    /// stale.
    pub(super) fn answered_under(&self, epoch: u64, stale: bool) -> Result<(), Finding> {
        let subscription = self.subscription;
        if epoch == subscription && !stale || epoch < subscription && stale {
            return Ok(());
        }
        Err((7, format!("an answer under epoch {epoch}, in subscription {subscription}")))
    }

    /// None is forgotten.
    pub(super) fn none_waits_long(&self, virtual_now: u64) -> Result<(), Finding> {
        match self.offers.iter().find(|(_, arrived)| self.late(**arrived, virtual_now)) {
            Some((number, arrived)) => {
                Err((9, format!("offer O{number} waits for {} ms", virtual_now - arrived)))
            }
            None => Ok(()),
        }
    }
}
