//! The bounded queue between cluster managers and handler threads.
//!
//! A lock, held for a few moves: what waits here has come over a network or a channel, and what must not wait calls
//! the kernel directly. Offers that find no room are handed back, to be declined; rescinded ones are taken out.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::seam::OwnedOffer;

/// What can wait here: an offer of some kind.
pub(crate) trait Queued {
    /// Whether it is the offer with this id.
    fn is(&self, offer_id: &str) -> bool;
}

impl Queued for OwnedOffer {
    fn is(&self, offer_id: &str) -> bool {
        self.id == offer_id
    }
}

#[derive(Debug)]
pub(crate) struct Intake<O = OwnedOffer> {
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
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
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
            queue = self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
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

    fn offer(id: &str) -> OwnedOffer {
        OwnedOffer {
            id: id.to_owned(),
            agent_id: "a".to_owned(),
            hostname: "h".to_owned(),
            role: "*".to_owned(),
            resources: Vec::new(),
            attributes: Vec::new(),
            region: None,
            zone: None,
            shape: None,
        }
    }

    fn ids(offers: &[OwnedOffer]) -> Vec<&str> {
        offers.iter().map(|offer| offer.id.as_str()).collect()
    }

    /// Goal: nothing beyond the bound is kept, rescinded offers are not handed out, and a closed intake empties.
    /// Method: a history through each state.
    #[test]
    fn offers_overflow_rescind_and_end() {
        let intake = Intake::new(3);
        intake.reset(1);
        assert_eq!(ids(&intake.push(vec![offer("1"), offer("2")])), [""; 0]);
        assert_eq!(ids(&intake.push(vec![offer("3"), offer("4")])), ["4"]);
        assert!(intake.rescind("2") && !intake.rescind("2"));
        let mut batch = Vec::new();
        assert_eq!(intake.pop(1, &mut batch), Some(1));
        intake.close();
        assert_eq!(ids(&intake.push(vec![offer("5")])), ["5"]);
        assert_eq!(intake.pop(9, &mut batch), Some(1));
        assert_eq!(ids(&batch), ["1", "3"]);
        assert_eq!(intake.pop(9, &mut batch), None);
    }

    /// Goal: offers of an ended subscription are never handed out. Method: reset with offers waiting.
    #[test]
    fn a_new_subscription_starts_empty() {
        let intake = Intake::new(10);
        intake.push(vec![offer("old")]);
        intake.reset(2);
        intake.push(vec![offer("new")]);
        let mut batch = Vec::new();
        assert_eq!(intake.pop(9, &mut batch), Some(2));
        assert_eq!(ids(&batch), ["new"]);
    }
}
