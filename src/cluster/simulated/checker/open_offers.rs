//! Checks offers that wait for a handler: invariants 6, 7 and 9.

use std::collections::{BTreeMap, BTreeSet};

use super::rule::RuleViolation;
use crate::cluster::simulated::wire::{SimOffer, offer_number};

/// The maximum time that an offer may wait in the offer queue while a handler is free, in milliseconds.
const WAIT_MAX_MS: u64 = 1_000;

/// The offers that have not been answered.
#[derive(Default)]
pub(super) struct OpenOffers {
    /// The number of the present subscription.
    subscription: u64,
    /// Offers of the present subscription that are neither in a batch nor rescinded, and when they arrived.
    offers: BTreeMap<u64, u64>,
    /// Offers that were rescinded while they waited. They must not be answered.
    rescinded: BTreeSet<u64>,
    /// Offers that found no room in the offer queue. They must be declined.
    overflown: BTreeSet<u64>,
    /// Whether all handlers are busy with batches.
    busy: bool,
    /// When all handlers were last busy.
    busy_until: u64,
}

impl OpenOffers {
    /// A subscription begins: offers of earlier ones are invalid.
    pub(super) fn subscribed(&mut self) {
        self.disconnected();
        self.subscription += 1;
    }

    pub(super) fn disconnected(&mut self) {
        self.offers.clear();
        self.rescinded.clear();
        self.overflown.clear();
    }

    /// Offers arrive.
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

    /// Checks that all offers that found no room have been declined.
    pub(super) fn overflow_ends(&mut self) -> Result<(), RuleViolation> {
        let open = std::mem::take(&mut self.overflown);
        let Some(number) = open.first() else { return Ok(()) };
        Err((6, format!("offer O{number} found no room, and is not declined")))
    }

    /// Removes a declined offer from those that found no room. Returns whether it was one of them.
    pub(super) fn remove_overflown(&mut self, id: &str) -> bool {
        offer_number(id).is_some_and(|number| self.overflown.remove(&number))
    }

    /// Whether all handlers are busy with batches from now on.
    pub(super) fn handlers_busy(&mut self, busy: bool, virtual_now: u64) {
        if std::mem::replace(&mut self.busy, busy) {
            self.busy_until = virtual_now;
        }
    }

    /// Whether an offer that arrived at this time has waited too long while a handler was free.
    fn late(&self, arrived: u64, virtual_now: u64) -> bool {
        !self.busy && arrived.max(self.busy_until) + WAIT_MAX_MS < virtual_now
    }

    /// A handler begins a batch with these offers.
    pub(super) fn remove_batch(
        &mut self,
        batch: &[SimOffer],
        virtual_now: u64,
    ) -> Result<(), RuleViolation> {
        batch.iter().try_for_each(|offer| {
            let number = offer.number;
            let subscription = self.subscription;
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

    /// Checks that an answer has the number of the present subscription. Answers with an earlier number are stale and
    /// must not be sent.
    pub(super) fn answered_under(&self, epoch: u64, stale: bool) -> Result<(), RuleViolation> {
        let subscription = self.subscription;
        if epoch == subscription && !stale || epoch < subscription && stale {
            return Ok(());
        }
        Err((7, format!("an answer under epoch {epoch}, in subscription {subscription}")))
    }

    /// Checks that no offer waits too long.
    pub(super) fn check_waiting_times(&self, virtual_now: u64) -> Result<(), RuleViolation> {
        match self.offers.iter().find(|(_, arrived)| self.late(**arrived, virtual_now)) {
            Some((number, arrived)) => {
                Err((9, format!("offer O{number} waits for {} ms", virtual_now - arrived)))
            }
            None => Ok(()),
        }
    }
}
