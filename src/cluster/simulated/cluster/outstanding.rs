//! The simulated master's unanswered offers, found by their numbers. Offers are numbered in the order in which they are
//! made.

use std::collections::VecDeque;

use crate::cluster::simulated::wire::SimOffer;

#[derive(Debug, Default)]
pub(super) struct OutstandingOffers {
    /// The number of the first offer in the window.
    first: u64,
    /// The offers from the oldest that may be open to the newest, each with the time at which it was made.
    window: VecDeque<Option<(u64, SimOffer)>>,
}

impl OutstandingOffers {
    /// The number of the next offer.
    pub(super) fn next_number(&self) -> u64 {
        self.first + self.window.len() as u64
    }

    /// Adds an offer with the next number.
    pub(super) fn push(&mut self, now: u64, offer: SimOffer) {
        debug_assert_eq!(offer.number, self.next_number());
        self.window.push_back(Some((now, offer)));
    }

    /// Removes an offer, if it is open.
    pub(super) fn remove(&mut self, number: u64) -> Option<SimOffer> {
        let position = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let (_, offer) = self.window.get_mut(position)?.take()?;
        while let Some(None) = self.window.front() {
            self.window.pop_front();
            self.first += 1;
        }
        Some(offer)
    }

    /// The number of the oldest open offer, if it was made before `moment`.
    pub(super) fn oldest_before(&self, moment: u64) -> Option<u64> {
        let (made, offer) = self.window.front()?.as_ref()?;
        (*made < moment).then_some(offer.number)
    }

    /// All open offers, in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &SimOffer> {
        self.window.iter().flatten().map(|(_, offer)| offer)
    }
}
