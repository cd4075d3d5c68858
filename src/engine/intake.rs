//! The bounded queue between cluster managers and handler threads.
//!
//! A lock, held for a few moves: what waits here has come over a network or a channel, and what must not wait calls
//! the kernel directly. Offers that find no room are handed back, to be declined; rescinded ones are taken out.

use std::collections::VecDeque;

use super::encoded::EncodedOffer;
use super::seam::OwnedOffer;
use super::sync::{Condvar, Mutex, MutexGuard, lock, wait};

/// What can wait here: an offer of some kind.
pub(crate) trait Queued {
    /// Whether it is the offer with this id.
    fn is(&self, offer_id: &str) -> bool;
}

/// What waits in an engine's intake.
#[derive(Debug)]
pub(crate) enum Waiting {
    Owned(OwnedOffer),
    Encoded(EncodedOffer),
}

impl Waiting {
    /// The offer's id; empty if it can't be found.
    pub(super) fn into_id(self) -> String {
        match self {
            Waiting::Owned(offer) => offer.id,
            Waiting::Encoded(offer) => offer.id().to_owned(),
        }
    }
}

impl Queued for Waiting {
    fn is(&self, offer_id: &str) -> bool {
        match self {
            Waiting::Owned(offer) => offer.id == offer_id,
            Waiting::Encoded(offer) => offer.id_bytes() == offer_id.as_bytes(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Intake<O = Waiting> {
    queue: Mutex<Queue<O>>,
    filled: Condvar,
    offers_max: usize,
}

#[derive(Debug)]
struct Queue<O> {
    offers: VecDeque<O>,
    /// The subscription that all of them came under.
    epoch: u64,
    closed: bool,
}

impl<O: Queued> Intake<O> {
    pub(crate) fn new(offers_max: usize) -> Intake<O> {
        let queue = Queue { offers: VecDeque::new(), epoch: 0, closed: false };
        Intake { queue: Mutex::new(queue), filled: Condvar::new(), offers_max }
    }

    fn queue(&self) -> MutexGuard<'_, Queue<O>> {
        lock(&self.queue)
    }

    /// Queues `offers`; returns those that there is no room for.
    pub(crate) fn push(&self, mut offers: Vec<O>) -> Vec<O> {
        let mut queue = self.queue();
        let room =
            if queue.closed { 0 } else { self.offers_max.saturating_sub(queue.offers.len()) };
        let overflow = offers.split_off(room.min(offers.len()));
        if !offers.is_empty() {
            queue.offers.extend(offers);
            self.filled.notify_one();
        }
        overflow
    }

    /// Moves up to `most` offers into `batch`, waiting for the first. Returns their subscription; `None` when the
    /// intake is closed and empty.
    pub(crate) fn pop(&self, most: usize, batch: &mut Vec<O>) -> Option<u64> {
        let mut queue = self.queue();
        while queue.offers.is_empty() {
            if queue.closed {
                return None;
            }
            queue = wait(&self.filled, queue);
        }
        let count = queue.offers.len().min(most);
        batch.extend(queue.offers.drain(..count));
        if !queue.offers.is_empty() {
            self.filled.notify_one();
        }
        Some(queue.epoch)
    }

    /// Takes out an offer, if it still waits.
    pub(crate) fn rescind(&self, offer_id: &str) -> bool {
        let mut queue = self.queue();
        let waiting = queue.offers.iter().position(|offer| offer.is(offer_id));
        waiting.is_some_and(|at| queue.offers.remove(at).is_some())
    }

    /// Drops everything: the offers' subscription has ended. What comes from now on belongs to `epoch`.
    pub(crate) fn reset(&self, epoch: u64) {
        let mut queue = self.queue();
        queue.offers.clear();
        queue.epoch = epoch;
    }

    /// Takes in nothing more. What waits is still handed out.
    pub(crate) fn close(&self) {
        self.queue().closed = true;
        self.filled.notify_all();
    }

    pub(crate) fn len(&self) -> usize {
        self.queue().offers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::encoded::{EncodedOffers, OfferPlace};

    fn owned(id: &str) -> Waiting {
        Waiting::Owned(OwnedOffer {
            id: id.to_owned(),
            agent_id: "a".to_owned(),
            hostname: "h".to_owned(),
            role: "*".to_owned(),
            resources: Vec::new(),
            attributes: Vec::new(),
            region: None,
            zone: None,
            maintenance_in: None,
            shape: None,
        })
    }

    /// The record is the id.
    fn encoded(id: &str) -> Waiting {
        let place = OfferPlace { offer: 0..id.len(), id: 0..id.len() };
        let offers = EncodedOffers { record: id.as_bytes().into(), places: vec![place] };
        Waiting::Encoded(offers.into_each().next().unwrap())
    }

    /// Owned and encoded offers by turns.
    fn offer(id: u8) -> Waiting {
        let name = id.to_string();
        if id.is_multiple_of(2) { owned(&name) } else { encoded(&name) }
    }

    fn ids(offers: Vec<Waiting>) -> Vec<String> {
        offers.into_iter().map(Waiting::into_id).collect()
    }

    /// Goal: nothing beyond the bound is kept, rescinded offers are not handed out, and a closed intake empties.
    /// Method: a history through each state, with either kind of offer in each place.
    #[test]
    fn offers_overflow_rescind_and_end() {
        for first in [1, 2] {
            let offers = |places: &[u8]| places.iter().map(|at| offer(first + at)).collect();
            let name = |at: u8| (first + at).to_string();
            let intake = Intake::new(3);
            intake.reset(1);
            assert_eq!(ids(intake.push(offers(&[0, 1]))), [""; 0]);
            assert_eq!(ids(intake.push(offers(&[2, 3]))), [name(3)]);
            assert!(intake.rescind(&name(1)) && !intake.rescind(&name(1)));
            assert!(!intake.rescind(""));
            let mut batch = Vec::new();
            assert_eq!(intake.pop(1, &mut batch), Some(1));
            intake.close();
            assert_eq!(ids(intake.push(offers(&[4]))), [name(4)]);
            assert_eq!(intake.pop(9, &mut batch), Some(1));
            assert_eq!(ids(std::mem::take(&mut batch)), [name(0), name(2)]);
            assert_eq!(intake.pop(9, &mut batch), None);
        }
    }

    /// Goal: offers of an ended subscription are never handed out. Method: reset with offers waiting.
    #[test]
    fn a_new_subscription_starts_empty() {
        let intake = Intake::new(10);
        intake.push(vec![owned("old"), encoded("older")]);
        intake.reset(2);
        intake.push(vec![encoded("new"), owned("newer")]);
        let mut batch = Vec::new();
        assert_eq!(intake.pop(9, &mut batch), Some(2));
        assert_eq!(ids(batch), ["new", "newer"]);
    }
}
